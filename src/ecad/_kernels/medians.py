"""values in groups -> medians: outside folds, and over places that are alike."""

from __future__ import annotations

from typing import Any

import numpy as np

from .compiled import jit

Array = np.ndarray[Any, Any]


@jit
def medians_outside(
    values: Array, order: Array, edges: Array, fold: Array, middle: Array, count: Array
) -> None:
    """middle (F + 1, G, K): the median of each group's finite values (T, K) outside each fold; the last: of all.

    Group g is the rows order[edges[g] : edges[g + 1]]; its values are sorted once, for all folds.
    """
    folds, G, K = middle.shape
    n_in = np.empty(folds, np.int64)
    v = np.empty(values.shape[0])
    f = np.empty(values.shape[0], np.int64)
    for k in range(K):
        for g in range(G):
            n = 0
            n_in[:] = 0
            for i in range(edges[g], edges[g + 1]):
                x = values[order[i], k]
                if x == x:
                    v[n] = x
                    f[n] = fold[order[i]]
                    n_in[f[n]] += 1
                    n += 1
            sorted_places = np.argsort(v[:n])
            for out in range(folds):
                m = n - n_in[out] if out < folds - 1 else n
                count[out, g, k] = m
                if m == 0:
                    middle[out, g, k] = np.nan
                    continue
                if m == n:
                    low = v[sorted_places[(m - 1) // 2]]
                    high = v[sorted_places[m // 2]]
                else:
                    low, high = _middle_outside(v, f, sorted_places, out, m)
                middle[out, g, k] = 0.5 * (low + high)


@jit
def _middle_outside(v: Array, f: Array, sorted_places: Array, out: int, m: int) -> tuple[float, float]:
    """The two middle ones of the m values that are not in fold `out`."""
    seen = 0
    low = np.nan
    for i in range(sorted_places.shape[0]):
        place = sorted_places[i]
        if f[place] == out:
            continue
        if seen == (m - 1) // 2:
            low = v[place]
        if seen == m // 2:
            return low, v[place]
        seen += 1
    return low, low


@jit
def near_on_circle(values: Array, x: int, around: int) -> Array:
    """Where values (n,) on a circle of length `around` are at most one away from x; negative values are unknown."""
    out = np.empty(values.shape[0], np.int64)
    c = 0
    for i in range(values.shape[0]):
        away = (values[i] - x) % around
        if values[i] >= 0 and (away <= 1 or away == around - 1):
            out[c] = i
            c += 1
    return out[:c]


@jit
def median_of_slots(residuals: Array, slots: Array, fewest: int, out: Array) -> None:
    """out[k] = the median of the finite residuals[k, slots] (K, H); NaN where fewer than `fewest` are."""
    K = residuals.shape[0]
    v = np.empty(slots.shape[0] + 1)
    for k in range(K):
        c = 0
        for a in range(slots.shape[0]):
            x = residuals[k, slots[a]]
            if not np.isnan(x):
                v[c] = x
                c += 1
        if c < fewest:
            out[k] = np.nan
        else:
            upper = quickselect(v, c, c // 2)
            if c % 2 == 1:
                out[k] = upper
            else:
                lower = v[0]
                for a in range(1, c // 2):
                    lower = max(lower, v[a])
                out[k] = 0.5 * (lower + upper)


@jit
def quickselect(v: Array, n: int, k: int) -> float:
    """The (k + 1)-th smallest of v[:n], which is reordered."""
    lo = 0
    hi = n - 1
    while lo < hi:
        p = v[(lo + hi) >> 1]
        i = lo
        j = hi
        while i <= j:
            while v[i] < p:
                i += 1
            while v[j] > p:
                j -= 1
            if i <= j:
                v[i], v[j] = v[j], v[i]
                i += 1
                j -= 1
        if k <= j:
            hi = j
        elif k >= i:
            lo = i
        else:
            break
    return v[k]
