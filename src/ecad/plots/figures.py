"""a report -> one figure: readings and p-values of a few sensors, the map, the legend; and a figure -> a PNG."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ..errors import SettingError
from .canvas import STYLE, load_matplotlib
from .choice import chosen
from .judged import Judged, Known, checked, was_tested
from .marks import BAND, BLUE, FAINT, INK, SOFT, grounds, kinds
from .network import draw_map
from .sensor import draw_sensor
from .words import asked, percent

if TYPE_CHECKING:
    from matplotlib.figure import Figure, SubFigure


def figure(
    report: Judged,
    sensors: Sequence[str] | None = None,
    *,
    truth: ArrayLike | None = None,
    holidays: ArrayLike | None = None,
    title: str | None = None,
    unit: str = "",
) -> Figure:
    """Readings and p-values of a few sensors (two by default), beside a map of the network."""
    matplotlib = load_matplotlib()
    known = checked(report, truth, holidays)
    shown = chosen(report, sensors, known)
    with matplotlib.rc_context(STYLE):
        whole: Figure = matplotlib.figure.Figure(
            figsize=(14.0, 1.0 + 3.3 * max(len(shown), 2)), layout="constrained"
        )
        whole.suptitle(title or _caption(report), x=0.008, ha="left", fontsize=13, fontweight="bold")
        left, right = np.asarray(whole.subfigures(1, 2, width_ratios=[2.75, 1.0], wspace=0.03))
        rows = left.subfigures(len(shown), 1, squeeze=False)[:, 0]
        for row, sensor in zip(rows, shown, strict=True):
            draw_sensor(row, report, sensor, known, unit, overview=False)
        above, below = np.asarray(right.subfigures(2, 1, height_ratios=[1.25, 1.0]))
        draw_map(above.subplots(), report, shown)
        _write_episodes(below, report)
        _draw_legend(below, known)
    return whole


def save_picture(figure: Figure, path: str | Path, dpi: int = 150) -> Path:
    """Write what `figure` gave in the format that the path's ending names: .png, .svg or .pdf."""
    target = Path(path)
    form = target.suffix.lower().removeprefix(".")
    if form not in ("png", "svg", "pdf"):
        raise SettingError(
            f"A picture cannot be written to {str(path)!r}: its name must end in .png, .svg or .pdf."
        )
    figure.savefig(target, format=form, dpi=dpi)
    return target


def _draw_legend(where: SubFigure, known: Known) -> None:
    lines = load_matplotlib().lines
    entries: list[Any] = [
        lines.Line2D([], [], color=INK, lw=1.2, label="reading"),
        lines.Line2D([], [], color=BLUE, lw=1.2, ls=(0, (3, 1.5)), label="expected"),
        lines.Line2D([], [], color=BAND, lw=7, label="range without alarm"),
        lines.Line2D([], [], color=FAINT, marker="|", ls="", ms=7, label="missing"),
    ]
    for mark in kinds(known):
        face = "white" if mark.hollow else mark.colour
        entries.append(
            lines.Line2D([], [], ls="", marker=mark.shape, mfc=face, mec=mark.colour, ms=6, label=mark.label)
        )
    entries += [lines.Line2D([], [], color=colour, lw=7, label=name) for name, colour in grounds(known)]
    where.legend(handles=entries, loc="lower left", ncols=2, fontsize=8, handlelength=1.6, columnspacing=1.2)


def _write_episodes(where: SubFigure, report: Judged) -> None:
    strongest = sorted(report.episodes, key=lambda episode: -np.nan_to_num(episode.peak_strength))[:3]
    where.text(0.03, 0.98, "Strongest episodes", va="top", fontsize=10, fontweight="bold")
    text = "\n\n".join(fill(episode.sentence(), 52) for episode in strongest) or "none"
    where.text(0.03, 0.88, text, va="top", fontsize=8.2, color=SOFT, linespacing=1.35)


def _caption(report: Judged) -> str:
    n_alarms, n_tested = int(report.alarms.sum()), int(was_tested(report).sum())
    return (
        f"{n_alarms:,} alarms in {n_tested:,} readings of {len(report.sensors):,} sensors "
        f"({percent(n_alarms / max(n_tested, 1))}; {asked(report)} asked for)"
    )
