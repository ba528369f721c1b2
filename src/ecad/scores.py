"""reading, centre -> score: how strange a reading is. Higher is stranger (signed: further from zero).

Studentised scores divide by how much the sensor usually misses at that hour of the day, learned from the past only,
so that the rush hour does not get all the alarms.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _kernels

Array = np.ndarray[Any, Any]

DAYS = 28
FEWEST = 20  # residuals before a local scale is trusted
FLOOR = 0.1  # share of the training median that is added, so that a quiet hour is not a hair trigger
UNCLOCKED_TICKS = 84  # without a clock there are no hours: simply the latest residuals


def residual_scores(readings: Array, centre: Array, kind: str) -> Array:
    """Absolute or signed residuals; `"studentised"` starts from the absolute one."""
    residual = readings - centre
    return residual if kind == "signed" else np.abs(residual)


@dataclass(eq=False)
class LocalScale:
    """What studentising remembers: 28 days of absolute residuals and the hour of each."""

    residuals: Array  # (sensor, H) ring
    hours: Array  # (H,) hour of the day of each place, -1 where nothing stands yet; -2 throughout without a clock
    head: int  # place of the next tick
    typical: Array  # (sensor,) median absolute residual of training

    def scales(self, residuals: Array, hours: Array | None) -> Array:
        """The local scale of each (time, sensor), each tick entering the memory only after its scale was taken."""
        n_places = self.residuals.shape[1]
        out = np.empty(residuals.shape)
        middle = np.empty(residuals.shape[1])
        for t in range(len(residuals)):
            hour = -2 if hours is None else int(hours[t])
            slots = self._alike(hour)
            _kernels.median_of_slots(self.residuals, slots, FEWEST, middle)
            out[t] = np.where(np.isnan(middle), self.typical, middle + FLOOR * self.typical)
            self.residuals[:, self.head] = residuals[t]
            self.hours[self.head] = hour
            self.head = (self.head + 1) % n_places
        return np.maximum(out, 1e-300)

    def _alike(self, hour: int) -> Array:
        if hour == -2:
            return np.flatnonzero(self.hours == -2)
        return np.asarray(_kernels.near_on_circle(self.hours, hour, 24))


def empty_scale(n_sensors: int, day: float | None, typical: Array) -> LocalScale:
    """A memory in which nothing stands yet; a day has so many ticks, or there is no clock."""
    n_places = max(1, round(DAYS * day)) if day else UNCLOCKED_TICKS
    return LocalScale(
        np.full((n_sensors, n_places), np.nan), np.full(n_places, -1, dtype=np.int8), 0, typical
    )
