"""alarms and p-values, and what was true -> how good they were.

Readings that were not observed have no verdict: pass `observed` (or leave NaN in p and strength) and they are not
counted anywhere. A share of nothing is NaN, not zero: no alarm has no precision, no anomaly has no recall.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .errors import SettingError

Booleans = NDArray[np.bool_]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class AlarmScore:
    """Alarms counted against the truth, for the network or for one sensor.

    `precision`, `recall` and `f1` count readings; `flagged` is the share of readings with an alarm. `n_found` counts
    the events that had at least one alarm, `delay` is the mean number of ticks from the start of a found event to its
    first alarm. In `sensors` is the same for each sensor, where an event counts for every sensor it touched.
    """

    n_readings: int
    n_true: int
    n_alarms: int
    n_hits: int
    n_events: int
    n_found: int
    delay: float
    sensors: tuple[AlarmScore, ...] = ()

    @property
    def precision(self) -> float:
        return _share(self.n_hits, self.n_alarms)

    @property
    def recall(self) -> float:
        return _share(self.n_hits, self.n_true)

    @property
    def f1(self) -> float:
        return _share(2 * self.n_hits, self.n_alarms + self.n_true)

    @property
    def flagged(self) -> float:
        return _share(self.n_alarms, self.n_readings)

    @property
    def events_found(self) -> float:
        return _share(self.n_found, self.n_events)


@dataclass(frozen=True)
class FalseAlarmRatio:
    """Share of p <= level over level; 1 is what a p-value promises where nothing is wrong."""

    level: float
    ratio: float
    n_alarms: int
    n_readings: int


def score_alarms(
    alarms: ArrayLike,
    truth: ArrayLike,
    observed: ArrayLike | None = None,
    event_numbers: ArrayLike | None = None,
) -> AlarmScore:
    """Alarms against the truth, both (time, sensor).

    `event_numbers` (0: none, as in `Simulation.event_numbers`) says which readings are one event, so that a region that
    fails at once is found by one alarm. Without it, each unbroken run of true readings of a sensor is an event; a
    reading that was not observed doesn't break it.
    """
    flagged, true, seen = _same_shape(alarms, truth, observed)
    flagged, true = flagged & seen, true & seen
    numbers = (
        _runs(true, seen) if event_numbers is None else np.where(true, _grid(event_numbers, true.shape), 0)
    )
    n_sensors = true.shape[1]
    sensors = tuple(
        _count(flagged[:, [k]], true[:, [k]], seen[:, [k]], numbers[:, [k]]) for k in range(n_sensors)
    )
    whole = _count(flagged, true, seen, numbers)
    return replace(whole, sensors=sensors)


def average_precision(strength: ArrayLike, truth: ArrayLike, observed: ArrayLike | None = None) -> float:
    """Precision averaged over the recall, as the threshold on `strength` comes down; NaN strengths are not counted.

    Equal strengths come in together, so the order of the readings can't matter. NaN without a true reading.
    """
    values = np.asarray(strength, dtype=np.float64)
    true = _grid(truth, values.shape).astype(bool)
    kept = ~np.isnan(values)
    if observed is not None:
        kept &= _grid(observed, values.shape).astype(bool)
    values, true = values[kept], true[kept]
    if not true.any():
        return float("nan")
    order = np.argsort(-values, kind="stable")
    values, hits = values[order], np.cumsum(true[order])
    last_of_ties = np.append(np.flatnonzero(np.diff(values)), len(values) - 1)
    hits = hits[last_of_ties]
    return float(np.sum(np.diff(hits, prepend=0) * hits / (last_of_ties + 1)) / hits[-1])


def false_alarm_ratio(
    p_values: ArrayLike,
    levels: Sequence[float] = (0.01, 0.05, 0.1),
    exclude: ArrayLike | None = None,
) -> tuple[FalseAlarmRatio, ...]:
    """Share of p <= level over level, for each level, over readings that have a p and are not in `exclude`.

    Conformal p-values move in steps of 1 / (n + 1): compare with `achievable(level, n) / level`, not with 1, where the
    reference set is small.
    """
    p = np.asarray(p_values, dtype=np.float64)
    kept = ~np.isnan(p)
    if exclude is not None:
        kept &= ~_grid(exclude, p.shape).astype(bool)
    p = p[kept]
    return tuple(_ratio(p, level) for level in levels)


def achievable(alpha: float, n: int) -> float:
    """The largest level up to alpha that p-values against n scores can have: floor(alpha (n + 1)) / (n + 1)."""
    return int(np.floor(alpha * (n + 1) + 1e-9)) / (n + 1)


def _ratio(p: NDArray[np.float64], level: float) -> FalseAlarmRatio:
    n_alarms = int(np.count_nonzero(p <= level))
    return FalseAlarmRatio(level, _share(n_alarms, p.size) / level, n_alarms, int(p.size))


def _count(flagged: Booleans, true: Booleans, seen: Booleans, numbers: Integers) -> AlarmScore:
    n_events, n_found, delay = _events(flagged, numbers)
    return AlarmScore(
        n_readings=int(np.count_nonzero(seen)),
        n_true=int(np.count_nonzero(true)),
        n_alarms=int(np.count_nonzero(flagged)),
        n_hits=int(np.count_nonzero(flagged & true)),
        n_events=n_events,
        n_found=n_found,
        delay=delay,
    )


def _events(flagged: Booleans, numbers: Integers) -> tuple[int, int, float]:
    """How many events there are, how many have an alarm, and the mean ticks until their first one."""
    t, k = np.nonzero(numbers)
    if not len(t):
        return 0, 0, float("nan")
    names, event = np.unique(numbers[t, k], return_inverse=True)
    never = np.iinfo(np.int64).max
    begin = np.full(len(names), never)
    first_alarm = np.full(len(names), never)
    np.minimum.at(begin, event, t)
    hit = flagged[t, k]
    np.minimum.at(first_alarm, event[hit], t[hit])
    found = first_alarm < never
    delay = float(np.mean(first_alarm[found] - begin[found])) if found.any() else float("nan")
    return len(names), int(np.count_nonzero(found)), delay


def _runs(true: Booleans, seen: Booleans) -> Integers:
    """Number the unbroken runs of true readings, sensor by sensor, over the observed readings only."""
    numbers = np.zeros(true.shape, dtype=np.int64)
    k, t = np.nonzero(seen.T)
    is_true = true[t, k]
    begins = is_true & ~np.concatenate([[False], is_true[:-1] & (k[1:] == k[:-1])])
    numbers[t, k] = np.where(is_true, np.cumsum(begins), 0)
    return numbers


def _same_shape(
    alarms: ArrayLike, truth: ArrayLike, observed: ArrayLike | None
) -> tuple[Booleans, Booleans, Booleans]:
    flagged = np.asarray(alarms, dtype=bool)
    if flagged.ndim != 2:
        raise SettingError(f"alarms has {flagged.ndim} axes: give an array (time, sensor)")
    true = _grid(truth, flagged.shape).astype(bool)
    seen = np.ones_like(true) if observed is None else _grid(observed, flagged.shape).astype(bool)
    return flagged, true, seen


def _grid(array: ArrayLike, shape: tuple[int, ...]) -> NDArray[np.int64]:
    grid = np.asarray(array)
    if grid.shape != shape:
        raise SettingError(f"an array of shape {grid.shape} is compared with one of {shape}: make them equal")
    return grid.astype(np.int64)


def _share(part: int, whole: int) -> float:
    return part / whole if whole else float("nan")


__all__ = [
    "AlarmScore",
    "FalseAlarmRatio",
    "achievable",
    "average_precision",
    "false_alarm_ratio",
    "score_alarms",
]
