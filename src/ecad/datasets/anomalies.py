"""a panel -> Simulation: known anomalies in its readings, and the truth about each of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle

import numpy as np
from numpy.typing import NDArray

from .. import _checks
from ..errors import SettingError
from ..panel import Panel
from .holes import log_uniform
from .roads import Around, seconds_of

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]

KINDS: dict[str, str] = {
    "drop": "a share `size` of the flow is missing",
    "surge": "a share `size` of the flow is added",
    "stuck": "the last reading, `size`, is repeated",
    "zeros": "the sensor reports 0 (`size` is 1: all of the flow is missing)",
    "drift": "the gain runs away evenly, to 1 + `size` at the end",
    "shift": "the clock is wrong: the readings are those of `size` steps before",
    "unit": "the readings are multiplied by `size`, as if in another unit",
    "region": "a share `size` of the flow is missing in a whole neighbourhood at once",
}


_LONGEST = 24  # steps of one event
_MARGIN = 3  # quiet steps between two events of a sensor, so that they stay two


@dataclass(frozen=True)
class PlantedEvent:
    """One anomaly that was planted: where, when (both ends belong to it), how large.

    `size` means what `KINDS[kind]` says. `effect` is the largest change it made to one reading, in the readings' unit:
    a drop of a half is 400 vehicles at rush hour and 10 at night, and only one of them can be seen.
    """

    kind: str
    sensors: tuple[str, ...]
    start: np.datetime64 | int
    end: np.datetime64 | int
    size: float
    effect: float


@dataclass(frozen=True, eq=False)
class Simulation:
    """A panel, the truth about each of its readings (time, sensor), and the events behind it.

    A hole is never an anomaly: `truth` is false where nothing was observed, also inside an event. `holidays` (time,)
    are the days that look like Sundays and are none: unusual, and not in `truth`, because nobody planted them.
    """

    panel: Panel
    truth: Booleans
    events: tuple[PlantedEvent, ...]
    holidays: Booleans

    @property
    def event_numbers(self) -> NDArray[np.int32]:
        """(time, sensor): 1 for the readings of the first event, 2 for the second, ...; 0 elsewhere."""
        numbers = np.zeros(self.truth.shape, dtype=np.int32)
        column = {name: k for k, name in enumerate(self.panel.sensors)}
        for number, event in enumerate(self.events, start=1):
            first, last = np.searchsorted(self.panel.times, np.array([event.start, event.end]))
            numbers[first : last + 1, [column[name] for name in event.sensors]] = number
        numbers[~self.truth] = 0
        return numbers


def plant(
    panel: Panel,
    anomalies: float = 0.01,
    kinds: Sequence[str] = tuple(KINDS),
    *,
    clean_until: float = 0.0,
    seed: int = 0,
) -> Simulation:
    """Known anomalies in readings of one's own; `truth` knows nothing of those that were there before.

    Made for quantities that have a natural zero (flows, counts, concentrations): a third of a temperature in degrees
    means nothing. "region" needs positions or an adjacency.
    """
    _checks.whole("seed", seed, 0)
    return plant_in(panel, np.random.default_rng(seed), anomalies, kinds, clean_until)


def plant_in(
    panel: Panel,
    rng: np.random.Generator,
    anomalies: float,
    kinds: Sequence[str],
    clean_until: float,
    holidays: Booleans | None = None,
) -> Simulation:
    """What `plant` does, with a generator of the caller's; `holidays` (time,) are known to whoever made the panel."""
    _checks.share("clean_until", clean_until)
    _check_kinds(kinds, panel)
    if not 0.0 <= anomalies <= 0.25:
        raise SettingError(f"anomalies={anomalies} must be from 0 to 0.25: events need quiet between them")
    values = panel.values.copy()
    truth = np.zeros(values.shape, dtype=bool)
    first = int(np.ceil(clean_until * panel.n_times))
    left = _budget(anomalies, int(np.count_nonzero(~np.isnan(values[first:]))))
    around = Around(panel) if "region" in kinds else None
    events: list[PlantedEvent] = []
    taken = np.zeros(values.shape, dtype=bool)
    turns, failures = cycle(rng.permutation(np.array(kinds, dtype=object))), 0
    while left > 0 and failures < 200:
        event = _draw(rng, next(turns), panel, first, left, around)
        hit = _apply(event, panel.values, values, taken)
        if hit is None:
            failures += 1
            continue
        failures = 0
        truth[event.rows, event.columns] = hit
        left -= int(hit.sum())
        events.append(_stated(event, panel, values))
    events.sort(key=lambda event: (event.start, event.sensors))
    free = np.zeros(panel.n_times, dtype=bool) if holidays is None else holidays
    return Simulation(panel.with_values(values), truth, tuple(events), free)


