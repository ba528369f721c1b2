"""readings + clock -> usual level and spread of each sensor at each hour of the day or week.

The level of an hour of the week is its median, drawn towards that of the same hour on days of its kind (weekday,
Saturday, Sunday), that towards the hour of any day, and that towards the sensor's own: an hour seen a few times only
must not have a level that is mostly noise. How far it is drawn is learned, for each sensor and step: traffic has hours
and Sundays, dust has neither, and only the readings know.

The tables are learned once and frozen. A training reading must not help to draw the level that it is compared with:
its residual would be too small, and the p-values of new readings with it. So training is cut into contiguous folds and
each is levelled by the others; what comes later is levelled by all. The folds are many, so that the levels of training
and those of later are about equally good, and contiguous, so that a reading a day or a week earlier is mostly measured
from a level that has not seen the target either.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from . import _kernels

Array = np.ndarray[Any, Any]

DAY = 86_400
WEEK = 7 * DAY
N_FOLDS = 25
WEIGHTS = (0.0, 1.0, 4.0, 16.0, 64.0, np.inf)  # how many readings a coarser level may count for
FEWEST = 4  # readings that an hour needs for a spread of its own


@dataclass(frozen=True, eq=False)
class Season:
    """Level and spread tables (fold, sensor, phase); the last fold is the table of all training readings."""

    period: str  # "week" or "day"
    width: int  # seconds of one phase
    level: Array
    spread: Array
    n_training: int  # ticks 0 .. n_training - 1 were fitted

    def phase(self, week_seconds: Array) -> Array:
        """Index of the bin of each time."""
        return phase_of(week_seconds, self.width, self.period)

    def at(self, ticks: Array, week_seconds: Array) -> tuple[Array, Array]:
        """Level and spread (time, sensor) at these ticks."""
        fold = np.minimum(fold_of(ticks, self.n_training), len(self.level) - 1)
        phase = self.phase(week_seconds)
        return self.level[fold, :, phase], self.spread[fold, :, phase]

    def after_training(self) -> Season:
        """The table of all training readings alone: nothing else is needed once training is over."""
        return replace(self, level=self.level[-1:].copy(), spread=self.spread[-1:].copy(), n_training=0)


@dataclass(frozen=True, eq=False)
class Usual:
    """What is usual for each sensor, and so what readings are measured from and in.

    Features and targets are deviations from the usual level in units of the sensor's scale: a lagged reading then means
    the same at every hour, and one that was filled costs the prediction little. Or, not `relative`, they are readings
    as they came.
    """

    centre: Array  # (sensor,)
    scale: Array  # (sensor,)
    season: Season | None
    relative: bool

    @property
    def unit(self) -> Array:
        """(sensor,) what one is, in features and targets."""
        return self.scale if self.relative else np.ones_like(self.scale)

    def after_training(self) -> Usual:
        """Without the tables that only training needs."""
        return self if self.season is None else replace(self, season=self.season.after_training())

    def levels(self, ticks: Array, week_seconds: Array | None) -> tuple[Array, Array]:
        """Usual level and spread (tick, sensor): by the season where there is one, else the sensor's own."""
        if self.season is not None and week_seconds is not None:
            return self.season.at(ticks, week_seconds)
        shape = (len(ticks), len(self.centre))
        return np.broadcast_to(self.centre, shape), np.broadcast_to(self.scale, shape)

    def measure(self, values: Array, level: Array) -> Array:
        """Readings -> features' units."""
        return (values - level) / self.scale if self.relative else values

    def restore(self, numbers: Array, level: Array) -> Array:
        """Features' units -> readings."""
        return level + self.scale * numbers if self.relative else numbers


def scale_of(values: Array) -> tuple[Array, Array, Array]:
    """Centre (median), scale (from the median absolute deviation) and spread (standard deviation) of each sensor.

    A scale or spread of zero, as of a constant sensor, is replaced by the next coarser measure; a sensor without a
    reading has centre 0 and scale 1.
    """
    middle, count = _median(values)
    centre = np.where(count > 0, middle, 0.0)
    deviation = np.where(count > 0, _median(np.abs(values - centre))[0], 0.0)
    seen = ~np.isnan(values)
    n = np.maximum(count, 1)
    mean = np.where(seen, values, 0.0).sum(axis=0) / n
    spread = np.sqrt(np.where(seen, (values - mean) ** 2, 0.0).sum(axis=0) / n)
    low, high = np.where(seen, values, np.inf).min(axis=0), np.where(seen, values, -np.inf).max(axis=0)
    spread = np.where(low >= high, np.maximum(np.abs(centre), 1.0), spread)
    scale = np.where(deviation > 0, 1.4826 * deviation, spread)
    return centre, scale, np.where(count > 0, spread, 1.0)


