"""seed -> SmallPanel: small panels with every kind of hole, the same on every machine and NumPy version.

Drawn from `RandomState`, whose stream is frozen, so that a failing seed stays a failing seed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

HOUR = 3600


@dataclass(frozen=True)
class SmallPanel:
    """A panel for tests, as bare arrays; nothing of the package is needed to make or read it."""

    seed: int
    values: np.ndarray  # (T, K), NaN where not observed
    complete: np.ndarray  # (T, K), the same readings before holes (stuck runs included)
    sensors: tuple[str, ...]
    times: np.ndarray  # (T,) datetime64[us], a naive clock
    step_seconds: int
    week_seconds: np.ndarray  # (T,) seconds since Monday 00:00
    positions: np.ndarray  # (K, 2)
    geometry: str  # "lonlat" or "xy"
    adjacency: tuple[np.ndarray, np.ndarray, np.ndarray]  # a ring with chords; weights are distances
    dead: tuple[int, int] | None  # (sensor, first tick of its silence)
    stuck: tuple[tuple[int, int, int], ...]  # (sensor, first, last + 1): repeated readings

    @property
    def observed(self) -> np.ndarray:
        """(T, K), where a reading was observed."""
        return np.isfinite(self.values)

    @property
    def n_times(self) -> int:
        """The number of ticks."""
        return len(self.values)

    @property
    def n_sensors(self) -> int:
        """The number of sensors."""
        return self.values.shape[1]


def readings(random: np.random.RandomState, n_times: int, n_sensors: int, step_seconds: int) -> np.ndarray:
    """(T, K): a daily wave, a common and an own AR(1) error, and a scale of its own for each sensor."""
    common = np.zeros(n_times)
    own = np.zeros((n_times, n_sensors))
    shocks, own_shocks = random.standard_normal(n_times), random.standard_normal((n_times, n_sensors))
    for t in range(n_times):
        common[t] = (0.7 * common[t - 1] if t else 0.0) + shocks[t]
        own[t] = (0.4 * own[t - 1] if t else 0.0) + own_shocks[t]
    clock = 2 * math.pi * np.arange(n_times) * step_seconds / (24 * HOUR)
    base, size = random.uniform(-50, 200, n_sensors), random.uniform(0.5, 20, n_sensors)
    wave, share = random.uniform(0, 2, n_sensors), random.uniform(0.3, 1.2, n_sensors)
    return base + size * (wave * np.sin(clock)[:, None] + share * common[:, None] + own)


def small_panel(
    seed: int,
    n_times: int | None = None,
    n_sensors: int | None = None,
    *,
    holes: float = 0.1,
    bursts: int = 2,
    empty_ticks: int = 1,
    dead: bool = True,
    stuck: int = 2,
    whole_numbers: bool = False,
    step_seconds: int = HOUR,
    geometry: str = "lonlat",
) -> SmallPanel:
    """One panel: holes at random, in bursts of 3 to 12 ticks, empty ticks, a sensor that dies, stuck runs.

    Sizes left out are drawn: 3 to 6 sensors, 60 to 200 ticks. `holes` is the share at random; `whole_numbers`
    rounds the readings, which makes many ties. A sensor dies after two fifths of the ticks and is never
    sensor 0; the first tick is complete. `stuck` is a number of runs of 4 to 12 repeated readings.
    """
    random = np.random.RandomState(seed)
    drawn_sensors, drawn_times = random.randint(3, 7), random.randint(60, 201)
    n_sensors = drawn_sensors if n_sensors is None else n_sensors
    n_times = drawn_times if n_times is None else n_times
    complete = readings(random, n_times, n_sensors, step_seconds)
    if whole_numbers:
        complete = np.round(complete)
    runs = []
    for _ in range(stuck):
        k, first, length = random.randint(n_sensors), random.randint(1, n_times - 1), random.randint(4, 13)
        complete[first : first + length, k] = complete[first, k]
        runs.append((int(k), int(first), int(min(first + length, n_times))))
    missing = random.uniform(size=(n_times, n_sensors)) < holes
    for _ in range(bursts):
        k, first, length = random.randint(n_sensors), random.randint(1, n_times), random.randint(3, 13)
        missing[first : first + length, k] = True
    for _ in range(empty_ticks):
        missing[random.randint(1, n_times)] = True
    died = None
    if dead:
        died = (int(random.randint(1, n_sensors)), (2 * n_times) // 5)
        missing[died[1] :, died[0]] = True
    missing[0] = False
    if geometry == "lonlat":
        positions = np.array([7.6, 52.0]) + random.uniform(-0.2, 0.2, (n_sensors, 2))
    else:
        positions = random.uniform(0, 10, (n_sensors, 2))
    ring = np.arange(n_sensors)
    chords = random.randint(0, n_sensors, 2)
    a, b = np.concatenate([ring, chords]), np.concatenate([(ring + 1) % n_sensors, (chords + 2) % n_sensors])
    seconds = np.arange(n_times) * step_seconds
    return SmallPanel(
        seed=seed,
        values=np.where(missing, np.nan, complete),
        complete=complete,
        sensors=tuple(f"s{k}" for k in range(n_sensors)),
        times=np.datetime64("2025-01-06T00:00:00", "us") + seconds * np.timedelta64(1_000_000, "us"),
        step_seconds=step_seconds,
        week_seconds=seconds % (7 * 24 * HOUR),
        positions=positions,
        geometry=geometry,
        adjacency=(a, b, random.uniform(0.5, 3.0, len(a))),
        dead=died,
        stuck=tuple(runs),
    )


def small_panels(n: int = 5, first_seed: int = 0) -> list[SmallPanel]:
    """Several panels of different sizes; every second has whole numbers, every third plain coordinates."""
    return [
        small_panel(seed, whole_numbers=seed % 2 == 1, geometry="xy" if seed % 3 == 2 else "lonlat")
        for seed in range(first_seed, first_seed + n)
    ]
