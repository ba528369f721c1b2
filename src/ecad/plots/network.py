"""sensors, roads or neighbours, shares of alarms -> a map of the network."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .canvas import load_matplotlib
from .judged import Floats, Judged, shares
from .marks import INK, LINE, SOFT
from .words import asked, percent

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SHARES = (
    (0.0, "#d3e3ee"),
    (0.5, "#f6ecd4"),  # as asked
    (0.66, "#efa456"),
    (0.83, "#cc4f12"),
    (1.0, "#64190a"),
)
_Side = tuple[tuple[float, float], str, str]
_SIDES: tuple[_Side, ...] = (
    ((0.0, -1.0), "center", "top"),
    ((0.0, 1.0), "center", "bottom"),
    ((1.0, 0.0), "left", "center"),
    ((-1.0, 0.0), "right", "center"),
)
_NAME_SIZE = 8.0  # points
_NAMED = 48  # sensors whose names fit on the map
SINGLE = 400  # sensors drawn one by one, so that each can say its name under the mouse


def draw_map(axes: Axes, report: Judged, shown: Sequence[int]) -> None:
    """Sensors at their places, coloured by the share of their readings that were alarms."""
    matplotlib = load_matplotlib()
    places, scale = _places(report)
    a, b = _links(report)
    strokes = np.stack([places[a], places[b]], axis=1)
    axes.add_collection(matplotlib.collections.LineCollection(strokes, colors=LINE, linewidths=1.4, zorder=1))
    share, n_tested = shares(report)
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
        axes.scatter(x, y, s=size, color=faces[k], edgecolor=INK, linewidth=rims[k], zorder=3, gid=gid)
    _frame(axes, places)
    _name_sensors(axes, report, places, share, shown, size)
    _scale_bar(axes, places, scale)
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
    return np.array_split(np.arange(n), n if n <= SINGLE else 1)


def _name_sensors(
    axes: Axes, report: Judged, places: Floats, share: Floats, shown: Sequence[int], size: float
) -> None:
    """Each name on the side of its sensor where it covers least; where it would cover another name, none."""
    named = range(len(share)) if len(share) <= _NAMED else np.argsort(-share)[:6].tolist()
    reach = 0.5 * np.sqrt(size) + 2.5
    unit = _points(axes)
    points = places * unit
    sheet = unit * np.array([axes.get_xlim(), axes.get_ylim()]).T.ravel()
    taken = np.hstack([points - reach, points + reach])  # left, bottom, right, top: sensors, then names
    for k in dict.fromkeys([*shown, *named]):
        boxes = np.array([_name_box(points[k], report.sensors[k], reach, side) for side in _SIDES])
        outside = (boxes[:, 2:] - boxes[:, :2]).prod(axis=1) - _covered(boxes, sheet[None])
        covered = _covered(boxes, np.delete(taken, k, axis=0)) + outside
        best = int(np.argmin(covered))
        hides = _covered(boxes[best : best + 1], taken[len(places) :])[0] > 0
        if k not in shown and (hides or outside[best] > 1.0):
            continue
        taken = np.vstack([taken, boxes[best]])
        (right, up), across, upright = _SIDES[best]
        name = axes.annotate(
            report.sensors[k],
            (float(places[k, 0]), float(places[k, 1])),
            xytext=(reach * right, reach * up),
            textcoords="offset points",
            ha=across,
            va=upright,
            fontsize=_NAME_SIZE,
            fontweight="bold" if k in shown else "normal",
            color=INK if k in shown else SOFT,
            zorder=4,
        )
        name.set_in_layout(False)  # else long names would push the map together


def _points(axes: Axes) -> float:
    """How long one unit of the map will be on paper, in points."""
    box = axes.get_window_extent()
    widths = np.array([np.ptp(axes.get_xlim()), np.ptp(axes.get_ylim())])
    return float((np.array([box.width, box.height]) / widths).min() * 72.0 / axes.figure.dpi)


def _name_box(at: Floats, name: str, reach: float, side: _Side) -> Floats:
    """Left, bottom, right, top of a name, as letters are wide on average."""
    width, height = 0.56 * _NAME_SIZE * len(name), 1.2 * _NAME_SIZE
    (right, up), _, _ = side
    centre = at + np.array([right * (reach + width / 2), up * (reach + height / 2)])
    half = np.array([width, height]) / 2
    return np.concatenate([centre - half, centre + half])


def _covered(boxes: Floats, others: Floats) -> Floats:
    """How much of the others each box covers."""
    low = np.maximum(boxes[:, None, :2], others[None, :, :2])
    high = np.minimum(boxes[:, None, 2:], others[None, :, 2:])
    return np.asarray(np.maximum(high - low, 0.0).prod(axis=2).sum(axis=1))


def _share_bar(axes: Axes, colours: Any, norm: Any, report: Judged) -> None:
    matplotlib = load_matplotlib()
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
    bar.set_ticks(ticks, labels=["0", asked(report), *(percent(tick) for tick in ticks[2:])])
    bar.ax.tick_params(length=3)
    bar.set_label(f"readings with an alarm ({asked(report)} asked for)", fontsize=8.5)


def _scale_bar(axes: Axes, places: Floats, scale: float | None) -> None:
    """A length one can read: 1, 2 or 5 times a power of ten kilometres."""
    width = float(np.ptp(places[:, 0])) if len(places) > 1 else 0.0
    if scale is None or width <= 0.0:
        return
    rough = 0.25 * width
    power = 10.0 ** np.floor(np.log10(rough))
    length = power * max(step for step in (1, 2, 5) if step * power <= rough or step == 1)
    x, y = places[:, 0].min(), places[:, 1].min() - 0.12 * max(float(np.ptp(places[:, 1])), width)
    axes.plot([x, x + length], [y, y], color=SOFT, lw=1.4, solid_capstyle="butt", zorder=2)
    text = f"{length:g} km" if length >= 1 else f"{1000 * length:g} m"
    axes.text(x + length + 0.015 * width, y, text, va="center", fontsize=8, color=SOFT)


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
