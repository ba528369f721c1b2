"""episodes -> their list on the page, the strongest first and with a thumbnail each."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from ..episodes import Episode
from .judged import Floats, Judged, Known
from .marks import BLUE, EXCUSED, FALSE, HIT, INK, symbol_of
from .words import duration

_TOLD = 24  # episodes with a picture; the weaker ones are folded away
_LISTED = 1000  # episodes on the page at all


def episodes(report: Judged, known: Known) -> str:
    """The episodes as an ordered list in HTML; of many, the weaker ones are folded away, without a thumbnail."""
    order = sorted(report.episodes, key=lambda episode: -np.nan_to_num(episode.peak_strength))
    column = {name: k for k, name in enumerate(report.sensors)}
    told = [_episode(report, episode, column, known, picture=True) for episode in order[:_TOLD]]
    rest = [_episode(report, episode, column, known, picture=False) for episode in order[_TOLD:_LISTED]]
    folded = (
        f"<details><summary>{len(order) - _TOLD:,} weaker episodes</summary><ol>{''.join(rest)}</ol></details>"
        if rest
        else ""
    )
    return f'<ol class="told">{"".join(told)}</ol>{folded}'


def _episode(report: Judged, episode: Episode, column: dict[str, int], known: Known, picture: bool) -> str:
    first, last = np.searchsorted(
        report.times, np.array([episode.start, episode.end], dtype=report.times.dtype)
    )
    columns = [column[name] for name in episode.sensors]
    badge = _badge(report, known, slice(first, last + 1), columns)
    when = _stamp(report.panel.local_times[first]), duration((last - first + 1) * report.panel.step)
    names = " ".join(f"<span>{escape(name)}</span>" for name in episode.sensors[:12])
    names += f" <span>+{len(episode.sensors) - 12}</span>" if len(episode.sensors) > 12 else ""
    spark = _spark(report, column[episode.peak[1]], int(first), int(last)) if picture else ""
    return (
        f'<li><div class="when"><time>{when[0]}</time><small>{when[1]}</small></div>'
        f'<div class="what"><p>{escape(episode.sentence())} {badge}</p><div class="names">{names}</div></div>'
        f"{spark}</li>"
    )


def _badge(report: Judged, known: Known, rows: slice, columns: list[int]) -> str:
    """What an episode was, as far as anybody knows."""
    truth = known.anomalies
    if truth is not None and (truth & report.alarms)[rows][:, columns].any():
        mark, text, kind = HIT, "known anomaly", "hit"
    elif known.holidays[rows].any():
        mark, text, kind = EXCUSED, "holiday", "excused"
    elif truth is not None:
        mark, text, kind = FALSE, "nothing known", "false"
    else:
        return ""
    symbol = f'<svg viewBox="4 0 12 13" aria-hidden="true">{symbol_of(mark)}</svg>'
    return f'<span class="badge {kind}">{symbol}{text}</span>'


def _stamp(time: Any) -> str:
    if not isinstance(time, np.datetime64):
        return f"tick {time:,}"
    return str(time.astype("datetime64[m]")).replace("T", " ")


def _spark(report: Judged, sensor: int, first: int, last: int) -> str:
    """The episode in thumbnail size: readings, what was expected, and a day or so on either side."""
    margin = max(12, (last - first) // 2)
    rows = slice(max(0, first - margin), min(len(report.times), last + 1 + margin))
    y, centre = report.values[rows, sensor], report.expected[rows, sensor]
    both = np.concatenate([y, centre])
    if not np.isfinite(both).any():
        return ""
    low, high = float(np.nanmin(both)), float(np.nanmax(both))
    x = np.linspace(2.0, 158.0, len(y))
    height = 40.0 - 36.0 * (np.stack([y, centre]) - low) / max(high - low, 1e-12)
    begin, end = x[first - rows.start], x[last - rows.start]
    return (
        f'<svg class="spark" viewBox="0 0 160 44" aria-hidden="true">'
        f'<rect x="{begin - 2:.1f}" y="0" width="{end - begin + 4:.1f}" height="44" rx="2" fill="#fbe3d3"/>'
        f'<path d="{_path(x, height[1])}" fill="none" stroke="{BLUE}" stroke-width="1.2" stroke-dasharray="3 2"/>'
        f'<path d="{_path(x, height[0])}" fill="none" stroke="{INK}" stroke-width="1.4"/></svg>'
    )


def _path(x: Floats, y: Floats) -> str:
    """A line that is broken where nothing was observed; a reading between two holes is a short dash."""
    seen = np.isfinite(y)
    pieces, pen_down = [], False
    for here, there, drawn in zip(x, y, seen, strict=True):
        if drawn:
            pieces.append(
                f"L{here:.1f} {there:.1f}" if pen_down else f"M{here - 0.5:.1f} {there:.1f}H{here:.1f}"
            )
        pen_down = bool(drawn)
    return "".join(pieces)
