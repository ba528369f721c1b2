"""Report -> pictures: one self-contained page, one figure.

`page` writes an HTML file that needs nothing else: no script, no font, no network. `figure` gives matplotlib's own
object, to be shown or changed. Both draw the same three things: readings with what was expected of them, their p-values
(strange is up), and the network.

Colours are those of Okabe and Ito, which colour-blind people can tell apart; each also has a shape of its own.
"""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .episodes import Episode
from .errors import MissingExtra, SettingError
from .panel import Panel

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]


class Judged(Protocol):
    """What is drawn of a report."""

    @property
    def times(self) -> NDArray[Any]: ...
    @property
    def sensors(self) -> Sequence[str]: ...
    @property
    def values(self) -> Floats: ...
    @property
    def p_values(self) -> Floats: ...
    @property
    def expected(self) -> Floats: ...
    @property
    def lower(self) -> Floats: ...
    @property
    def upper(self) -> Floats: ...
    @property
    def strength(self) -> Floats: ...
    @property
    def alarms(self) -> Booleans: ...
    @property
    def alpha(self) -> float: ...
    @property
    def panel(self) -> Panel: ...
    @property
    def neighbours(self) -> NDArray[np.int64]: ...
    @property
    def episodes(self) -> list[Episode]: ...


@dataclass(frozen=True)
class _Mark:
    """How one kind of reading is shown, in every picture and in the legend."""

    label: str
    colour: str
    shape: str
    hollow: bool = False


@dataclass(frozen=True, eq=False)
class _Known:
    """What is known besides the report: anomalies (time, sensor), if at all, and unusual times."""

    anomalies: Booleans | None
    holidays: Booleans


_INK, _SOFT, _FAINT, _LINE = "#1d2b36", "#5b6b78", "#a9b4bd", "#dde3e7"
_BLUE, _BAND, _TRUTH, _HOLIDAY = "#0072b2", "#cfe6f4", "#f6e7b0", "#e8ebee"
_ALARM = _Mark("alarm", "#d55e00", "o")
_HIT = _Mark("alarm on an anomaly", "#009e73", "o")
_FALSE = _Mark("false alarm", "#d55e00", "X")
_EXCUSED = _Mark("alarm on a holiday", "#4f6d8c", "s")
_MISSED = _Mark("anomaly without an alarm", "#8e3a80", "D", hollow=True)
_SHARES = (
    (0.0, "#d3e3ee"),
    (0.5, "#f6ecd4"),
    (0.66, "#efa456"),
    (0.83, "#cc4f12"),
    (1.0, "#64190a"),
)  # 0.5: as asked
_STYLE: dict[str, Any] = {
    "font.size": 9.5,
    "text.color": _INK,
    "axes.edgecolor": _FAINT,
    "axes.labelcolor": _SOFT,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "xtick.color": _FAINT,
    "ytick.color": _FAINT,
    "xtick.labelcolor": _SOFT,
    "ytick.labelcolor": _SOFT,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "legend.frameon": False,
}
_SIDES: tuple[tuple[tuple[float, float], str, str], ...] = (
    ((0.0, -1.0), "center", "top"),
    ((0.0, 1.0), "center", "bottom"),
    ((1.0, 0.0), "left", "center"),
    ((-1.0, 0.0), "right", "center"),
)
_WINDOW = 240  # ticks shown in detail: ten days of hours
_NAMED = 48  # sensors whose names fit on the map
_SINGLE = 400  # sensors drawn one by one, so that each can say its name under the mouse
_TOLD = 24  # episodes with a picture; the weaker ones are folded away
_LISTED = 1000  # episodes on the page at all
_MOST_DOTS = 6000  # beyond, a picture in the picture is smaller than the drawing


def page(
    report: Judged,
    path: str | Path,
    truth: ArrayLike | None = None,
    title: str = "What looked strange, and when",
    *,
    holidays: ArrayLike | None = None,
    sensors: Sequence[str] | None = None,
    unit: str = "",
) -> Path:
    """Write one self-contained HTML page about a report.

    truth : (time, sensor), true where a reading is known to be an anomaly; alarms are then told apart by it.
    holidays : (time,), true at times known to be unusual; alarms there are neither right nor false.
    sensors : whose readings to show in detail; by default two that had a lot to show.
    unit : the readings' unit, for the axes, like "vehicles/h".
    """
    _matplotlib()
    known = _checked(report, truth, holidays)
    shown = _chosen(report, sensors, known)
    parts = [
        _header(report, known, title),
        _section(
            "Readings and their p-values",
            _reading_guide(report, known, sensors is not None),
            _details(report, shown, known, unit),
        ),
        _section("The network", _map_guide(report), _network(report, shown)),
        _section("Episodes", _episode_guide(report), _episodes(report, known)),
    ]
    target = Path(path)
    target.write_text(_document(title, "\n".join(parts)), encoding="utf-8")
    return target


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
    matplotlib = _matplotlib()
    known = _checked(report, truth, holidays)
    shown = _chosen(report, sensors, known)
    with matplotlib.rc_context(_STYLE):
        whole: Figure = matplotlib.figure.Figure(
            figsize=(14.0, 1.0 + 3.3 * max(len(shown), 2)), layout="constrained"
        )
        whole.suptitle(title or _caption(report), x=0.008, ha="left", fontsize=13, fontweight="bold")
        left, right = np.asarray(whole.subfigures(1, 2, width_ratios=[2.75, 1.0], wspace=0.03))
        rows = left.subfigures(len(shown), 1, squeeze=False)[:, 0]
        for row, sensor in zip(rows, shown, strict=True):
            _draw_sensor(row, report, sensor, known, unit, overview=False)
        above, below = np.asarray(right.subfigures(2, 1, height_ratios=[1.25, 1.0]))
        _draw_map(above.subplots(), report, shown)
        _write_episodes(below, report)
        _draw_legend(below, known)
    return whole


