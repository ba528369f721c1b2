"""alarms -> Episode: alarms that touch in time and space, told as one sentence.

Two alarms touch when they are of the same sensor or of neighbours (either is in the other's neighbourhood) and at most
`gap` ticks apart. An episode is everything that can be reached by touching. It says where and when something was
strange, not why; two causes that meet become one episode.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from .panel import tzinfo_of

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]
Time = np.datetime64 | int
Direction = Literal["high", "low", "mixed"]

_WORDS = {
    "high": "higher than expected",
    "low": "lower than expected",
    "mixed": "both higher and lower than expected",
}


@dataclass(frozen=True)
class Episode:
    """Alarms that touch in time and space, and the strongest of them, the peak.

    `start` and `end` are the ticks of the first and the last alarm. `direction` is "high" when every alarm's reading
    lay above what was expected, "low" when every one lay below, else "mixed". `min_p` is NaN under a rule without p.
    """

    sensors: tuple[str, ...]
    start: Time
    end: Time
    n_alarms: int
    min_p: float
    peak: tuple[Time, str]
    peak_strength: float
    direction: Direction
    observed: float
    expected: float
    time_zone: str | None = None

    def sentence(self) -> str:
        """What happened, in one line, in local time where the time zone is known."""
        return f"{self._who()} read {_WORDS[self.direction]} {self._when()}: {self._what()}"

    def _who(self) -> str:
        others = len(self.sensors) - 1
        return self.peak[1] + (f" and {others} neighbour{'s' if others > 1 else ''}" if others else "")

    def _when(self) -> str:
        start, end = _clock(self.start, self.time_zone), _clock(self.end, self.time_zone)
        if isinstance(start, int) or isinstance(end, int):
            return f"at tick {start}" if start == end else f"from tick {start} to {end}"
        if start == end:
            return f"at {_day(start)} {start.year} {_hour(start)}"
        day = "" if start.date() == end.date() else _day(end) + " "
        year = "" if start.year == end.year else f"{end.year} "
        return f"from {_day(start)} {start.year} {_hour(start)} to {day}{year}{_hour(end)}"

    def _what(self) -> str:
        numbers = f"{_number(self.observed)} instead of {_number(self.expected)}"
        where = " at the peak" if self.n_alarms > 1 else ""
        return numbers + where + ("" if np.isnan(self.min_p) else f" (p = {_small(self.min_p)})")


def find(alarms: Booleans, neighbours: Integers, gap: int = 2) -> list[tuple[Integers, Integers]]:
    """alarms (T, K), neighbours (K, N) -> the alarms of each episode as (ticks, sensors), ordered by their start.

    Works on the alarms only: memory grows with their number times N, never with K x K or with T x K x N.
    """
    if not alarms.any():
        return []
    sensor, tick = (axis.astype(np.int64) for axis in np.nonzero(alarms.T))
    a, b = _touching(tick, sensor, np.asarray(neighbours, dtype=np.int64), len(alarms), gap)
    links = coo_array((np.ones(len(a), dtype=bool), (a, b)), shape=(len(tick), len(tick)))
    _, label = connected_components(links, directed=False)
    order = np.lexsort((sensor, tick, label))
    groups = np.split(order, np.flatnonzero(np.diff(label[order])) + 1)
    groups.sort(key=lambda group: (tick[group[0]], sensor[group[0]]))
    return [(tick[group], sensor[group]) for group in groups]


def describe(
    alarms: Booleans,
    values: Floats,
    expected: Floats,
    p_values: Floats,
    strength: Floats,
    times: NDArray[Any],
    sensors: Sequence[str],
    neighbours: Integers,
    gap: int = 2,
    time_zone: str | None = None,
) -> list[Episode]:
    """The episodes of a report's arrays (time, sensor), ordered by their start."""
    return [
        _episode(t, k, values, expected, p_values, strength, times, sensors, time_zone)
        for t, k in find(alarms, neighbours, gap)
    ]


def _touching(
    tick: Integers, sensor: Integers, neighbours: Integers, n_times: int, gap: int
) -> tuple[Integers, Integers]:
    """Pairs of alarms, given sensor by sensor, that are enough to connect all that touch.

    A neighbour's alarms within `gap` after a tick touch one another, and so do those before it: the nearest on either
    side stands for all of them.
    """
    points = sensor * n_times + tick
    pairs: list[tuple[Integers, Integers]] = []
    for beside in [sensor, *neighbours[sensor].T]:
        after = np.searchsorted(points, beside * n_times + tick, side="right")
        for place in (after, after - 1):
            inside = np.flatnonzero((place >= 0) & (place < len(points)))
            other = place[inside]
            near = (sensor[other] == beside[inside]) & (np.abs(tick[other] - tick[inside]) <= gap)
            pairs.append((inside[near], other[near]))
    return np.concatenate([a for a, _ in pairs]), np.concatenate([b for _, b in pairs])


def _episode(
    t: Integers,
    k: Integers,
    values: Floats,
    expected: Floats,
    p_values: Floats,
    strength: Floats,
    times: NDArray[Any],
    sensors: Sequence[str],
    time_zone: str | None,
) -> Episode:
    strong = strength[t, k]
    peak = int(np.argmax(np.where(np.isnan(strong), -np.inf, strong)))
    above = values[t, k] > expected[t, k]
    return Episode(
        sensors=tuple(sensors[j] for j in np.unique(k)),
        start=times[t[0]],
        end=times[t[-1]],
        n_alarms=len(t),
        min_p=float(np.fmin.reduce(p_values[t, k])),
        peak=(times[t[peak]], sensors[k[peak]]),
        peak_strength=float(strong[peak]),
        direction="high" if above.all() else "mixed" if above.any() else "low",
        observed=float(values[t[peak], k[peak]]),
        expected=float(expected[t[peak], k[peak]]),
        time_zone=time_zone,
    )


# -- words -----------------------------------------------------------------------------------------------------------


def _clock(time: Time, time_zone: str | None) -> datetime | int:
    """Panels with a time zone keep their times in UTC; people read the clock on their wall."""
    if not isinstance(time, np.datetime64):
        return int(time)
    naive: datetime = time.astype("datetime64[us]").item()
    return naive if time_zone is None else naive.replace(tzinfo=UTC).astimezone(tzinfo_of(time_zone))


def _day(clock: datetime) -> str:
    """Written out, because strftime would speak the machine's language."""
    weekday = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")[clock.weekday()]
    months = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
    return f"{weekday} {clock.day} {months[clock.month - 1]}"


def _hour(clock: datetime) -> str:
    return f"{clock:%H:%M:%S}" if clock.second else f"{clock:%H:%M}"


def _number(value: float) -> str:
    """Three digits that mean something, more only for large whole numbers."""
    if not np.isfinite(value):
        return "unknown"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _small(p: float) -> str:
    return f"{p:.1g}" if p < 0.01 else f"{p:.2g}"


__all__ = ["Episode", "describe", "find"]
