"""predictions of B members, who saw what -> leave-one-out predictions."""

from __future__ import annotations

from typing import Any

import numpy as np

from .compiled import jit

Array = np.ndarray[Any, Any]


@jit
def loo_mean_rows(P: Array, out_of_bag: Array, out: Array) -> None:
    """Mean over the members that did not see the row's time: P (B, T, K), out_of_bag (B, T) 0/1, out (T, K)."""
    B, T, K = P.shape
    for t in range(T):
        m = 0
        for k in range(K):
            out[t, k] = 0.0
        for b in range(B):
            if out_of_bag[b, t]:
                m += 1
                for k in range(K):
                    out[t, k] += P[b, t, k]
        for k in range(K):
            out[t, k] = out[t, k] / m if m > 0 else np.nan


@jit
def loo_sorted_rows(P: Array, out_of_bag: Array, low: Array, high: Array, out: Array) -> None:
    """Mean of the order statistics low[t] .. high[t] - 1 of the unseeing members: median and trimmed mean alike."""
    B, T, K = P.shape
    v = np.empty(B)
    for t in range(T):
        for k in range(K):
            m = 0
            known = True
            for b in range(B):
                if out_of_bag[b, t]:
                    x = P[b, t, k]
                    known &= x == x
                    j = m
                    while j > 0 and v[j - 1] > x:
                        v[j] = v[j - 1]
                        j -= 1
                    v[j] = x
                    m += 1
            if m == 0 or not known:
                out[t, k] = np.nan
                continue
            s = 0.0
            for a in range(low[t], high[t]):
                s += v[a]
            out[t, k] = s / (high[t] - low[t])


@jit
def loo_sorted_all(P: Array, out_of_bag: Array, low: Array, high: Array, out: Array) -> None:
    """All n leave-one-out order-statistic means of each column of P (B, R) from one sort of its B numbers.

    The members are walked in the order of their predictions; for each of the n masks a counter says which place
    the member takes among those that the mask admits. out (R, n), out_of_bag (B, n) uint8, low and high (n,) int16.
    """
    B, R = P.shape
    n = out_of_bag.shape[1]
    order = np.empty(B, np.int64)
    place = np.empty(n, np.int16)
    for r in range(R):
        for b in range(B):
            x = P[b, r]
            j = b
            while j > 0 and P[order[j - 1], r] > x:
                order[j] = order[j - 1]
                j -= 1
            order[j] = b
        row = out[r]
        row[:] = 0.0
        place[:] = 0
        for a in range(B):
            b = order[a]
            x = P[b, r]
            admitted = out_of_bag[b]
            for i in range(n):
                c = np.int16(admitted[i])
                p = place[i]
                row[i] += x * (c & (p >= low[i]) & (p < high[i]))
                place[i] = p + c
        for i in range(n):
            row[i] /= high[i] - low[i]
