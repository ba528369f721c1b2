"""Given -> step, Grid and (time, sensor) values: times onto their ticks, duplicates settled, blow-ups refused."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from ..errors import PanelError
from .arrays import BoolArray, FloatArray, IntArray, Step
from .clock import DAY, show_time, stated_step, step_text, week_seconds
from .given import Earlier, Given
from .options import Options

MOST_CELLS = 50_000_000  # of a panel that is mostly holes
MOST_TICKS = 100  # ticks for each time given, when the step was inferred
JITTER = 10  # a time may lie step / JITTER beside its tick
_ROUND_STEPS = [
    *(10**p * n for p in range(6) for n in (1, 2, 5)),
    *(1_000_000 * n for n in (1, 2, 3, 5, 10, 15, 20, 30)),
    *(60_000_000 * n for n in (1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30)),
    *(3_600_000_000 * n for n in (1, 2, 3, 4, 6, 8, 12)),
    *(DAY * n for n in (1, 7)),
]


@dataclass(frozen=True)
class Grid:
    """Ticks at equal steps from the first on."""

    first: int
    step: int
    n_times: int
    clock: bool

    def index(self, ticks: IntArray) -> IntArray:
        return np.asarray((ticks - self.first + self.step // 2) // self.step, dtype=np.int64)

    def times(self) -> npt.NDArray[Any]:
        ticks = self.first + self.step * np.arange(self.n_times, dtype=np.int64)
        return ticks.view("datetime64[us]") if self.clock else ticks

    def timedelta(self) -> Step:
        return np.timedelta64(self.step, "us") if self.clock else self.step


def beside_tick(moment: int, tick: int, step: int, clock: bool) -> int | None:
    """The tick of the grid through `tick` that a moment lies on, or beside by at most step / JITTER; or None."""
    slack = step // JITTER if clock else 0
    steps, off = divmod(moment - tick + slack, step)
    return tick + steps * step if off <= 2 * slack else None


def find_grid(given: Given, options: Options, like: Earlier | None, repairs: dict[str, int]) -> Grid:
    """The step, stated or inferred, and the ticks that every time lies on or beside."""
    import pandas as pd

    stamps = given.stamps
    unique = np.sort(pd.unique(stamps.ticks))
    stated = stated_step(options.step, stamps.clock)
    anchor = None if like is None else int(np.asarray(like.last_time).astype(np.int64))
    step = stated or _infer_step(unique, given)
    anchor = _anchor(unique, step, stamps.clock, anchor)
    if anchor is None:
        _refuse_off_grid(unique, step, given, stated is not None, like)
    first = anchor + (int(unique[0]) - anchor + step // 2) // step * step
    n_times = (int(unique[-1]) - first + step // 2) // step + 1
    _refuse_blow_up(n_times, len(unique), step, given, stated is not None)
    grid = Grid(first, step, n_times, stamps.clock)
    index = grid.index(unique)
    repairs["snapped times"] = int(np.count_nonzero(first + index * step != unique))
    repairs["missing ticks"] = n_times - 1 - int(np.count_nonzero(np.diff(index)))
    return grid


def _infer_step(unique: IntArray, given: Given) -> int:
    if not given.stamps.clock:
        return _infer_ticks(unique)
    if len(unique) < 2:
        raise PanelError(
            f"The data has only one time, {given.stamps.show(0)}, so its step is unknown; say step=, such "
            "as step='1h'."
        )
    differences = np.diff(unique)
    every, exact = _most_common(differences), 0
    if not (differences % every).any():
        exact = every
    own = differences if given.codes is None else _own_differences(given, differences)
    if exact and exact * JITTER >= _most_common(own):
        return exact
    # clocks that wander: a round step near the middle difference says more than any single one
    middle = float(np.median(own))
    near = min(_ROUND_STEPS, key=lambda step: abs(math.log(step / middle)))
    usual = _most_common(own)
    for step in (near if abs(near - middle) <= near / 20 else 0, usual, 0 if exact else every):
        if step and _anchor(unique, step, True, None) is not None:
            return step
    return usual


def _infer_ticks(unique: IntArray) -> int:
    if len(unique) > 1 and (common := _most_common(np.diff(unique))) != 1:
        raise PanelError(
            f"The times are whole numbers, mostly {common} apart (such as {int(unique[0])} and {int(unique[1])}); "
            f"say time_unit='s' (or 'ms', ...) if they count from 1970, or step={common} (or step=1) if they are "
            "tick numbers."
        )
    return 1


def _most_common(differences: IntArray) -> int:
    values, counts = np.unique(differences, return_counts=True)
    return int(values[np.argmax(counts)])  # the smallest of equals


def _own_differences(given: Given, fallback: IntArray) -> IntArray:
    """Differences between successive times of one sensor, from at most twenty sensors."""
    assert given.codes is not None
    chosen = np.unique(np.linspace(0, len(given.sensors) - 1, 20).astype(np.int64))
    wanted = np.zeros(len(given.sensors), dtype=bool)
    wanted[chosen] = True
    rows = wanted[given.codes]
    codes, ticks = given.codes[rows], given.stamps.ticks[rows]
    order = np.lexsort((ticks, codes))
    differences = np.diff(ticks[order])[np.diff(codes[order]) == 0]
    differences = differences[differences > 0]
    return differences if len(differences) else fallback


def _anchor(unique: IntArray, step: int, clock: bool, known: int | None) -> int | None:
    """A tick of the grid of this step that every time lies on, or beside by at most step / JITTER; None without one."""
    beside = unique % step
    slack = step // JITTER if clock else 0
    if known is not None:
        return known if _within(beside, known % step, step, slack) else None
    if (beside == beside[0]).all():
        return int(beside[0])
    values, counts = np.unique(beside, return_counts=True)
    common = int(values[np.argmax(counts)])
    if 2 * counts.max() >= len(unique) and _within(values, common, step, slack):
        return common
    middle = _circular_mean(values, counts, step)
    for unit in (step, 3_600_000_000, 60_000_000, 1_000_000, 1_000, 1):  # the roundest that fits
        candidate = round(middle / unit) * unit % step
        if unit <= step and _within(values, candidate, step, slack):
            return candidate
    return None


def _within(beside: IntArray, anchor: int, step: int, slack: int) -> bool:
    return bool((_deviation(beside, anchor, step) <= slack).all())


def _deviation(beside: IntArray, anchor: int, step: int) -> IntArray:
    ahead = (beside - anchor) % step
    return np.minimum(ahead, step - ahead)


def _circular_mean(values: IntArray, counts: IntArray, step: int) -> float:
    angle = np.angle((counts * np.exp(2j * np.pi * (values / step))).sum())
    return float(angle) / (2 * np.pi) % 1.0 * step


def _refuse_off_grid(
    unique: IntArray, step: int, given: Given, stated: bool, like: Earlier | None
) -> NoReturn:
    stamps = given.stamps
    values, counts = np.unique(unique % step, return_counts=True)
    anchor = (
        int(values[np.argmax(counts)])
        if like is None
        else int(np.asarray(like.last_time).astype(np.int64)) % step
    )
    off = _deviation(unique % step, anchor, step) > (step // JITTER if stamps.clock else 0)
    tick = int(unique[int(np.argmax(off))])
    who = "stated" if stated else "most common"
    time = show_time(np.datetime64(tick, "us") if stamps.clock else tick, stamps.zone)
    finer = int(np.gcd.reduce(np.append(np.diff(unique), step)))
    size = "timedelta64[us]" if stamps.clock else "int64"
    remedy = "resample to equal steps first"
    if like is None and finer * MOST_TICKS >= step and finer < step:
        remedy = f"say step={_as_option(_text_of(finer, size))}, on which all times lie, or resample"
    raise PanelError(
        f"The time {time} lies off the grid of the {who} step {_text_of(step, size)}"
        f"{' (more than a tenth of it from any tick)' if stamps.clock else ''}; {remedy}."
    )


def _text_of(step: int, size: str) -> str:
    return step_text(np.timedelta64(step, "us") if size != "int64" else step)


def _as_option(text: str) -> str:
    return text if text.isdigit() else repr(text)


def _refuse_blow_up(n_times: int, given_times: int, step: int, given: Given, stated: bool) -> None:
    cells = n_times * len(given.sensors)
    size = "timedelta64[us]" if given.stamps.clock else "int64"
    text = _text_of(step, size)
    ask = "step='1h' or the like" if given.stamps.clock else "time_unit='s' if the numbers count from 1970"
    if not stated and n_times > MOST_TICKS * given_times:
        raise PanelError(
            f"The inferred step {text} would make {n_times:,} ticks of {given_times:,} given times; state the step, "
            f"{ask}, or step={_as_option(text)} if the gaps are real (large ones are better split)."
        )
    if cells > MOST_CELLS and cells > 10 * given.values.size:
        raise PanelError(
            f"The {'stated' if stated else 'inferred'} step {text} would make {n_times:,} ticks x "
            f"{len(given.sensors):,} sensors = {cells:,} cells of {given.values.size:,} given ones; state a step "
            f"that fits the data, {ask}."
        )


def fill_grid(given: Given, grid: Grid, options: Options, repairs: dict[str, int]) -> FloatArray:
    """Readings onto the grid, each in its cell; several for one cell are settled by `duplicates`."""
    index = grid.index(given.stamps.ticks)
    n_sensors = len(given.sensors)
    if given.codes is None and len(index) == grid.n_times and (np.diff(index) == 1).all():
        return given.values
    values = np.full((grid.n_times, n_sensors), np.nan)
    if given.codes is None:
        alone = np.bincount(index, minlength=grid.n_times)[index] == 1
        values[index[alone]] = given.values[alone]
        rows = np.flatnonzero(~alone)
        observed = ~np.isnan(given.values[rows])
        cells = (index[rows, None] * n_sensors + np.arange(n_sensors))[observed]
        readings = given.values[rows][observed]
    else:
        seen = ~np.isnan(given.values)
        cells = (index * n_sensors + given.codes)[seen]
        readings = given.values[seen]
    repairs["duplicates"] = _settle(values, cells, readings, options.duplicates, grid, given)
    return values


def _settle(
    values: FloatArray, cells: IntArray, readings: FloatArray, rule: str, grid: Grid, given: Given
) -> int:
    """Write the readings into their cells; the count of those that went into a cell already written."""
    flat = values.reshape(-1)
    flat[cells] = readings  # of several for one cell the last stays
    taken = np.zeros(flat.size, dtype=bool)
    taken[cells] = True
    several = len(cells) - int(np.count_nonzero(taken))
    if not several:
        return 0
    differs = flat[cells] != readings
    if differs.any() and rule == "error":
        _refuse_duplicate(int(cells[differs].min()), cells, readings, grid, given)
    if rule == "first":
        flat[cells[::-1]] = readings[::-1]
    elif rule == "mean" and differs.any():
        _write_means(flat, cells, readings, differs)
    return several


def _write_means(flat: FloatArray, cells: IntArray, readings: FloatArray, differs: BoolArray) -> None:
    unequal = np.isin(cells, cells[differs])
    cells, readings = cells[unequal], readings[unequal]
    order = np.lexsort((readings, cells))  # summed in one order, however the rows came
    cells, readings = cells[order], readings[order]
    starts = np.flatnonzero(np.diff(cells, prepend=-1))
    counts = np.diff(np.append(starts, len(cells)))
    flat[cells[starts]] = np.add.reduceat(readings / np.repeat(counts, counts), starts)


def _refuse_duplicate(cell: int, cells: IntArray, readings: FloatArray, grid: Grid, given: Given) -> NoReturn:
    t, k = divmod(cell, len(given.sensors))
    one = readings[cells == cell]
    tick = grid.times()[t]
    time = show_time(tick if grid.clock else int(tick), given.stamps.zone)
    remedy = "say duplicates='first', 'last' or 'mean'"
    if (
        grid.clock
        and given.stamps.zone is None
        and 6 * 86_400 <= int(week_seconds(tick)) < 6 * 86_400 + 4 * 3_600
    ):
        # clocks are set back in the night to a Sunday
        remedy = f"if the clock was set back, say time_zone= or give UTC; otherwise {remedy}"
    raise PanelError(
        f"Sensor {given.sensors[k]!r} has two different readings at {time}: {one[0]!s} and "
        f"{one[one != one[0]][0]!s}; {remedy}."
    )