def save_png(figure: Figure, path: str | Path, dpi: int = 150) -> Path:
    """Write what `figure` gave as a PNG."""
    target = Path(path)
    figure.savefig(target, format="png", dpi=dpi)
    return target


def _matplotlib() -> Any:
    """Imported when something is drawn: detecting needs no pictures."""
    try:
        import matplotlib
        import matplotlib.colors
        import matplotlib.dates
        import matplotlib.figure
        import matplotlib.lines
        import matplotlib.ticker
    except ImportError as error:
        raise MissingExtra("matplotlib", "plot", "drawing a report") from error
    return matplotlib


# -- what to show ----------------------------------------------------------------------------------------------------


def _checked(report: Judged, truth: ArrayLike | None, holidays: ArrayLike | None) -> _Known:
    true = None if truth is None else np.asarray(truth, dtype=bool)
    if true is not None and true.shape != report.values.shape:
        raise SettingError(
            f"truth has shape {true.shape}, the report {report.values.shape}: give one truth for each reading judged"
        )
    free = np.zeros(len(report.times), dtype=bool) if holidays is None else np.asarray(holidays, dtype=bool)
    if free.shape != report.times.shape:
        raise SettingError(
            f"holidays has shape {free.shape}, the report {len(report.times)} times: give one value for each time"
        )
    return _Known(None if true is None else true & ~np.isnan(report.values), free)


def _chosen(report: Judged, sensors: Sequence[str] | None, known: _Known) -> list[int]:
    if sensors is None:
        return _busiest(report, known)
    column = {name: k for k, name in enumerate(report.sensors)}
    for name in sensors:
        if name not in column:
            raise SettingError(f"sensors has {name!r}; the report's sensors are {_few(report.sensors)}")
    if not len(sensors):
        raise SettingError("sensors is empty: name at least one sensor to draw")
    return [column[name] for name in sensors]


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")


def _busiest(report: Judged, known: _Known) -> list[int]:
    """The sensor with the busiest window, and the next that is not its neighbour: two stories, not one."""
    score = np.array([_activity(report, k, known).max() for k in range(len(report.sensors))])
    order = np.argsort(-score, kind="stable").tolist()
    first = order[0]
    near = {first, *report.neighbours[first].tolist()}
    second = next((k for k in order if k not in near), next(iter(order[1:]), None))
    return [first] if second is None else [first, second]


def _activity(report: Judged, sensor: int, known: _Known) -> Floats:
    """For each start of a window, how much there is to see: known anomalies, or else alarms by their strength.

    Anomalies count whether they were found or not: a page that picked its successes would flatter the detector. The
    strength is capped, so that one wild reading isn't everything.
    """
    if known.anomalies is not None and _any_known(known):
        weight = known.anomalies[:, sensor].astype(np.float64)
    else:
        strength = np.where(report.alarms[:, sensor], np.nan_to_num(report.strength[:, sensor]), 0.0)
        weight = np.minimum(strength, -3.0 * np.log(report.alpha))
    total = np.concatenate([[0.0], np.cumsum(weight)])
    width = min(_WINDOW, len(weight))
    return np.asarray(total[width:] - total[:-width])


def _any_known(known: _Known) -> bool:
    return known.anomalies is not None and bool(known.anomalies.any())


