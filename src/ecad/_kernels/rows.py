"""filled readings, neighbours -> rows of features; and which rows are complete."""

from __future__ import annotations

from typing import Any

import numpy as np

from .compiled import jit

Array = np.ndarray[Any, Any]


@jit
def gather_design(
    Z: Array,  # (R, K) filled readings, the row of the first tick is `first`
    first: int,
    index: Array,  # (1 or T, K, N) columns to look at, own column first
    lags: int,
    seasonal: Array,  # (S,) further lags of the own column
    calendar: Array,  # (T, C)
    level: Array,  # (T, K) or (0, 0)
    spread: Array,  # (T, K) or (0, 0)
    same: Array,  # (T, K, N - 1) or (0, 0, 0)
    out: Array,  # (T, K, d)
) -> None:
    T, K, _ = out.shape
    N = index.shape[2]
    moving = index.shape[0] > 1
    for t in range(T):
        row = first + t
        ti = t if moving else 0
        for k in range(K):
            x = out[t, k]
            c = 0
            for a in range(N):
                j = index[ti, k, a]
                for lag in range(1, lags + 1):
                    x[c] = Z[row - lag, j]
                    c += 1
            for a in range(seasonal.shape[0]):
                x[c] = Z[row - seasonal[a], k]
                c += 1
            for a in range(calendar.shape[1]):
                x[c] = calendar[t, a]
                c += 1
            if level.shape[0] > 0:
                x[c] = level[t, k]
                x[c + 1] = spread[t, k]
                c += 2
            if same.shape[0] > 0:
                for a in range(N - 1):
                    x[c] = same[t, k, a]
                    c += 1


@jit
def complete_rows(
    run: Array, first: int, index: Array, lags: int, Z: Array, seasonal: Array, out: Array
) -> None:
    """out (T, K): whether every reading that a row looks back on is there; run (R, K) counts those without a hole
    that end at each row of Z (R, K)."""
    T, K = out.shape
    for t in range(T):
        row = first + t
        ti = t if index.shape[0] > 1 else 0
        for k in range(K):
            ok = True
            for a in range(index.shape[2]):
                ok &= run[row - 1, index[ti, k, a]] >= lags
            for a in range(seasonal.shape[0]):
                ok &= not np.isnan(Z[row - seasonal[a], k])
            out[t, k] = ok


@jit
def stand_in(order: Array, N: int, silent: Array, out: Array) -> None:
    """Fill out (T, K, N) with the first N of order (K, M), silent columns replaced in place by the next nearest."""
    T, K, _ = out.shape
    M = order.shape[1]
    for t in range(T):
        for k in range(K):
            spare = N
            for a in range(N):
                j = order[k, a]
                if a > 0 and silent[t, j]:
                    while spare < M and silent[t, order[k, spare]]:
                        spare += 1
                    if spare < M:
                        j = order[k, spare]
                        spare += 1
                out[t, k, a] = j
