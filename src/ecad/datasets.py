"""settings, seed -> Simulation: made-up road networks whose truth is known.

Three things can be made here, and they answer three questions.

`simulate`       a city's traffic with everything that makes real sensors hard (rush hours, weather, holidays, holes,
                 anomalies): what does the detector find?
`simulate_null`  a profile plus stationary Gaussian errors and nothing else: is p what it says it is?
`plant`          known anomalies in readings of one's own: what would it have found there?

Every source of chance has a generator of its own, spawned from the seed: switching anomalies or holes off leaves every
other number as it was.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array, diags_array, eye_array

from .errors import SettingError
from .panel import Panel

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]
Edges = tuple[Integers, Integers, Floats]

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
HOLIDAYS = ("01-01", "04-18", "04-21", "05-01", "05-29", "10-03", "12-25", "12-26")

_CENTRE = (10.0, 50.0)  # degrees; no such city
_KM_PER_DEGREE = 111.2
_LONGEST = 24  # steps of one event
_MARGIN = 3  # quiet steps between two events of a sensor, so that they stay two
_BLOCK = 2_000_000  # readings made at once: memory beyond the panel stays flat
_UNITS = {"s": 1, "min": 60, "h": 3600, "D": 86400, "d": 86400}


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


def simulate(
    n_sensors: int = 20,
    n_times: int = 4380,
    step: str = "1h",
    start: str = "2025-01-06",
    *,
    missing: float = 0.1,
    bursts: float | None = None,
    dead: float | None = None,
    anomalies: float = 0.01,
    kinds: Sequence[str] = tuple(KINDS),
    clean_until: float = 0.0,
    error_autocorrelation: float = 0.6,
    space_correlation: float = 0.5,
    noise: float = 0.1,
    weather: float = 0.2,
    holidays: Sequence[str] = HOLIDAYS,
    seed: int = 0,
) -> Simulation:
    """Traffic (vehicles per hour, never negative) on the roads of a made-up city.

    A reading is the road's own daily and weekly profile, lowered by the weather that all roads share, plus a noise that
    is correlated along the roads and in time, and grows with the square root of the flow. Holidays look like Sundays.

    Right for trying out, for teaching, and for comparing settings on anomalies that no detector defined. Not right for
    checking p-values: weather, holidays and the floor at zero are departures that nobody planted, so that a detector
    that calls a holiday strange is counted wrong here and may be right in your city (`Simulation.holidays` says when;
    whoever sets them apart should give the figure with them, too). For that, use `simulate_null`.

    Parameters you will want to set:

    n_sensors, n_times, step, start : the panel's size and clock; `step` like "5min", "1h", "1D".
    missing : share of readings lost at random.
    anomalies : share of the observed readings that belong to a planted event; 0 for none.
    seed : the same seed gives the same numbers.

    Parameters you may skip:

    bursts : share of readings lost in runs of 3 to 48 steps (default: a tenth of `missing`).
    dead : share of sensors that fall silent for good, between 55 % and 90 % of the record (default: half of `missing`).
    kinds : names out of `KINDS`; they take turns. Events last 1 to 24 steps.
    clean_until : share of the times, from the start, without anomalies; `anomalies` then counts in the rest.
    error_autocorrelation : correlation of the noise from one step to the next.
    space_correlation : 0 for independent sensors, near 1 for a noise shared by whole districts.
    noise : standard deviation of the noise, as a share of the flow, on an average hour.
    weather : share of the flow that the worst weather takes away.
    holidays : days of the year, "month-day"; a made-up calendar by default.
    """
    _check_network(n_sensors, n_times, error_autocorrelation, space_correlation)
    for name, value in {"noise": noise, "weather": weather}.items():
        _check_share(name, value)
    city, profiles, sky, errors, holes, planted = np.random.default_rng(seed).spawn(6)
    panel = _network(city, n_sensors, n_times, step, start)
    phase_of, levels = _levels(profiles, panel.times, n_sensors, holidays)
    dullness = _rain(sky, n_times, panel.step)
    sensitivity = weather * sky.uniform(0.5, 1.0, n_sensors)
    typical = levels.mean(axis=0)
    values = np.empty((n_times, n_sensors))
    for rows, error in _errors(errors, n_times, _mixing(panel, space_correlation), error_autocorrelation):
        flow = levels[phase_of[rows]] * (1.0 - dullness[rows, None] * sensitivity)
        values[rows] = np.round(np.maximum(flow + noise * np.sqrt(flow * typical) * error, 0.0), 1)
    bursts = missing / 10 if bursts is None else bursts
    dead = missing / 2 if dead is None else dead
    _punch(values, holes, missing, bursts, dead)
    free = _are_holidays(panel.times, holidays)
    return _plant(panel.with_values(values), planted, anomalies, kinds, clean_until, free)


def simulate_null(
    n_sensors: int = 10,
    n_times: int = 5000,
    step: str = "1h",
    start: str = "2025-01-06",
    *,
    missing: float = 0.0,
    error_autocorrelation: float = 0.6,
    space_correlation: float = 0.5,
    noise: float = 30.0,
    seed: int = 0,
) -> Panel:
    """Readings without any anomaly: a fixed weekly profile plus stationary Gaussian AR(1) errors, exactly.

    Nothing is clipped or rounded (a reading may be negative), there is no weather and no holiday, and every sensor's
    errors have the same standard deviation, `noise`, at all hours. Any share of p <= alpha away from alpha is
    therefore the detector's doing. Holes come at random; to give training and test different ones, make it without and
    use `with_holes` on each part. Not right for asking what a detector finds: there is nothing to find.
    """
    _check_network(n_sensors, n_times, error_autocorrelation, space_correlation)
    city, profiles, _, errors, holes, _ = np.random.default_rng(seed).spawn(6)
    panel = _network(city, n_sensors, n_times, step, start)
    phase_of, levels = _levels(profiles, panel.times, n_sensors, holidays=())
    values = np.empty((n_times, n_sensors))
    for rows, error in _errors(errors, n_times, _mixing(panel, space_correlation), error_autocorrelation):
        values[rows] = levels[phase_of[rows]] + noise * error
    _punch(values, holes, missing, bursts=0.0, dead=0.0)
    return panel.with_values(values)


def with_holes(
    panel: Panel, missing: float = 0.1, bursts: float = 0.0, dead: float = 0.0, *, seed: int = 0
) -> Panel:
    """The same panel with holes at random, in bursts, or from dead sensors (shares as in `simulate`)."""
    values = panel.values.copy()
    _punch(values, np.random.default_rng(seed), missing, bursts, dead)
    return panel.with_values(values)


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
    return _plant(panel, np.random.default_rng(seed), anomalies, kinds, clean_until)


# -- the city --------------------------------------------------------------------------------------------------------


def _network(rng: np.random.Generator, n_sensors: int, n_times: int, step: str, start: str) -> Panel:
    """Roads, names and a clock; no readings yet."""
    tick = _parse_step(step)
    try:
        first = np.datetime64(start, "us")
    except ValueError as error:
        raise SettingError(f"start={start!r} is not a date or time: give it like '2025-01-06'") from error
    points = _places(rng, n_sensors)
    width = max(2, len(str(n_sensors)))
    return Panel(
        values=np.full((n_times, n_sensors), np.nan),
        sensors=tuple(f"S{k:0{width}d}" for k in range(1, n_sensors + 1)),
        times=first + tick * np.arange(n_times),
        step=tick,
        positions=_to_degrees(points),
        geometry="lonlat",
        adjacency=_roads(points),
        time_zone=None,
        repairs={},
        frame="pandas",
    )


def _places(rng: np.random.Generator, n: int) -> Floats:
    """(n, 2) kilometres from the centre: even without being a grid, and denser in the middle."""
    rank = np.arange(n) + 0.5
    radius = 0.9 * np.sqrt(n) * (rank / n) ** 0.6
    angle = rank * np.pi * (3.0 - np.sqrt(5.0)) + rng.uniform(0.0, 2.0 * np.pi)
    points = np.column_stack([1.25 * radius * np.cos(angle), radius * np.sin(angle)])
    return np.asarray(points + rng.uniform(-0.45, 0.45, points.shape))


def _to_degrees(points: Floats) -> Floats:
    lon, lat = _CENTRE
    east = points[:, 0] / (_KM_PER_DEGREE * np.cos(np.radians(lat)))
    return np.round(np.column_stack([lon + east, lat + points[:, 1] / _KM_PER_DEGREE]), 6)


def _roads(points: Floats) -> Edges:
    """The Gabriel graph: two places are joined where no third lies between them (connected, and no road crosses)."""
    n = len(points)
    if n < 4:
        a, b = np.arange(n - 1), np.arange(1, n)
    else:
        a, b = _gabriel_edges(points)
    return a, b, np.round(np.linalg.norm(points[a] - points[b], axis=1), 3)


def _gabriel_edges(points: Floats) -> tuple[Integers, Integers]:
    from scipy.spatial import Delaunay

    triangles = Delaunay(points).simplices.astype(np.int64)
    corners = np.concatenate([triangles[:, order] for order in ([0, 1, 2], [1, 2, 0], [2, 0, 1])])
    pairs = np.sort(corners[:, :2], axis=1)
    third = points[corners[:, 2]]
    between = np.einsum("ij,ij->i", points[corners[:, 0]] - third, points[corners[:, 1]] - third) < 0.0
    edges, which = np.unique(pairs, axis=0, return_inverse=True)
    kept = edges[np.bincount(which.ravel(), weights=between, minlength=len(edges)) == 0]
    return kept[:, 0], kept[:, 1]


def _graph(edges: Edges, n: int) -> csr_array:
    """Symmetric (n, n) matrix of road lengths."""
    a, b, length = edges
    both = coo_array((np.tile(length, 2), (np.concatenate([a, b]), np.concatenate([b, a]))), shape=(n, n))
    return csr_array(both)


# -- what the roads carry --------------------------------------------------------------------------------------------


def _levels(
    rng: np.random.Generator, times: NDArray[np.datetime64], n_sensors: int, holidays: Sequence[str]
) -> tuple[Integers, Floats]:
    """The profile of each road, once for each kind of day and time of day: levels[phase_of[t], k]."""
    day = times.astype("datetime64[D]")
    weekday = (day.astype(np.int64) + 3) % 7  # 1970-01-01 was a Thursday
    kind_of_day = np.where(weekday == 6, 2, np.where(weekday == 5, 1, 0))
    kind_of_day[_are_holidays(times, holidays)] = 2
    second = (times - day).astype("timedelta64[s]").astype(np.int64)
    phases, phase_of = np.unique(kind_of_day * 86400 + second, return_inverse=True)
    shape = _shapes(rng, phases // 86400, (phases % 86400) / 3600.0, n_sensors)
    return phase_of.ravel(), shape * rng.lognormal(np.log(420.0), 0.45, n_sensors)


def _shapes(rng: np.random.Generator, kind_of_day: Integers, hour: Floats, n_sensors: int) -> Floats:
    """(phase, sensor) around 1: some roads lead into town in the morning, others out of it in the evening."""

    def bump(peak: Floats, width: Floats | float) -> Floats:
        apart = (hour[:, None] - peak + 12.0) % 24.0 - 12.0
        return np.asarray(np.exp(-0.5 * (apart / width) ** 2))

    inwards = rng.uniform(0.0, 1.0, n_sensors)
    morning = (0.5 + 1.4 * inwards) * bump(rng.normal(7.8, 0.3, n_sensors), rng.uniform(0.9, 1.4, n_sensors))
    evening = (1.9 - 1.4 * inwards) * bump(rng.normal(17.2, 0.4, n_sensors), rng.uniform(1.3, 2.0, n_sensors))
    noon = rng.uniform(0.8, 1.2, n_sensors) * bump(rng.normal(12.9, 0.4, n_sensors), 3.2)
    leisure = rng.uniform(0.7, 1.3, n_sensors) * bump(rng.normal(14.8, 0.6, n_sensors), 4.0)
    night = rng.uniform(0.06, 0.14, n_sensors)
    weekday = night + morning + evening + noon
    saturday = 1.4 * night + 0.25 * (morning + evening) + 1.05 * leisure
    sunday = 1.6 * night + 0.08 * (morning + evening) + 0.8 * leisure
    kind = kind_of_day[:, None]
    return np.where(kind == 0, weekday, np.where(kind == 1, saturday, sunday))


def _are_holidays(times: NDArray[np.datetime64], holidays: Sequence[str]) -> Booleans:
    for text in holidays:
        if not re.fullmatch(r"\d\d-\d\d", text):
            raise SettingError(f"holidays has {text!r}: give days as 'month-day', like '05-01'")
    dates = np.datetime_as_string(times, unit="D").tolist()
    return np.isin([date[5:] for date in dates], list(holidays))


def _rain(rng: np.random.Generator, n_times: int, step: np.timedelta64 | int) -> Floats:
    """(time,) in [0, 1): mostly dry, with spells that come and go within about a day."""
    memory = float(np.exp(-_seconds(step) / 86400.0))
    slow = _autoregress(rng.standard_normal((n_times, 1)), memory)[0][:, 0]
    return np.asarray(-np.expm1(-np.maximum(slow - 0.4, 0.0)))


def _mixing(panel: Panel, space_correlation: float) -> csr_array:
    """(sensor, sensor), sparse: white noise -> noise of variance 1, correlated by the distance on the roads.

    Each of three hops along the roads passes on a share that fades with the length; sensors further apart than six
    hops are independent. A covariance by all distances would be K x K, and on a graph not even positive definite.
    """
    n = panel.n_sensors
    if n == 1 or panel.adjacency is None:
        return csr_array(eye_array(n))
    hop = _graph(panel.adjacency, n)
    hop.data = np.exp(-0.5 * hop.data)
    spread = csr_array(eye_array(n) + hop)
    spread = csr_array(diags_array(1.0 / spread.sum(axis=1)) @ spread)
    spread = spread @ spread @ spread
    spread = diags_array(1.0 / _row_norms(spread)) @ spread
    mixed = csr_array(np.sqrt(space_correlation) * spread + np.sqrt(1.0 - space_correlation) * eye_array(n))
    return csr_array(diags_array(1.0 / _row_norms(mixed)) @ mixed)


def _row_norms(matrix: csr_array) -> Floats:
    return np.asarray(np.sqrt(matrix.multiply(matrix).sum(axis=1))).ravel()


def _errors(
    rng: np.random.Generator, n_times: int, mixing: csr_array, autocorrelation: float
) -> Iterator[tuple[slice, Floats]]:
    """Blocks of rows of a stationary AR(1) of variance 1 whose innovations are mixed over space."""
    n = mixing.shape[0]
    block = max(1, _BLOCK // n)
    state: Floats | None = None
    for first in range(0, n_times, block):
        rows = slice(first, min(first + block, n_times))
        white = rng.standard_normal((rows.stop - first, n))
        error, state = _autoregress(np.asarray((mixing @ white.T).T), autocorrelation, state)
        yield rows, error


def _autoregress(white: Floats, autocorrelation: float, state: Floats | None = None) -> tuple[Floats, Floats]:
    """e[t] = a e[t - 1] + sqrt(1 - a^2) white[t]; without a state, the first is white[0]: stationary from the start."""
    gain = np.sqrt(1.0 - autocorrelation**2)
    if state is None:
        state = (1.0 - gain) * white[:1]
    from scipy.signal import lfilter  # a second of imports that only simulation needs

    error, state = lfilter([gain], [1.0, -autocorrelation], white, axis=0, zi=state)
    return np.asarray(error), np.asarray(state)


# -- holes -----------------------------------------------------------------------------------------------------------


def _punch(values: Floats, rng: np.random.Generator, missing: float, bursts: float, dead: float) -> None:
    """Write the holes into `values`. The three kinds draw apart, so that one doesn't move the others."""
    for name, value in {"missing": missing, "bursts": bursts, "dead": dead}.items():
        _check_share(name, value)
    at_random, in_bursts, for_good = rng.spawn(3)
    n_times, n_sensors = values.shape
    block = max(1, _BLOCK // n_sensors)
    for first in range(0, n_times, block):
        rows = values[first : first + block]
        rows[at_random.random(rows.shape) < missing] = np.nan
    for sensor, first, length in _runs(in_bursts, n_times, n_sensors, bursts):
        values[first : first + length, sensor] = np.nan
    for sensor in for_good.permutation(n_sensors)[: round(dead * n_sensors)]:
        values[int(for_good.uniform(0.55, 0.9) * n_times) :, sensor] = np.nan


def _runs(
    rng: np.random.Generator, n_times: int, n_sensors: int, share: float
) -> Iterator[tuple[int, int, int]]:
    """Sensor, start and length of runs that cover about a share of the readings (fewer where they overlap)."""
    left = share * n_times * n_sensors
    while left > 0.5:
        length = min(_log_uniform(rng, 3, 48), n_times, int(np.ceil(left)))
        yield int(rng.integers(n_sensors)), int(rng.integers(n_times - length + 1)), length
        left -= length


# -- anomalies -------------------------------------------------------------------------------------------------------


def _plant(
    panel: Panel,
    rng: np.random.Generator,
    anomalies: float,
    kinds: Sequence[str],
    clean_until: float,
    holidays: Booleans | None = None,
) -> Simulation:
    _check_share("clean_until", clean_until)
    _check_kinds(kinds, panel)
    if not 0.0 <= anomalies <= 0.25:
        raise SettingError(f"anomalies={anomalies} must be from 0 to 0.25: events need quiet between them")
    values = panel.values.copy()
    truth = np.zeros(values.shape, dtype=bool)
    first = int(np.ceil(clean_until * panel.n_times))
    left = _budget(anomalies, int(np.count_nonzero(~np.isnan(values[first:]))))
    around = _Around(panel) if "region" in kinds else None
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
    rng: np.random.Generator, kind: str, panel: Panel, first: int, left: int, around: _Around | None
) -> _Draft:
    sensor = int(rng.integers(panel.n_sensors))
    columns = (
        around.of(sensor, int(rng.integers(3, 9))) if kind == "region" and around else np.array([sensor])
    )
    shortest = 3 if kind in ("stuck", "drift") else 1
    room = max(1, panel.n_times - first)
    longest = min(_LONGEST, room, max(shortest, left // len(columns)))
    length = _log_uniform(rng, min(shortest, longest), longest)
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
        steps_per_hour = 1.0 if isinstance(step, int) else 3600.0 / _seconds(step)
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


class _Around:
    """sensor -> itself and its nearest: along the roads where they are known, else as the crow flies."""

    def __init__(self, panel: Panel) -> None:
        from scipy.spatial import KDTree

        self.roads = None if panel.adjacency is None else _graph(panel.adjacency, panel.n_sensors)
        self.tree = None if panel.positions is None else KDTree(panel.positions)
        self.positions = panel.positions

    def of(self, sensor: int, n: int) -> Integers:
        if self.roads is None:
            assert self.tree is not None and self.positions is not None
            nearest = np.atleast_1d(self.tree.query(self.positions[sensor], k=min(n, self.tree.n))[1])
            return np.sort(nearest).astype(np.int64)
        return self._along_roads(sensor, n, self.roads)

    @staticmethod
    def _along_roads(sensor: int, n: int, roads: csr_array) -> Integers:
        distance, done = {sensor: 0.0}, set[int]()
        while len(done) < n and len(done) < len(distance):
            here = min(distance.keys() - done, key=lambda k: (distance[k], k))
            done.add(here)
            reach = slice(roads.indptr[here], roads.indptr[here + 1])
            for k, length in zip(roads.indices[reach].tolist(), roads.data[reach].tolist(), strict=True):
                distance[k] = min(distance.get(k, np.inf), distance[here] + length)
        return np.array(sorted(done), dtype=np.int64)


# -- checks ----------------------------------------------------------------------------------------------------------


def _check_network(
    n_sensors: int, n_times: int, error_autocorrelation: float, space_correlation: float
) -> None:
    if not 1 <= n_sensors <= 10_000:
        raise SettingError(f"n_sensors={n_sensors} must be from 1 to 10,000")
    if n_times < 1:
        raise SettingError(f"n_times={n_times} must be at least 1")
    if not -1.0 < error_autocorrelation < 1.0:
        raise SettingError(f"error_autocorrelation={error_autocorrelation} must lie between -1 and 1")
    _check_share("space_correlation", space_correlation)


def _check_share(name: str, value: float) -> None:
    if not 0.0 <= value <= 1.0:
        raise SettingError(f"{name}={value} must be a share, from 0 to 1")


def _check_kinds(kinds: Sequence[str], panel: Panel) -> None:
    if isinstance(kinds, str) or not len(kinds):
        raise SettingError(f"kinds={kinds!r} must be a list of one or more of {', '.join(KINDS)}")
    for kind in kinds:
        if kind not in KINDS:
            raise SettingError(f"kinds has {kind!r}, which is none of {', '.join(KINDS)}")
    if "region" in kinds and panel.adjacency is None and panel.positions is None:
        raise SettingError("kinds has 'region', but the panel has no positions or adjacency: leave it out")


def _parse_step(step: str) -> np.timedelta64:
    match = re.fullmatch(r"\s*(\d*)\s*(s|min|h|D|d)\s*", step)
    if match is None or match[1] == "0":
        raise SettingError(f"step={step!r} is not a time step: give it like '5min', '1h' or '1D'")
    return np.timedelta64(int(match[1] or 1) * _UNITS[match[2]] * 1_000_000, "us")


def _seconds(step: np.timedelta64 | int) -> float:
    return float(step / np.timedelta64(1, "s")) if isinstance(step, np.timedelta64) else float(step)


def _log_uniform(rng: np.random.Generator, low: int, high: int) -> int:
    """An integer from low to high, short ones as likely as long ones in the logarithm."""
    return min(high, int(low * ((high + 1) / low) ** rng.random()))


__all__ = [
    "HOLIDAYS",
    "KINDS",
    "PlantedEvent",
    "Simulation",
    "plant",
    "simulate",
    "simulate_null",
    "with_holes",
]
