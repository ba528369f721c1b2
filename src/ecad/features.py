"""recent past of self and neighbours -> X, y: one row of numbers for each (time, sensor).

A row at time t holds nothing that its own sensor reports at t or that anybody reports later. Its order: for each
neighbour, itself first, the newest `lags` readings, newest first; then further seasonal lags of the sensor; nine
calendar terms; usual level and spread; the neighbours' readings at the same tick.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _kernels

Array = np.ndarray[Any, Any]

DAY, WEEK = 86_400, 604_800
N_CALENDAR = 9


@dataclass(frozen=True)
class Layout:
    """Which numbers make a row."""

    lags: int
    neighbours: int
    seasonal_lags: tuple[int, ...] = ()
    calendar: bool = False
    level: bool = False
    same_tick: bool = False

    @property
    def longest_lag(self) -> int:
        """How far back a row reaches."""
        return max(self.lags, *self.seasonal_lags, 1)

    @property
    def n_features(self) -> int:
        """Length of a row."""
        return (
            self.lags * self.neighbours
            + len(self.seasonal_lags)
            + N_CALENDAR * self.calendar
            + 2 * self.level
            + (self.neighbours - 1) * self.same_tick
        )


def calendar_terms(week_seconds: Array) -> Array:
    """(time, 9): first and second harmonics of day and week, and a flag for the weekend."""
    day = 2 * np.pi * (week_seconds % DAY) / DAY
    week = 2 * np.pi * week_seconds / WEEK
    waves = [wave(turn * angle) for angle in (day, week) for turn in (1, 2) for wave in (np.sin, np.cos)]
    return np.column_stack([*waves, week_seconds >= 5 * DAY])


def neighbours_at(order: Array, neighbours: int, silent: Array) -> Array:
    """(1 or time, sensor, neighbour): a neighbour that is silent (time, sensor) gives its place to a stand-in."""
    if not silent.any():
        return np.ascontiguousarray(order[None, :, :neighbours])
    index = np.empty((len(silent), len(order), neighbours), dtype=np.int64)
    _kernels.stand_in(order, neighbours, silent, index)
    return index


def silence(observed: Array, last_seen: Array, first_tick: int, patience: int) -> Array:
    """(time, sensor): whether a sensor has not been observed in the `patience` ticks before each tick."""
    ticks = first_tick + np.arange(len(observed))[:, None]
    seen = np.vstack([last_seen, np.where(observed, ticks, -1)])
    latest_before = np.maximum.accumulate(seen, axis=0)[:-1]
    return np.asarray((latest_before < ticks - patience) & (ticks >= patience))


def design(
    readings: Array,
    first: int,
    index: Array,
    layout: Layout,
    calendar: Array | None = None,
    level: Array | None = None,
    spread: Array | None = None,
    same_tick: Array | None = None,
    n_times: int = 1,
    dtype: Any = np.float64,
    out: Array | None = None,
) -> Array:
    """Rows X (time, sensor, feature) for `n_times` ticks, the first of which is row `first` of `readings`.

    `readings` (row, sensor) are filled and scaled and reach `layout.longest_lag` rows further back; what is NaN in
    them is NaN in X.
    """
    if out is None:
        out = np.empty((n_times, readings.shape[1], layout.n_features), dtype=dtype)
    none = np.empty((0, 0))
    _kernels.gather_design(
        readings,
        first,
        index,
        layout.lags,
        np.asarray(layout.seasonal_lags, dtype=np.int64),
        np.empty((n_times, 0)) if calendar is None else calendar,
        none if level is None else level,
        none if spread is None else spread,
        np.empty((0, 0, 0)) if same_tick is None else same_tick,
        out,
    )
    return out


@dataclass(eq=False)
class Recent:
    """What the features remember of a stream: the latest filled readings, and when each sensor last spoke."""

    readings: Array  # (longest_lag, sensor), filled and scaled
    last_seen: Array  # (sensor,) tick of the last observed reading
    observed: Array  # (sensor,) whether the newest tick was observed

    def push(self, readings: Array, observed: Array, first_tick: int) -> None:
        """Take in ticks (time, sensor), the oldest fall out."""
        n, length = len(readings), len(self.readings)
        if n == 0:
            return
        if n >= length:
            self.readings = readings[n - length :].copy()
        else:
            self.readings[: length - n] = self.readings[n:].copy()
            self.readings[length - n :] = readings
        ticks = first_tick + np.arange(n)[:, None]
        self.last_seen = np.maximum(self.last_seen, np.where(observed, ticks, -1).max(axis=0))
        self.observed = observed[-1].copy()