def _budget(anomalies: float, n_readings: int) -> int:
    return max(1, round(anomalies * n_readings)) if anomalies > 0.0 and n_readings else 0


@dataclass(frozen=True, eq=False)
class _Draft:
    """An event in integers, before it is known whether there is room for it."""

    kind: str
    columns: Integers
    first: int
    length: int
    size: float

    @property
    def rows(self) -> slice:
        return slice(self.first, self.first + self.length)


def _draw(
    rng: np.random.Generator, kind: str, panel: Panel, first: int, left: int, around: Around | None
) -> _Draft:
    sensor = int(rng.integers(panel.n_sensors))
    columns = (
        around.of(sensor, int(rng.integers(3, 9))) if kind == "region" and around else np.array([sensor])
    )
    shortest = 3 if kind in ("stuck", "drift") else 1
    room = max(1, panel.n_times - first)
    longest = min(_LONGEST, room, max(shortest, left // len(columns)))
    length = log_uniform(rng, min(shortest, longest), longest)
    begin = int(rng.integers(min(first, panel.n_times - length), panel.n_times - length + 1))
    return _Draft(kind, columns, begin, length, _size(rng, kind, panel.step))


def _size(rng: np.random.Generator, kind: str, step: np.timedelta64 | int) -> float:
    if kind in ("drop", "region"):
        return float(np.round(rng.uniform(0.4, 0.9), 2))
    if kind == "surge":
        return float(np.round(rng.uniform(0.5, 1.5), 2))
    if kind == "drift":
        return float(np.round(rng.choice([-1.0, 1.0]) * rng.uniform(0.4, 0.8), 2))
    if kind == "shift":
        steps_per_hour = 1.0 if isinstance(step, int) else 3600.0 / seconds_of(step)
        return float(max(1, round(rng.uniform(2.0, 6.0) * steps_per_hour)))
    if kind == "unit":
        return float(rng.choice([1 / 12, 1 / 4, 4.0]))
    return 1.0


def _apply(event: _Draft, clean: Floats, values: Floats, taken: Booleans) -> Booleans | None:
    """Write the event into `values`; which of its readings (time, sensor) it has, or None if there is no room."""
    rows, columns = event.rows, event.columns
    nearby = slice(max(0, rows.start - _MARGIN), rows.stop + _MARGIN)
    if taken[nearby, columns].any():
        return None
    before = clean[rows, columns]
    after = _altered(event, clean, before)
    hit = ~np.isnan(before) & ~np.isnan(after)
    if not hit.any():
        return None
    taken[rows, columns] = True
    values[rows, columns] = np.where(hit, np.round(after, 1), before)
    return np.asarray(hit)


def _altered(event: _Draft, clean: Floats, before: Floats) -> Floats:
    if event.kind in ("drop", "region"):
        return before * (1.0 - event.size)
    if event.kind == "surge":
        return before * (1.0 + event.size)
    if event.kind == "zeros":
        return before * 0.0
    if event.kind == "drift":
        return before * (1.0 + event.size * np.linspace(0.0, 1.0, event.length + 1)[1:, None])
    if event.kind == "unit":
        return before * event.size
    if event.kind == "shift":
        sources = np.arange(event.first, event.first + event.length) - int(event.size)
        late = clean[np.maximum(sources, 0)[:, None], event.columns]
        return np.where(sources[:, None] >= 0, late, np.nan)
    return np.full_like(before, _last_observed(clean[: event.first, event.columns[0]]))


def _last_observed(past: Floats) -> float:
    """The newest reading within the past day's worth of ticks; NaN where there is none to be stuck at."""
    recent = past[-_LONGEST:]
    seen = recent[~np.isnan(recent)]
    return float(seen[-1]) if len(seen) else np.nan


def _stated(event: _Draft, panel: Panel, values: Floats) -> PlantedEvent:
    rows, columns = event.rows, event.columns
    after = values[rows, columns]
    change = np.abs(after - panel.values[rows, columns])
    size = float(after[~np.isnan(after)][0]) if event.kind == "stuck" else event.size
    return PlantedEvent(
        kind=event.kind,
        sensors=tuple(panel.sensors[k] for k in columns),
        start=panel.times[rows.start],
        end=panel.times[rows.stop - 1],
        size=size,
        effect=round(float(np.nanmax(change)), 3),
    )


def _check_kinds(kinds: Sequence[str], panel: Panel) -> None:
    if isinstance(kinds, str) or not len(kinds):
        raise SettingError(f"kinds={kinds!r} must be a list of one or more of {', '.join(KINDS)}")
    for kind in kinds:
        if kind not in KINDS:
            raise SettingError(f"kinds has {kind!r}, which is none of {', '.join(KINDS)}")
    if "region" in kinds and panel.adjacency is None and panel.positions is None:
        raise SettingError("kinds has 'region', but the panel has no positions or adjacency: leave it out")
