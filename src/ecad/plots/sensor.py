"""one sensor of a report -> its readings and its p-values, drawn on one clock."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .canvas import load_matplotlib
from .choice import window
from .judged import Booleans, Floats, Judged, Known
from .marks import ALARM, BAND, BLUE, FAINT, HOLIDAY, INK, LINE, SOFT, TRUTH, Mark, marks

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

_MOST_DOTS = 6000  # beyond, a picture in the picture is smaller than the drawing


def draw_sensor(
    where: Figure | SubFigure, report: Judged, sensor: int, known: Known, unit: str, overview: bool
) -> None:
    """Readings above, p-values below on the same clock; with `overview`, all p-values first."""
    rows = window(report, sensor, known)
    times = report.panel.local_times
    long = overview and rows.stop - rows.start < len(times)
    heights = [0.8, 2.0, 1.0] if long else [2.0, 1.0]
    axes = list(where.subplots(len(heights), 1, gridspec_kw={"height_ratios": heights}))
    if long:
        whole = axes.pop(0)
        _draw_p(whole, report, sensor, slice(None), times, known, small=True)
        whole.axvspan(times[rows][0], times[rows][-1], color=BAND, alpha=0.55, lw=0, zorder=0)
        _say(whole, "All p-values; the shaded part is shown below")
    if not overview:
        _say(axes[0], report.sensors[sensor], strong=True)
    readings, p_values = axes
    _draw_readings(readings, report, sensor, rows, times, known, unit)
    _draw_p(p_values, report, sensor, rows, times, known, small=False)
    p_values.sharex(readings)
    readings.tick_params(labelbottom=False)
    readings.xaxis.offsetText.set_visible(False)


def _draw_readings(
    axes: Axes,
    report: Judged,
    sensor: int,
    rows: slice,
    times: NDArray[Any],
    known: Known,
    unit: str,
) -> None:
    x, y = times[rows], report.values[rows, sensor]
    low, high = report.lower[rows, sensor], report.upper[rows, sensor]
    axes.fill_between(x, low, high, where=np.isfinite(low), step="mid", color=BAND, lw=0, zorder=1)
    axes.plot(x, report.expected[rows, sensor], color=BLUE, lw=1.1, ls=(0, (3, 1.5)), zorder=2)
    axes.plot(x, y, color=INK, lw=1.0, marker=".", ms=2.2, mew=0, zorder=3)
    bottom, top = _limits(report, sensor, rows)
    axes.set_ylim(bottom, top)
    _draw_missing(axes, x, y)
    _draw_known(axes, x, y, known, rows, sensor)
    for mark, which in marks(report, known):
        hit = which[rows, sensor]
        _scatter(axes, x[hit], np.clip(y[hit], bottom, top - 0.03 * (top - bottom)), mark, size=30)
    _tell_clipped(axes, x, y, top)
    _dress(axes, x)
    axes.set_ylabel(unit or "reading")
    axes.ticklabel_format(axis="y", useOffset=False)  # 7,999 is written as such


def _limits(report: Judged, sensor: int, rows: slice) -> tuple[float, float]:
    """Room for what is usual; a single reading many times as high may not flatten all the others."""
    y, expected = report.values[rows, sensor], report.expected[rows, sensor]
    usual = np.concatenate([y[~report.alarms[rows, sensor]], report.upper[rows, sensor], expected])
    ceiling, floor = np.fmax.reduce(usual), np.fmin.reduce(np.concatenate([y, expected]))
    highest = np.fmax.reduce(y)
    if not np.isfinite(highest):
        return 0.0, 1.0
    if not np.isfinite(ceiling) or highest < 1.8 * ceiling:
        ceiling = np.fmax.reduce([highest, *expected])
    if floor < 0:
        floor = min(floor, np.fmin.reduce(report.lower[rows, sensor]))
    room = max(ceiling - floor, 1e-9 * max(abs(ceiling), 1.0))
    bottom = -0.05 * ceiling if 0 <= floor < 0.5 * ceiling else floor - 0.06 * room
    return float(bottom), float(ceiling + 0.16 * room)


def _tell_clipped(axes: Axes, x: NDArray[Any], y: Floats, top: float) -> None:
    """Readings above the picture are marked at its edge and written out (the highest only)."""
    if not (beyond := np.flatnonzero(np.nan_to_num(y) > top)).size:
        return
    highest = beyond[np.argmax(y[beyond])]
    axes.annotate(
        f"↑ {y[highest]:,.0f}",
        (x[highest], top),
        xytext=(6, -3),
        textcoords="offset points",
        va="top",
        fontsize=8.5,
        color=SOFT,
    )


def _draw_missing(axes: Axes, x: NDArray[Any], y: Floats) -> None:
    """A comb at the foot: here nothing was reported, so here is no verdict."""
    gone = x[np.isnan(y)]
    axes.vlines(gone, 0.0, 0.028, transform=axes.get_xaxis_transform(), color=FAINT, lw=1.1, zorder=1)


def _draw_known(axes: Axes, x: NDArray[Any], y: Floats, known: Known, rows: slice, sensor: int) -> None:
    _shade(axes, x, known.holidays[rows], HOLIDAY)
    if known.anomalies is not None:
        _shade(axes, x, _bridged(known.anomalies[rows, sensor], np.isnan(y)), TRUTH)


def _shade(axes: Axes, x: NDArray[Any], where: Booleans, colour: str) -> None:
    if len(x) < 2:
        return
    inside = np.concatenate([[False], where, [False]])
    begins, ends = np.flatnonzero(inside[1:] & ~inside[:-1]), np.flatnonzero(inside[:-1] & ~inside[1:]) - 1
    half = (x[1] - x[0]) / 2
    for begin, end in zip(begins, ends, strict=True):
        axes.axvspan(x[begin] - half, x[end] + half, color=colour, alpha=0.85, lw=0, zorder=0)


def _bridged(true: Booleans, missing: Booleans) -> Booleans:
    """A hole between two readings of an anomaly belongs to it."""
    at = np.arange(len(true))
    seen = np.flatnonzero(~missing)
    if not len(seen):
        return true
    before = seen[np.maximum(np.searchsorted(seen, at, side="right") - 1, 0)]
    after = seen[np.minimum(np.searchsorted(seen, at), len(seen) - 1)]
    return np.asarray(true[before] & true[after])


def _draw_p(
    axes: Axes,
    report: Judged,
    sensor: int,
    rows: slice,
    times: NDArray[Any],
    known: Known,
    small: bool,
) -> None:
    """p-values on a log scale, upside down: what is strange stands out upwards."""
    x, p = times[rows], report.p_values[rows, sensor]
    smallest = float(np.fmin.reduce(report.p_values[:, sensor]))
    edge = min(smallest if smallest > 0 else report.alpha, report.alpha)
    axes.set_yscale("log")
    axes.set_ylim(1.6, edge / 2.2)
    if not small:
        _draw_known(axes, x, report.values[rows, sensor], known, rows, sensor)
        axes.vlines(x, p, 1.0, color=LINE, lw=0.8, zorder=1)
    drawn = axes.scatter(x, p, s=2.5 if small else 5, color=FAINT if small else SOFT, lw=0, zorder=2)
    drawn.set_rasterized(len(x) > _MOST_DOTS)
    for mark, which in marks(report, known):
        hit = which[rows, sensor]
        _scatter(axes, x[hit], np.fmax(p[hit], edge), mark, size=11 if small else 24)
    axes.axhline(report.alpha, color=ALARM.colour, lw=0.9, ls=(0, (4, 2)), zorder=1)
    axes.yaxis.set_major_locator(load_matplotlib().ticker.LogLocator(base=10.0, numticks=4 if small else 6))
    axes.yaxis.set_major_formatter(load_matplotlib().ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_locator(load_matplotlib().ticker.NullLocator())
    axes.set_ylabel("p-value")
    _dress(axes, x)


def _scatter(axes: Axes, x: NDArray[Any], y: Floats, mark: Mark, size: float) -> None:
    axes.scatter(
        x,
        y,
        s=size * (1.25 if mark.shape == "X" else 0.75 if mark.shape == "D" else 1.0),
        marker=mark.shape,
        facecolor="white" if mark.hollow else mark.colour,
        edgecolor=mark.colour if mark.hollow else "white",
        linewidth=1.1 if mark.hollow else 0.5,
        zorder=5,
    )


def _dress(axes: Axes, x: NDArray[Any]) -> None:
    matplotlib = load_matplotlib()
    axes.grid(axis="y", color=LINE, lw=0.6)
    axes.tick_params(length=3)
    if len(x) > 1:
        axes.set_xlim(x[0] - (x[1] - x[0]), x[-1] + (x[1] - x[0]))
    if np.issubdtype(x.dtype, np.datetime64):
        locator = matplotlib.dates.AutoDateLocator(minticks=4, maxticks=9)
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(
            matplotlib.dates.ConciseDateFormatter(
                locator,
                formats=["%Y", "%b", "%d %b", "%H:%M", "%H:%M", "%S"],
                zero_formats=["", "%Y", "%b", "%d %b", "%H:%M", "%H:%M"],
                offset_formats=["", "", "%Y", "%Y", "%d %b %Y", "%d %b %Y"],
            )
        )


def _say(axes: Axes, text: str, strong: bool = False) -> None:
    axes.set_title(
        text,
        loc="left",
        fontsize=11 if strong else 9,
        fontweight="bold" if strong else "normal",
        color=INK if strong else SOFT,
        pad=5,
    )