def _window(report: Judged, sensor: int, known: _Known) -> slice:
    """The busiest window, what there is to see in the middle."""
    activity = _activity(report, sensor, known)
    best = np.flatnonzero(activity >= activity.max() - 1e-9)
    start = int(best[len(best) // 2]) if activity.max() > 0 else len(activity) - 1
    return slice(start, start + min(_WINDOW, len(report.times)))


def _local_times(report: Judged) -> NDArray[Any]:
    """Times on the wall clock: panels with a time zone keep UTC."""
    if report.panel.time_zone is None or not _has_clock(report):
        return report.times
    week = 7 * 86400
    utc = (report.times.astype("datetime64[s]").astype(np.int64) - 4 * 86400) % week
    ahead = (_week_seconds(report) - utc + week // 2) % week - week // 2
    return np.asarray(report.times + ahead.astype("timedelta64[s]"))


def _week_seconds(report: Judged) -> NDArray[np.int64]:
    seconds = report.panel.week_seconds
    assert seconds is not None
    return seconds


def _has_clock(report: Judged) -> bool:
    return bool(np.issubdtype(report.times.dtype, np.datetime64))


def _marks(report: Judged, known: _Known) -> list[tuple[_Mark, Booleans]]:
    """Each kind of mark with its readings (time, sensor), the most telling last."""
    alarms, holiday, truth = report.alarms, known.holidays[:, None], known.anomalies
    if truth is None:
        return [(_EXCUSED, alarms & holiday), (_ALARM, alarms & ~holiday)]
    return [
        (_EXCUSED, alarms & ~truth & holiday),
        (_MISSED, truth & ~alarms),
        (_FALSE, alarms & ~truth & ~holiday),
        (_HIT, alarms & truth),
    ]


def _kinds(known: _Known) -> list[_Mark]:
    """The marks that the legend explains."""
    kinds = [_ALARM] if known.anomalies is None else [_HIT, _FALSE, _MISSED]
    return [*kinds, _EXCUSED] if known.holidays.any() else kinds


def _grounds(known: _Known) -> list[tuple[str, str]]:
    """The shadings that the legend explains: name and colour."""
    grounds = [] if known.anomalies is None else [("known anomaly", _TRUTH)]
    return [*grounds, ("holiday", _HOLIDAY)] if known.holidays.any() else grounds


def _tested(report: Judged) -> Booleans:
    return np.isfinite(report.p_values) | report.alarms


# -- one sensor ------------------------------------------------------------------------------------------------------


def _draw_sensor(
    where: Figure | SubFigure, report: Judged, sensor: int, known: _Known, unit: str, overview: bool
) -> None:
    """Readings above, p-values below on the same clock; with `overview`, all p-values first."""
    rows = _window(report, sensor, known)
    times = _local_times(report)
    long = overview and rows.stop - rows.start < len(times)
    heights = [0.8, 2.0, 1.0] if long else [2.0, 1.0]
    axes = list(where.subplots(len(heights), 1, gridspec_kw={"height_ratios": heights}))
    if long:
        whole = axes.pop(0)
        _draw_p(whole, report, sensor, slice(None), times, known, small=True)
        whole.axvspan(times[rows][0], times[rows][-1], color=_BAND, alpha=0.55, lw=0, zorder=0)
        _say(whole, "All p-values; the shaded part is shown below")
    if not overview:
        _say(axes[0], report.sensors[sensor], strong=True)
    readings, p_values = axes
    _draw_readings(readings, report, sensor, rows, times, known, unit)
    _draw_p(p_values, report, sensor, rows, times, known, small=False)
    p_values.sharex(readings)
    readings.tick_params(labelbottom=False)


def _draw_readings(
    axes: Axes,
    report: Judged,
    sensor: int,
    rows: slice,
    times: NDArray[Any],
    known: _Known,
    unit: str,
) -> None:
    x, y = times[rows], report.values[rows, sensor]
    low, high = report.lower[rows, sensor], report.upper[rows, sensor]
    axes.fill_between(x, low, high, where=np.isfinite(low), step="mid", color=_BAND, lw=0, zorder=1)
    axes.plot(x, report.expected[rows, sensor], color=_BLUE, lw=1.1, ls=(0, (3, 1.5)), zorder=2)
    axes.plot(x, y, color=_INK, lw=1.0, marker=".", ms=2.2, mew=0, zorder=3)
    bottom, top = _limits(report, sensor, rows)
    axes.set_ylim(bottom, top)
    _draw_missing(axes, x, y)
    _draw_known(axes, x, y, known, rows, sensor)
    for mark, which in _marks(report, known):
        hit = which[rows, sensor]
        _scatter(axes, x[hit], np.clip(y[hit], bottom, top - 0.03 * (top - bottom)), mark, size=30)
    _tell_clipped(axes, x, y, top)
    _dress(axes, x)
    axes.set_ylabel(unit or "reading")


def _limits(report: Judged, sensor: int, rows: slice) -> tuple[float, float]:
    """Room for what is usual; a single reading many times as high may not flatten all the others."""
    y = report.values[rows, sensor]
    usual = np.concatenate([y[~report.alarms[rows, sensor]], report.upper[rows, sensor]])
    ceiling, floor = np.fmax.reduce(usual), np.fmin.reduce(y)
    highest = np.fmax.reduce(y)
    if not np.isfinite(highest):
        return 0.0, 1.0
    ceiling = highest if not np.isfinite(ceiling) or highest < 1.8 * ceiling else ceiling
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
        color=_SOFT,
    )


def _draw_missing(axes: Axes, x: NDArray[Any], y: Floats) -> None:
    """A comb at the foot: here nothing was reported, so here is no verdict."""
    gone = x[np.isnan(y)]
    axes.vlines(gone, 0.0, 0.028, transform=axes.get_xaxis_transform(), color=_FAINT, lw=1.1, zorder=1)


def _draw_known(axes: Axes, x: NDArray[Any], y: Floats, known: _Known, rows: slice, sensor: int) -> None:
    _shade(axes, x, known.holidays[rows], _HOLIDAY)
    if known.anomalies is not None:
        _shade(axes, x, _bridged(known.anomalies[rows, sensor], np.isnan(y)), _TRUTH)


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
    known: _Known,
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
        axes.vlines(x, p, 1.0, color=_LINE, lw=0.8, zorder=1)
    drawn = axes.scatter(x, p, s=2.5 if small else 5, color=_FAINT if small else _SOFT, lw=0, zorder=2)
    drawn.set_rasterized(len(x) > _MOST_DOTS)
    for mark, which in _marks(report, known):
        hit = which[rows, sensor]
        _scatter(axes, x[hit], np.fmax(p[hit], edge), mark, size=11 if small else 24)
    axes.axhline(report.alpha, color=_ALARM.colour, lw=0.9, ls=(0, (4, 2)), zorder=1)
    axes.yaxis.set_major_locator(_matplotlib().ticker.LogLocator(base=10.0, numticks=4 if small else 6))
    axes.yaxis.set_major_formatter(_matplotlib().ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_locator(_matplotlib().ticker.NullLocator())
    axes.set_ylabel("p-value")
    _dress(axes, x)


def _scatter(axes: Axes, x: NDArray[Any], y: Floats, mark: _Mark, size: float) -> None:
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
    matplotlib = _matplotlib()
    axes.grid(axis="y", color=_LINE, lw=0.6)
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
                show_offset=False,
            )
        )


def _say(axes: Axes, text: str, strong: bool = False) -> None:
    axes.set_title(
        text,
        loc="left",
        fontsize=11 if strong else 9,
        fontweight="bold" if strong else "normal",
        color=_INK if strong else _SOFT,
        pad=5,
    )


# -- the map ---------------------------------------------------------------------------------------------------------


def _draw_map(axes: Axes, report: Judged, shown: Sequence[int]) -> None:
    """Sensors at their places, coloured by the share of their readings that were alarms."""
    matplotlib = _matplotlib()
    places, scale = _places(report)
    a, b = _links(report)
    strokes = np.stack([places[a], places[b]], axis=1)
    axes.add_collection(
        matplotlib.collections.LineCollection(strokes, colors=_LINE, linewidths=1.4, zorder=1)
    )
    share, n_tested = _shares(report)
    colours = matplotlib.colors.LinearSegmentedColormap.from_list("shares", _SHARES)
    norm = matplotlib.colors.TwoSlopeNorm(
        report.alpha, 0.0, max(float(np.fmax.reduce(share)), 3 * report.alpha)
    )
    size = float(np.clip(4200.0 / len(share), 9.0, 190.0))
    faces = np.where((n_tested == 0)[:, None], 1.0, colours(norm(share)))
    rims = np.where(np.isin(np.arange(len(share)), shown), 1.8, 0.6)
    for k in _one_by_one(len(share)):
        gid = f"sensor-{k[0]}" if len(k) == 1 else None
        x, y = places[k].T
        axes.scatter(x, y, s=size, color=faces[k], edgecolor=_INK, linewidth=rims[k], zorder=3, gid=gid)
    _name_sensors(axes, report, places, share, shown, size)
    _scale_bar(axes, places, scale)
    _frame(axes, places)
    _share_bar(axes, colours, norm, report)


def _frame(axes: Axes, places: Floats) -> None:
    """Room around the network, also around one sensor or a row of them."""
    low, high = places.min(axis=0), places.max(axis=0)
    widest = float((high - low).max()) or 1.0
    half = np.maximum((high - low) / 2, 0.2 * widest) + 0.1 * widest
    centre = (low + high) / 2
    axes.set_xlim(centre[0] - half[0], centre[0] + half[0])
    axes.set_ylim(centre[1] - half[1] - 0.06 * widest, centre[1] + half[1])
    axes.set_aspect("equal")
    axes.axis("off")


def _one_by_one(n: int) -> list[NDArray[np.int64]]:
    return np.array_split(np.arange(n), n if n <= _SINGLE else 1)


def _shares(report: Judged) -> tuple[Floats, NDArray[np.int64]]:
    n_tested = np.count_nonzero(_tested(report), axis=0)
    return np.count_nonzero(report.alarms, axis=0) / np.maximum(n_tested, 1), n_tested


def _name_sensors(
    axes: Axes, report: Judged, places: Floats, share: Floats, shown: Sequence[int], size: float
) -> None:
    """Each name on the side of its sensor where the nearest other sensor or name is furthest."""
    named = range(len(share)) if len(share) <= _NAMED else [*shown, *np.argsort(-share)[:6].tolist()]
    reach = 0.5 * np.sqrt(size) + 2.5  # points
    away = 0.05 * max(float(np.ptp(places, axis=0).max()), 1e-9)
    taken = places
    for k in dict.fromkeys(named):
        sides = places[k] + away * np.array([side for side, _, _ in _SIDES])
        others = np.delete(taken, k, axis=0)
        free = np.array([((others - side) ** 2).sum(axis=1).min(initial=np.inf) for side in sides])
        best = int(np.argmax(np.minimum(free, (1.5 * away) ** 2)))
        taken = np.vstack([taken, sides[best]])
        (right, up), across, upright = _SIDES[best]
        axes.annotate(
            report.sensors[k],
            (float(places[k, 0]), float(places[k, 1])),
            xytext=(reach * right, reach * up),
            textcoords="offset points",
            ha=across,
            va=upright,
            fontsize=8,
            fontweight="bold" if k in shown else "normal",
            color=_INK if k in shown else _SOFT,
            zorder=4,
        )


def _share_bar(axes: Axes, colours: Any, norm: Any, report: Judged) -> None:
    matplotlib = _matplotlib()
    bar = axes.figure.colorbar(
        matplotlib.cm.ScalarMappable(norm, colours),
        ax=axes,
        orientation="horizontal",
        shrink=0.62,
        aspect=34,
        pad=0.02,
    )
    bar.outline.set_visible(False)
    ticks = [0.0, report.alpha, (report.alpha + norm.vmax) / 2, norm.vmax]
    bar.set_ticks(ticks, labels=["0", _asked(report), *(_percent(tick) for tick in ticks[2:])])
    bar.ax.tick_params(length=3)
    bar.set_label(f"readings with an alarm ({_asked(report)} asked for)", fontsize=8.5)


def _scale_bar(axes: Axes, places: Floats, scale: float | None) -> None:
    """A length one can read: 1, 2 or 5 times a power of ten kilometres."""
    width = float(np.ptp(places[:, 0])) if len(places) > 1 else 0.0
    if scale is None or width <= 0.0:
        return
    rough = 0.25 * width
    power = 10.0 ** np.floor(np.log10(rough))
    length = power * max(step for step in (1, 2, 5) if step * power <= rough or step == 1)
    x, y = places[:, 0].min(), places[:, 1].min() - 0.12 * max(float(np.ptp(places[:, 1])), width)
    axes.plot([x, x + length], [y, y], color=_SOFT, lw=1.4, solid_capstyle="butt", zorder=2)
    text = f"{length:g} km" if length >= 1 else f"{1000 * length:g} m"
    axes.text(x + length + 0.015 * width, y, text, va="center", fontsize=8, color=_SOFT)


def _places(report: Judged) -> tuple[Floats, float | None]:
    """(sensor, 2), and the kilometres of one unit where that is known."""
    positions = report.panel.positions
    if positions is None or not np.isfinite(positions).all():
        return _laid_out(len(report.sensors), *_links(report)), None
    if report.panel.geometry != "lonlat":
        return np.asarray(positions, dtype=np.float64), None
    lon, lat = positions.T
    across = (lon - lon[0] + 180.0) % 360.0 - 180.0  # a network may lie across the date line
    return 111.2 * np.column_stack([across * np.cos(np.radians(lat.mean())), lat]), 1.0


def _links(report: Judged) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs of sensors to join by a line: the roads where they are known, else the neighbourhoods."""
    if report.panel.adjacency is not None:
        a, b = (np.asarray(ends, dtype=np.int64) for ends in report.panel.adjacency[:2])
    else:
        n, width = report.neighbours.shape
        a, b = np.repeat(np.arange(n), width), report.neighbours.ravel().astype(np.int64)
    pairs = np.unique(np.sort(np.column_stack([a, b]), axis=1), axis=0)
    pairs = pairs[(pairs[:, 0] != pairs[:, 1]) & (pairs[:, 0] >= 0)]
    return pairs[:, 0], pairs[:, 1]


def _laid_out(n: int, a: NDArray[np.int64], b: NDArray[np.int64]) -> Floats:
    """Places for sensors that have none: linked ones attract, all repel (Fruchterman and Reingold, from a spiral)."""
    turn = np.arange(n) * np.pi * (3.0 - np.sqrt(5.0))
    spiral = np.sqrt((np.arange(n) + 0.5) / n)[:, None] * np.column_stack([np.cos(turn), np.sin(turn)])
    places: Floats = np.asarray(spiral)
    if n < 3 or n > 800:
        return places
    reach = 1.4 / np.sqrt(n)
    for heat in np.linspace(0.12, 0.002, 200 if n <= 300 else 60):
        apart = places[:, None, :] - places[None, :, :]
        distance = np.maximum(np.sqrt((apart**2).sum(axis=2)), 1e-6)
        push = (apart * (reach**2 / distance**2)[:, :, None]).sum(axis=1)
        pull = (places[a] - places[b]) * (distance[a, b] / reach)[:, None]
        np.add.at(push, a, -pull)
        np.add.at(push, b, pull)
        push -= 0.3 * places  # keeps parts without a link from flying away
        length = np.maximum(np.sqrt((push**2).sum(axis=1, keepdims=True)), 1e-9)
        places = places + push / length * np.minimum(length, heat)
    return places


# -- the figure's margin ---------------------------------------------------------------------------------------------


def _draw_legend(where: SubFigure, known: _Known) -> None:
    lines = _matplotlib().lines
    entries: list[Any] = [
        lines.Line2D([], [], color=_INK, lw=1.2, label="reading"),
        lines.Line2D([], [], color=_BLUE, lw=1.2, ls=(0, (3, 1.5)), label="expected"),
        lines.Line2D([], [], color=_BAND, lw=7, label="range without alarm"),
        lines.Line2D([], [], color=_FAINT, marker="|", ls="", ms=7, label="missing"),
    ]
    for mark in _kinds(known):
        face = "white" if mark.hollow else mark.colour
        entries.append(
            lines.Line2D([], [], ls="", marker=mark.shape, mfc=face, mec=mark.colour, ms=6, label=mark.label)
        )
    entries += [lines.Line2D([], [], color=colour, lw=7, label=name) for name, colour in _grounds(known)]
    where.legend(handles=entries, loc="lower left", ncols=2, fontsize=8, handlelength=1.6, columnspacing=1.2)


def _write_episodes(where: SubFigure, report: Judged) -> None:
    strongest = sorted(report.episodes, key=lambda episode: -np.nan_to_num(episode.peak_strength))[:3]
    where.text(0.03, 0.98, "Strongest episodes", va="top", fontsize=10, fontweight="bold")
    text = "\n\n".join(_wrapped(episode.sentence(), 52) for episode in strongest) or "none"
    where.text(0.03, 0.88, text, va="top", fontsize=8.2, color=_SOFT, linespacing=1.35)


def _wrapped(text: str, width: int) -> str:
    from textwrap import fill

    return fill(text, width)


def _caption(report: Judged) -> str:
    n_alarms, n_tested = int(report.alarms.sum()), int(_tested(report).sum())
    return (
        f"{n_alarms:,} alarms in {n_tested:,} readings of {len(report.sensors):,} sensors "
        f"({_percent(n_alarms / max(n_tested, 1))}; {_asked(report)} asked for)"
    )


# -- the page --------------------------------------------------------------------------------------------------------


def _header(report: Judged, known: _Known, title: str) -> str:
    tested, alarms = _tested(report), report.alarms
    n_tested, n_alarms = int(tested.sum()), int(alarms.sum())
    observed = int(np.count_nonzero(~np.isnan(report.values)))
    tiles = [
        _tile(
            f"{n_tested:,}",
            "readings judged",
            _not_judged(report.values.size - observed, observed - n_tested),
        ),
        _tile(f"{n_alarms:,}", "alarms", f"{_percent(n_alarms / max(n_tested, 1))} of the readings"),
        _tile(_asked(report), "alarm level asked", f"≈ {report.alpha * n_tested:,.0f} alarms by chance"),
        _tile(f"{len(report.episodes):,}", "episodes", "alarms that touch one another"),
    ]
    if known.anomalies is not None:
        tiles += _truth_tiles(alarms, known.anomalies, tested, known.holidays[:, None])
    return (
        f'<header><p class="brand">ECAD</p><h1>{escape(title)}</h1><p class="lead">{escape(_scope(report))}</p>'
        f'<div class="tiles">{"".join(tiles)}</div></header>'
    )


def _truth_tiles(alarms: Booleans, truth: Booleans, tested: Booleans, holiday: Booleans) -> list[str]:
    true, normal = truth & tested, tested & ~truth & ~holiday
    hits, false = int((alarms & true).sum()), int((alarms & normal).sum())
    n_true, n_normal = int(true.sum()), int(normal.sum())
    note = f"{false:,} of {n_normal:,} normal ones"
    if holiday.any():  # set apart, but never out of sight
        everything = tested & ~truth
        share = int((alarms & everything).sum()) / max(int(everything.sum()), 1)
        note += f"; {_percent(share)} with holidays"
    return [
        _tile(_percent(hits / max(n_true, 1)), "anomalies caught", f"{hits:,} of {n_true:,} readings", "hit"),
        _tile(_percent(false / max(n_normal, 1)), "false alarms seen", note, "false"),
    ]


def _tile(number: str, label: str, note: str, kind: str = "") -> str:
    lines = f"<b>{escape(number)}</b><span>{escape(label)}</span><small>{escape(note)}</small>"
    return f'<div class="tile {kind}">{lines}</div>'


def _not_judged(missing: int, waiting: int) -> str:
    parts = [f"{missing:,} missing"] if missing else []
    parts += [f"{waiting:,} without a verdict yet"] if waiting else []
    return ", ".join(parts) or "none missing"


def _scope(report: Judged) -> str:
    times = _local_times(report)
    n = len(report.sensors)
    who = f"{n:,} sensors" if n > 1 else "1 sensor"
    if not len(times):
        return who
    if not _has_clock(report):
        return f"{who}, ticks {times[0]:,} to {times[-1]:,}"
    first, last = (str(time.astype("datetime64[m]")).replace("T", " ") for time in (times[0], times[-1]))
    zone = f" ({report.panel.time_zone})" if report.panel.time_zone else ""
    return (
        f"{who}, one reading every {_duration(report.panel.step).removeprefix('1 ')}, {first} to {last}{zone}"
    )


def _section(heading: str, guide: str, body: str) -> str:
    return f'<section><h2>{heading}</h2><p class="guide">{guide}</p>{body}</section>'


def _reading_guide(report: Judged, known: _Known, named: bool) -> str:
    keys = [
        _key(f'<path d="M1 9 L7 4 L12 8 L19 3" fill="none" stroke="{_INK}" stroke-width="1.6"/>', "reading"),
        _key(f'<path d="M1 7 H19" stroke="{_BLUE}" stroke-width="1.8" stroke-dasharray="4 2"/>', "expected"),
        _key(f'<rect x="1" y="2" width="18" height="9" fill="{_BAND}"/>', "range without alarm"),
        _key(f'<path d="M5 11 V5 M10 11 V5 M15 11 V5" stroke="{_FAINT}" stroke-width="1.6"/>', "missing"),
    ]
    keys += [_key(_symbol(mark), mark.label) for mark in _kinds(known)]
    keys += [
        _key(f'<rect x="1" y="1" width="18" height="11" fill="{colour}"/>', name)
        for name, colour in _grounds(known)
    ]
    chosen = (
        "Shown are, of each sensor,"
        if named
        else "Shown are up to two sensors, apart where possible, and of each"
    )
    by = "most known anomalies, found or not" if _any_known(known) else "strongest alarms"
    return (
        "The p-value says how rare so strange a reading is among this sensor's usual ones; "
        f"strange is up, and an alarm is p &le; {report.alpha:g} (dashed line). {chosen} the days with the {by}."
        f'</p><p class="keys">{"".join(keys)}'
    )


def _key(drawing: str, text: str) -> str:
    return f'<span><svg viewBox="0 0 20 13" aria-hidden="true">{drawing}</svg>{escape(text)}</span>'


def _symbol(mark: _Mark) -> str:
    if mark.shape == "o":
        return f'<circle cx="10" cy="6.5" r="4.5" fill="{mark.colour}"/>'
    if mark.shape == "s":
        return f'<rect x="6" y="2.5" width="8" height="8" fill="{mark.colour}"/>'
    if mark.shape == "D":
        return f'<path d="M10 1.5 L15 6.5 L10 11.5 L5 6.5 Z" fill="white" stroke="{mark.colour}" stroke-width="1.7"/>'
    return f'<path d="M6 2.5 L14 10.5 M14 2.5 L6 10.5" stroke="{mark.colour}" stroke-width="3"/>'


def _details(report: Judged, shown: Sequence[int], known: _Known, unit: str) -> str:
    matplotlib = _matplotlib()
    drawings = []
    for sensor in shown:
        with matplotlib.rc_context(_STYLE):
            drawing = matplotlib.figure.Figure(figsize=(11.6, 5.6), layout="constrained")
            _draw_sensor(drawing, report, sensor, known, unit, overview=True)
        name = escape(report.sensors[sensor])
        drawings.append(
            f'<figure class="wide" aria-label="Readings and p-values of {name}"><figcaption><b>{name}</b> '
            f"{escape(_verdicts(report, sensor))}</figcaption>{_svg(drawing, f'sensor{sensor}')}</figure>"
        )
    return "".join(drawings)


def _map_guide(report: Judged) -> str:
    laid_out = report.panel.positions is None or not np.isfinite(report.panel.positions).all()
    where = "Sensors without positions are laid out so that neighbours lie together." if laid_out else ""
    return (
        "The darker a sensor, the more of its readings were alarms; the sensors shown above have a thick rim. "
        "A sensor that is much darker than the others is worth a visit. " + where
    )


def _network(report: Judged, shown: Sequence[int]) -> str:
    matplotlib = _matplotlib()
    with matplotlib.rc_context(_STYLE):
        drawing = matplotlib.figure.Figure(figsize=(6.6, 5.6), layout="constrained")
        _draw_map(drawing.subplots(), report, shown)
    picture = _svg(drawing, "map")
    for k in range(len(report.sensors)) if len(report.sensors) <= _SINGLE else ():
        tip = f"<title>{escape(report.sensors[k])}: {escape(_verdicts(report, k))}</title>"
        picture = picture.replace(f'<g id="sensor-{k}">', f'<g id="sensor-{k}">{tip}', 1)
    return f'<div class="split"><figure aria-label="Map of the network">{picture}</figure>{_ranking(report)}</div>'


def _verdicts(report: Judged, sensor: int) -> str:
    alarms = report.alarms[:, sensor]
    n_alarms, n_tested = int(alarms.sum()), int((np.isfinite(report.p_values[:, sensor]) | alarms).sum())
    if not n_tested:
        return "no verdicts"
    return f"{n_alarms:,} alarms in {n_tested:,} readings ({_percent(n_alarms / n_tested)})"


def _ranking(report: Judged, n: int = 10) -> str:
    share, n_tested = _shares(report)
    order = [k for k in np.argsort(-share, kind="stable").tolist() if n_tested[k]][:n]
    most = max((share[k] for k in order), default=0.0) or 1.0
    rows = "".join(
        f"<tr><th>{escape(report.sensors[k])}</th>"
        f'<td class="bar"><i style="width:{100 * share[k] / most:.0f}%"></i></td><td>{_percent(share[k])}</td>'
        f"<td>{int(report.alarms[:, k].sum()):,} of {n_tested[k]:,}</td>"
        f"<td>{_smallest(report.p_values[:, k])}</td></tr>"
        for k in order
    )
    return (
        '<div class="ranking"><table><thead><tr><th>Sensor</th><th colspan="2">Share of alarms</th><th>Alarms</th>'
        f"<th>Smallest p</th></tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _smallest(p: Floats) -> str:
    smallest = float(np.fmin.reduce(p))
    return "" if np.isnan(smallest) else f"{smallest:.1g}" if smallest < 0.01 else f"{smallest:.2g}"


def _episode_guide(report: Judged) -> str:
    return (
        "Alarms of the same sensor or of neighbours, a few ticks apart, are one episode. Strongest first. "
        f"At an alarm level of {_asked(report)}, weak and short ones are often chance."
        if report.episodes
        else "No alarm, no episode."
    )


def _episodes(report: Judged, known: _Known) -> str:
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


def _episode(report: Judged, episode: Episode, column: dict[str, int], known: _Known, picture: bool) -> str:
    first, last = np.searchsorted(
        report.times, np.array([episode.start, episode.end], dtype=report.times.dtype)
    )
    columns = [column[name] for name in episode.sensors]
    badge = _badge(report, known, slice(first, last + 1), columns)
    when = _stamp(_local_times(report)[first]), _duration((last - first + 1) * report.panel.step)
    names = " ".join(f"<span>{escape(name)}</span>" for name in episode.sensors[:12])
    names += f" <span>+{len(episode.sensors) - 12}</span>" if len(episode.sensors) > 12 else ""
    spark = _spark(report, column[episode.peak[1]], int(first), int(last)) if picture else ""
    return (
        f'<li><div class="when"><time>{when[0]}</time><small>{when[1]}</small></div>'
        f'<div class="what"><p>{escape(episode.sentence())} {badge}</p><div class="names">{names}</div></div>'
        f"{spark}</li>"
    )


def _badge(report: Judged, known: _Known, rows: slice, columns: list[int]) -> str:
    """What an episode was, as far as anybody knows."""
    truth = known.anomalies
    if truth is not None and (truth & report.alarms)[rows][:, columns].any():
        mark, text, kind = _HIT, "known anomaly", "hit"
    elif known.holidays[rows].any():
        mark, text, kind = _EXCUSED, "holiday", "excused"
    elif truth is not None:
        mark, text, kind = _FALSE, "nothing known", "false"
    else:
        return ""
    symbol = f'<svg viewBox="4 0 12 13" aria-hidden="true">{_symbol(mark)}</svg>'
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
        f'<path d="{_path(x, height[1])}" fill="none" stroke="{_BLUE}" stroke-width="1.2" stroke-dasharray="3 2"/>'
        f'<path d="{_path(x, height[0])}" fill="none" stroke="{_INK}" stroke-width="1.4"/></svg>'
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


def _svg(drawing: Any, name: str) -> str:
    """Inline SVG that takes the page's width and fonts."""
    matplotlib = _matplotlib()
    buffer = io.StringIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    with matplotlib.rc_context({**_STYLE, "svg.fonttype": "none", "svg.hashsalt": name}):
        drawing.savefig(buffer, format="svg", metadata=nothing, dpi=180)
    text = buffer.getvalue()
    head, body = text[text.index("<svg") :].split(">", 1)
    box = head.split('viewBox="', 1)[1].split('"', 1)[0]
    return f'<svg viewBox="{box}" role="img">{_numbered(body.strip(), name)}'


def _numbered(svg: str, name: str) -> str:
    """Ids in the order they come: matplotlib's hang on the last bit of the layout, and two drawings share a page."""
    numbers: dict[str, str] = {}

    def number(match: re.Match[str]) -> str:
        return numbers.setdefault(match[0], f"{name}-{len(numbers) + 1}")

    return re.sub(r'(?<=["#])[A-Za-z]*[0-9a-f]{10}(?=["_)])', number, svg)


def _percent(share: float) -> str:
    """Two digits that mean something; a level that was asked for is told as it was given."""
    if share < 0.01:
        return f"{100 * share:.2g} %"
    return f"{100 * share:.1f} %" if share < 0.0995 else f"{100 * share:.0f} %"


def _asked(report: Judged) -> str:
    return f"{100 * report.alpha:g} %"


def _duration(span: np.timedelta64 | int) -> str:
    if not isinstance(span, np.timedelta64):
        return f"{span:,} tick{'s' if span != 1 else ''}"
    seconds = float(span / np.timedelta64(1, "s"))
    for size, name in ((86400.0, "day"), (3600.0, "hour"), (60.0, "minute"), (1.0, "second")):
        if seconds >= size:
            n = seconds / size
            return f"{n:.3g} {name}{'s' if n != 1 else ''}"
    return f"{seconds:g} seconds"


def _document(title: str, body: str) -> str:
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{_CSS}</style></head>\n<body><main>\n{body}\n"
        "<footer>Written by ECAD. This file is complete: no script, nothing from the network.</footer>\n"
        "</main></body></html>\n"
    )


