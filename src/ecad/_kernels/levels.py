"""medians drawn towards coarser ones, more and less -> how far the values of other folds lie from each."""

from __future__ import annotations

from typing import Any

import numpy as np

from .compiled import jit

Array = np.ndarray[Any, Any]


@jit
def distances_when_drawn(
    values: Array,  # (T, K), NaN where there is none
    fold: Array, phase: Array,  # (T,) which table is read, and where
    coarser: Array, away: Array, n: Array,  # (F, P, K) level, what the median is away from it, values behind that
    weights: Array,  # (L,) how many values the coarser level may count for
    out: Array,  # (L, K)
) -> None:  # fmt: skip
    """out: the sum over T of |value - level|, level = coarser + n / (n + weight) away."""
    T, K = values.shape
    out[:] = 0.0
    for t in range(T):
        f = fold[t]
        p = phase[t]
        for k in range(K):
            x = values[t, k]
            if x == x:
                for a in range(weights.shape[0]):
                    share = n[f, p, k] / max(n[f, p, k] + weights[a], 1.0)
                    out[a, k] += abs(x - (coarser[f, p, k] + share * away[f, p, k]))