def choose_period(span_seconds: float, asked: str | None) -> str | None:
    """`"auto"`: a week from three weeks of training on, a day from three days on, else none."""
    if asked != "auto":
        return asked
    if span_seconds >= 3 * WEEK:
        return "week"
    return "day" if span_seconds >= 3 * DAY else None


def phase_of(week_seconds: Array, width: int, period: str) -> Array:
    """Bin of the week or of the day."""
    seconds = week_seconds if period == "week" else week_seconds % DAY
    return np.asarray(seconds // width, dtype=np.int64)


def fold_of(ticks: Array, n_training: int) -> Array:
    """Fold of each tick: equal contiguous ones over training, one more for everything later."""
    return np.where(ticks < n_training, ticks * N_FOLDS // max(n_training, 1), N_FOLDS)


def fit_season(
    values: Array, week_seconds: Array, step_seconds: int, period: str, centre: Array, scale: Array
) -> Season:
    """Learn the tables from training readings (time, sensor)."""
    width = max(step_seconds, 3600)
    phase = phase_of(week_seconds, width, period)
    hour_of, kind_of = _hours_and_kinds(width, period)
    n_hours = int(hour_of.max()) + 1
    fold = fold_of(np.arange(len(values)), len(values))

    level = _levels(values, phase, fold, (hour_of, hour_of + n_hours * kind_of), centre)
    away = np.abs(values - level[fold, phase])
    typical, _ = _medians(away, np.zeros_like(phase), fold, 1)
    by_hour, n = _medians(away, hour_of[phase], fold, n_hours)
    spread = np.where(n >= FEWEST, by_hour, typical)[:, hour_of] + 0.1 * typical
    spread = np.where(spread > 0, spread, scale)
    return Season(period, width, level.swapaxes(1, 2).copy(), spread.swapaxes(1, 2).copy(), len(values))


def _levels(values: Array, phase: Array, fold: Array, coarser: tuple[Array, ...], centre: Array) -> Array:
    """(fold, phase, sensor): medians of all readings, of each of the `coarser` groups of phases, of each phase.

    Each is drawn towards the one before, as if that were the median of so many readings more. The number is the one of
    WEIGHTS that brings training nearest to levels that have not seen it: three choices a sensor, made once.
    """
    n_phases = len(coarser[0])
    own, n = _medians(values, np.zeros_like(phase), fold, 1)
    level = np.repeat(np.where(n > 0, own, centre), n_phases, axis=1)
    for group_of in (*coarser, np.arange(n_phases)):
        finer, n = _medians(values, group_of[phase], fold, int(group_of.max()) + 1)
        finer, n = finer[:, group_of], n[:, group_of]
        away = np.where(n > 0, finer - level, 0.0)
        distances = np.empty((len(WEIGHTS), len(centre)))
        _kernels.distances_when_drawn(values, fold, phase, level, away, n, np.array(WEIGHTS), distances)
        weight = np.array(WEIGHTS)[distances.argmin(axis=0)]
        level = level + n / np.maximum(n + weight, 1.0) * away
    return level


def _hours_and_kinds(width: int, period: str) -> tuple[Array, Array]:
    """For each phase the hour of the day in which it begins, and the kind of its day: weekday, Saturday, Sunday."""
    start = np.arange(-(-(WEEK if period == "week" else DAY) // width)) * width
    return start % DAY // width, np.clip(start // DAY - 4, 0, 2)


def _medians(values: Array, group: Array, fold: Array, n_groups: int) -> tuple[Array, Array]:
    """Median of each group's observed readings outside each fold, and how many there are: (fold, group, sensor).

    The last of the folds leaves nothing out.
    """
    shape = (N_FOLDS + 1, n_groups, values.shape[1])
    middle, count = np.empty(shape), np.empty(shape, dtype=np.int64)
    order = np.argsort(group, kind="stable")
    edges = np.searchsorted(group[order], np.arange(n_groups + 1))
    _kernels.medians_outside(values, order, edges, fold, middle, count)
    return middle, count


def _median(values: Array) -> tuple[Array, Array]:
    """Median of each sensor's observed readings, and how many there are."""
    count = np.count_nonzero(~np.isnan(values), axis=0)
    in_order = np.sort(values, axis=0)  # NaN last
    low, high = (
        np.take_along_axis(in_order, place[None], axis=0)[0]
        for place in (np.maximum(count - 1, 0) // 2, np.minimum(count // 2, len(values) - 1))
    )
    return 0.5 * (low + high), count