_CSS = """
:root{--ink:#1d2b36;--soft:#5b6b78;--line:#dde3e7;--hit:#007a59;--false:#b34e00}
*{box-sizing:border-box}
body{margin:0;background:#f5f6f4;color:var(--ink);
font:16px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
main{max-width:1180px;margin:0 auto;padding:40px 24px 56px}
.brand{margin:0 0 6px;font-size:13px;font-weight:700;letter-spacing:.14em;color:#0072b2}
h1{margin:0;font-size:clamp(28px,4.2vw,42px);line-height:1.12;letter-spacing:-.02em}
.lead{margin:10px 0 24px;color:var(--soft);font-size:17px}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(165px,1fr));gap:12px}
.tile{background:#fff;border:1px solid var(--line);border-radius:10px;padding:14px 16px}
.tile b{display:block;font-size:28px;line-height:1.15;letter-spacing:-.01em;font-variant-numeric:tabular-nums}
.tile span{display:block;font-weight:600;font-size:14px}
.tile small{color:var(--soft);font-size:13px}
.tile.hit b{color:var(--hit)}.tile.false b{color:var(--false)}
section{margin-top:44px}
h2{margin:0 0 4px;font-size:22px;letter-spacing:-.01em}
.guide{margin:0 0 12px;color:var(--soft);max-width:78ch}
.keys{display:flex;flex-wrap:wrap;gap:6px 18px;margin:0 0 14px;font-size:14px}
.keys span{display:inline-flex;align-items:center;gap:6px}
.keys svg{width:22px;height:14px}
figure{margin:0 0 14px;background:#fff;border:1px solid var(--line);border-radius:10px;
padding:14px 12px 8px;overflow-x:auto}
figure svg{display:block;width:100%;height:auto}
figcaption{margin:0 6px 6px;color:var(--soft);font-size:14px}
figcaption b{color:var(--ink);font-size:18px;margin-right:8px}
figure.wide svg{min-width:720px}
figure svg text{font-family:system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif!important}
.split{display:grid;grid-template-columns:minmax(0,1.25fr) minmax(0,1fr);gap:14px;align-items:stretch}
.split figure{margin:0}
.ranking{background:#fff;border:1px solid var(--line);border-radius:10px;padding:10px 14px;overflow-x:auto}
.ranking table{width:100%;border-spacing:0;font-size:14px;font-variant-numeric:tabular-nums}
.ranking th,.ranking td{padding:9px 6px;text-align:right;border-bottom:1px solid #eef1f3;white-space:nowrap}
.ranking thead th{color:var(--soft);font-weight:600;font-size:12.5px}
.ranking tbody tr:last-child>*{border-bottom:0}
.ranking th:first-child,.ranking th[colspan]{text-align:left}
.ranking .bar{width:34%;text-align:left}
.bar i{display:block;height:10px;border-radius:2px;background:#d98544;min-width:1px}
ol{list-style:none;margin:0;padding:0;background:#fff;border:1px solid var(--line);border-radius:10px}
li{display:grid;grid-template-columns:128px minmax(0,1fr) 160px;gap:4px 18px;align-items:center;padding:12px 16px;
border-bottom:1px solid #eef1f3}
li:last-child{border-bottom:0}
details li{grid-template-columns:128px minmax(0,1fr)}
.when time{display:block;font-size:14px;font-variant-numeric:tabular-nums}
.when small{color:var(--soft)}
.what p{margin:0 0 4px;line-height:1.4}
.names span{display:inline-block;font-size:12.5px;color:var(--soft);background:#eef2f4;border-radius:4px;
padding:0 6px;margin:0 3px 2px 0}
.badge{display:inline-flex;align-items:center;gap:4px;font-size:12.5px;font-weight:600;white-space:nowrap}
.badge svg{width:11px;height:12px}
.badge.excused{color:#4f6d8c}.badge.hit{color:var(--hit)}.badge.false{color:var(--false)}
.spark{width:160px;height:44px}
details{margin-top:12px}
summary{cursor:pointer;padding:8px 2px;font-weight:600;color:#0072b2}
footer{margin-top:40px;color:var(--soft);font-size:13px}
@media (max-width:860px){.split{grid-template-columns:minmax(0,1fr)}main{padding:24px 14px 40px}
li,details li{grid-template-columns:minmax(0,1fr)}.when time,.when small{display:inline;margin-right:8px}}
@media print{body{background:#fff}figure,li{break-inside:avoid}}
"""

__all__ = ["figure", "page", "save_png"]
