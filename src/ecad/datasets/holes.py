"""a panel -> the same with holes: at random, in bursts, or for good."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from .. import _checks
from ..panel import Panel

Floats = NDArray[np.float64]

BLOCK = 2_000_000  # readings drawn for at once: memory beyond the panel stays flat


def with_holes(
    panel: Panel, missing: float = 0.1, bursts: float = 0.0, dead: float = 0.0, *, seed: int = 0
) -> Panel:
    """The same panel with holes at random, in bursts, or from dead sensors (shares as in `simulate`)."""
    _checks.whole("seed", seed, 0)
    values = panel.values.copy()
    punch(values, np.random.default_rng(seed), missing, bursts, dead)
    return panel.with_values(values)


def punch(values: Floats, rng: np.random.Generator, missing: float, bursts: float, dead: float) -> None:
    """Write the holes into `values`. The three kinds draw apart, so that one doesn't move the others."""
    for name, value in {"missing": missing, "bursts": bursts, "dead": dead}.items():
        _checks.share(name, value)
    at_random, in_bursts, for_good = rng.spawn(3)
    n_times, n_sensors = values.shape
    block = max(1, BLOCK // n_sensors)
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
        length = min(log_uniform(rng, 3, 48), n_times, int(np.ceil(left)))
        yield int(rng.integers(n_sensors)), int(rng.integers(n_times - length + 1)), length
        left -= length


def log_uniform(rng: np.random.Generator, low: int, high: int) -> int:
    """An integer from low to high, short ones as likely as long ones in the logarithm."""
    return min(high, int(low * ((high + 1) / low) ** rng.random()))
