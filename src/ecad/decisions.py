"""p -> alarm: a fixed level, or Benjamini-Hochberg over the sensors of one tick.

Unknown p-values never alarm. BH bounds the share of false alarms among a tick's alarms when the sensors' p-values are
independent or positively dependent; it says nothing about a day of ticks.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def fixed(p_values: Array, alpha: float) -> Array:
    """Alarm exactly where p <= alpha."""
    return np.asarray(p_values <= alpha)


def benjamini_hochberg(p_values: Array, level: float) -> Array:
    """Alarms (time, sensor) of the step-up rule at `level` within each tick; what has no p-value is not counted."""
    n = np.sum(~np.isnan(p_values), axis=1, keepdims=True)
    in_order = np.sort(p_values, axis=1)  # NaN sorts last
    place = np.arange(1, p_values.shape[1] + 1)
    with np.errstate(invalid="ignore"):
        # p-values are fractions: one that is exactly on the line must not be lost to rounding
        passes = in_order <= level * place / np.maximum(n, 1) * (1.0 + 1e-12)
    last = np.where(passes.any(axis=1), p_values.shape[1] - 1 - np.argmax(passes[:, ::-1], axis=1), -1)
    cut = np.where(last >= 0, in_order[np.arange(len(in_order)), np.maximum(last, 0)], -1.0)
    return np.asarray(p_values <= cut[:, None])
