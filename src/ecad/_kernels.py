"""arrays -> arrays: the hot loops, compiled by numba, ignorant of the domain.

Every kernel releases the interpreter lock and writes into arrays that the caller allocated, so that threads may
share the work by slices and the sums come out in the same order on any number of them. Letters are the paper's:
``B`` members, ``n`` leave-one-out predictors, ``K`` columns, ``T`` rows of time, ``W`` places of a window.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba.core import cgutils, types
from numba.extending import intrinsic

Array = np.ndarray[Any, Any]

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


def jit(function: Kernel) -> Kernel:
    """Compiled on first use and kept on disk; the type stays that of the plain function."""
    compiled: Any = numba.njit(cache=True, nogil=True, error_model="numpy")(function)
    return cast(Kernel, compiled)


def jit_sums(function: Kernel) -> Kernel:
    """The same, and sums may be made in another order than written: several of their terms at once."""
    compiled: Any = numba.njit(
        cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "nsz", "contract"}
    )(function)
    return cast(Kernel, compiled)


# -- features ------------------------------------------------------------------------------------------------------


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


# -- ridge ---------------------------------------------------------------------------------------------------------


@jit_sums
def time_grams(X: Array, y: Array, shift: Array, columns: Array, out: Array) -> None:
    """out (T, p (p + 1) / 2): for each time the upper triangle of the sum of z z', z = (x - shift, 1, y), p = d + 2.

    Summed are the rows of these columns of X (T, K, d) and y (T, K) that have no NaN.
    """
    T, _, d = X.shape
    p = d + 2
    Z = np.empty((p, columns.shape[0]))
    for t in range(T):
        n = 0
        for k in columns:
            usable = y[t, k] == y[t, k]
            for a in range(d):
                z = X[t, k, a] - shift[a]
                usable &= z == z
                Z[a, n] = z
            Z[d, n] = 1.0
            Z[d + 1, n] = y[t, k]
            n += usable
        c = 0
        for a in range(p):
            u = Z[a, :n]
            for b in range(a, p):
                v = Z[b, :n]
                s = 0.0
                for i in range(n):
                    s += u[i] * v[i]
                out[t, c] = s
                c += 1


# -- medians ---------------------------------------------------------------------------------------------------------


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


# -- leave-one-out aggregation ---------------------------------------------------------------------------------------


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


# -- selection -------------------------------------------------------------------------------------------------------


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


@jit
def _weight_below(v: Array, weights: Array, runs: Array, x: float) -> int:
    """Sum of the weights of v < x; weights are equal within each run, so that counting stays a vector instruction."""
    total = 0
    for s in range(runs.shape[0] - 1):
        u = v[runs[s] : runs[s + 1]]
        c = 0
        for i in range(u.shape[0]):
            c += u[i] < x
        total += c * weights[runs[s]]
    return total


@jit
def _ranked(v: Array, weights: Array, n: int, rank: int) -> float:
    """The rank-th smallest of v[:n], each of which counts as often as its weight says."""
    for i in np.argsort(v[:n]):
        rank -= weights[i]
        if rank <= 0:
            return float(v[i])
    return np.nan


@jit
def _select(
    v: Array, weights: Array, runs: Array, rank: int, guess: float, half: float,
    inside: Array, words: Array, few: Array, few_weights: Array,  # room to work in; words are inside, eight at a time
) -> float:  # fmt: skip
    """The rank-th smallest of v, exact; guess -/+ half only says where to look first.

    Counting is a vector instruction and swapping is not, so the value is first bracketed by counts, and only the
    few that are left in the bracket are collected and put in order.
    """
    n = v.shape[0]
    lo = guess - half
    hi = guess + half
    below = _weight_below(v, weights, runs, lo)
    upto = _weight_below(v, weights, runs, hi)
    bracketed = False
    for _ in range(40):
        if below < rank and upto >= rank:
            bracketed = True
            break
        half *= 4.0
        if below >= rank:
            hi = lo
            upto = below
            lo = lo - half
            below = _weight_below(v, weights, runs, lo)
        else:
            lo = hi
            below = upto
            hi = hi + half
            upto = _weight_below(v, weights, runs, hi)
    if not bracketed:
        return _ranked(v, weights, n, rank)
    for step in range(6):
        m = upto - below
        if m <= 32:
            break
        part = (rank - below - 0.5) / m
        margin = 2.0 / np.sqrt(m) if m > 64 else 0.12
        part = min(part + margin, 0.95) if step % 2 == 0 else max(part - margin, 0.05)
        x = lo + (hi - lo) * part
        if not (lo < x < hi):
            break
        c = _weight_below(v, weights, runs, x)
        if c < rank:
            lo = x
            below = c
        else:
            hi = x
            upto = c
    for i in range(n):
        inside[i] = (v[i] >= lo) & (v[i] < hi)
    c = 0
    for a in range(words.shape[0]):
        if words[a] != 0:
            for i in range(8 * a, 8 * a + 8):
                if inside[i]:
                    few[c] = v[i]
                    few_weights[c] = weights[i]
                    c += 1
    return _ranked(few, few_weights, c, rank - below)


@jit
def select_rows(
    C: Array, weights: Array, runs: Array, rank: int, guess: Array, half: Array, out: Array
) -> None:
    """out[r] = the rank-th smallest of C[r] (R, n), each counted as often as its weight (n,) says; NaN for a NaN guess.

    Weights are equal within the runs, runs[s] .. runs[s + 1].
    """
    n = C.shape[1]
    inside = np.zeros((n + 7) // 8 * 8, np.uint8)
    few = np.empty(n, C.dtype)
    few_weights = np.empty(n, np.int64)
    for r in range(C.shape[0]):
        if np.isnan(guess[r]):
            out[r] = np.nan
        else:
            out[r] = _select(
                C[r], weights, runs, rank, guess[r], half[r], inside, inside.view(np.uint64), few, few_weights
            )  # fmt: skip


# -- Gaussian conditional means ---------------------------------------------------------------------------------------


@jit
def _cholesky(A: Array, m: int) -> None:
    """Lower factor of A[:m, :m], in place."""
    for i in range(m):
        for j in range(i + 1):
            s = A[i, j]
            for a in range(j):
                s -= A[i, a] * A[j, a]
            if i == j:
                A[i, i] = np.sqrt(s) if s > 1e-300 else 1e-150
            else:
                A[i, j] = s / A[j, j]


@jit
def _solve(L: Array, m: int, x: Array) -> None:
    """x[:m] <- (L L')^-1 x[:m]."""
    for i in range(m):
        s = x[i]
        for a in range(i):
            s -= L[i, a] * x[a]
        x[i] = s / L[i, i]
    for i in range(m - 1, -1, -1):
        s = x[i]
        for a in range(i + 1, m):
            s -= L[a, i] * x[a]
        x[i] = s / L[i, i]


@jit
def conditional_sums(
    D: Array,  # (T, K) with NaN
    mean: Array,
    covariance: Array,
    precision: Array,
    total: Array,  # (K,) += completed rows
    outer: Array,  # (K, K) += (completed - mean) outer + conditional covariance
) -> int:
    """The sums that one round of EM needs, and how many rows had something observed."""
    T, K = D.shape
    A = np.empty((K, K))
    x = np.empty(K)
    z = np.empty(K)
    hole = np.empty(K, np.int64)
    seen = np.empty(K, np.int64)
    used = 0
    for t in range(T):
        h = 0
        o = 0
        for k in range(K):
            if np.isnan(D[t, k]):
                hole[h] = k
                h += 1
            else:
                seen[o] = k
                o += 1
                z[k] = D[t, k] - mean[k]
        if o == 0:
            continue
        used += 1
        if h > 0:
            # the conditional covariance of the holes is the inverse of their block of the precision
            for a in range(h):
                for b in range(a + 1):
                    A[a, b] = precision[hole[a], hole[b]]
                s = 0.0
                for b in range(o):
                    s -= precision[hole[a], seen[b]] * z[seen[b]]
                x[a] = s
            _cholesky(A, h)
            _solve(A, h, x)
            for a in range(h):
                z[hole[a]] = x[a]
            for a in range(h):
                for b in range(h):
                    x[b] = 0.0
                x[a] = 1.0
                _solve(A, h, x)
                for b in range(h):
                    outer[hole[a], hole[b]] += x[b]
        for k in range(K):
            total[k] += z[k]
            for j in range(K):
                outer[k, j] += z[k] * z[j]
    return used


@jit
def _conditional_mean(
    d: Array,  # (K,) with NaN: one row
    target: int,
    near: Array,  # (m,) columns to condition on
    without: int,  # a column that must not be used, or -1
    mean: Array,
    covariance: Array,
    A: Array,
    x: Array,
    seen: Array,
) -> float:
    o = 0
    for a in range(near.shape[0]):
        j = near[a]
        if j != target and j != without and not np.isnan(d[j]):
            seen[o] = j
            o += 1
    if o == 0:
        return float(mean[target])
    for a in range(o):
        for b in range(a + 1):
            A[a, b] = covariance[seen[a], seen[b]]
        x[a] = d[seen[a]] - mean[seen[a]]
    _cholesky(A, o)
    _solve(A, o, x)
    s = mean[target]
    for a in range(o):
        s += covariance[target, seen[a]] * x[a]
    return float(s)


@jit
def fill_near(D: Array, mean: Array, blocks: Array, near: Array, out: Array) -> None:
    """out = D with each hole replaced by its conditional mean given its own near columns.

    near (K, m) without the column itself; blocks (K, m + 1, m + 1): covariance of (column, near columns).
    """
    T, K = D.shape
    m = near.shape[1]
    A = np.empty((m, m))
    x = np.empty(m)
    seen = np.empty(m, np.int64)
    for t in range(T):
        for k in range(K):
            if not np.isnan(D[t, k]):
                out[t, k] = D[t, k]
                continue
            out[t, k] = _fill_near_one(D[t], k, -1, mean, blocks, near, A, x, seen)


@jit
def _fill_near_one(
    d: Array, k: int, without: int, mean: Array, blocks: Array, near: Array, A: Array, x: Array, seen: Array
) -> float:
    m = near.shape[1]
    C = blocks[k]
    o = 0
    for a in range(m):
        j = near[k, a]
        if j != without and not np.isnan(d[j]):
            seen[o] = a
            o += 1
    if o == 0:
        return float(mean[k])
    for a in range(o):
        for b in range(a + 1):
            A[a, b] = C[seen[a] + 1, seen[b] + 1]
        j = near[k, seen[a]]
        x[a] = d[j] - mean[j]
    _cholesky(A, o)
    _solve(A, o, x)
    s = mean[k]
    for a in range(o):
        s += C[0, seen[a] + 1] * x[a]
    return float(s)


@jit
def fill_jointly(D: Array, mean: Array, covariance: Array, precision: Array, out: Array) -> None:
    """out = D with the holes of each row replaced by their conditional mean given the rest of the row.

    The smaller of the two systems is solved: among the holes (precision) or among the observed (covariance).
    """
    T, K = D.shape
    A = np.empty((K, K))
    x = np.empty(K)
    hole = np.empty(K, np.int64)
    seen = np.empty(K, np.int64)
    for t in range(T):
        h = 0
        o = 0
        for k in range(K):
            out[t, k] = D[t, k]
            if np.isnan(D[t, k]):
                hole[h] = k
                h += 1
            else:
                seen[o] = k
                o += 1
        if h == 0:
            continue
        if h <= o:
            for a in range(h):
                for b in range(a + 1):
                    A[a, b] = precision[hole[a], hole[b]]
                s = 0.0
                for b in range(o):
                    s -= precision[hole[a], seen[b]] * (D[t, seen[b]] - mean[seen[b]])
                x[a] = s
            _cholesky(A, h)
            _solve(A, h, x)
            for a in range(h):
                out[t, hole[a]] = mean[hole[a]] + x[a]
        else:
            for a in range(o):
                for b in range(a + 1):
                    A[a, b] = covariance[seen[a], seen[b]]
                x[a] = D[t, seen[a]] - mean[seen[a]]
            _cholesky(A, o)
            _solve(A, o, x)
            for a in range(h):
                s = mean[hole[a]]
                for b in range(o):
                    s += covariance[hole[a], seen[b]] * x[b]
                out[t, hole[a]] = s


@jit
def fill_same_jointly(D: Array, mean: Array, covariance: Array, index: Array, out: Array) -> None:
    """out (T, K, N - 1): the row's value of each other column of index (1 or T, K, N); holes filled without k."""
    T, K, _ = out.shape
    N = index.shape[2]
    everybody = np.arange(K)
    A = np.empty((K, K))
    x = np.empty(K)
    seen = np.empty(K, np.int64)
    for t in range(T):
        ti = t if index.shape[0] > 1 else 0
        for k in range(K):
            for a in range(1, N):
                j = index[ti, k, a]
                v = D[t, j]
                if np.isnan(v):
                    v = _conditional_mean(D[t], j, everybody, k, mean, covariance, A, x, seen)
                out[t, k, a - 1] = v


@jit
def fill_same_near(D: Array, mean: Array, blocks: Array, near: Array, index: Array, out: Array) -> None:
    """As fill_same_jointly, each hole conditioned on its own near columns only."""
    T, K, _ = out.shape
    N = index.shape[2]
    m = near.shape[1]
    A = np.empty((m, m))
    x = np.empty(m)
    seen = np.empty(m, np.int64)
    for t in range(T):
        ti = t if index.shape[0] > 1 else 0
        for k in range(K):
            for a in range(1, N):
                j = index[ti, k, a]
                v = D[t, j]
                if np.isnan(v):
                    v = _fill_near_one(D[t], j, k, mean, blocks, near, A, x, seen)
                out[t, k, a - 1] = v


# -- hours alike, and a median over them -------------------------------------------------------------------------------


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
def median_of_slots(residuals: Array, slots: Array, fewest: int, fallback: Array, out: Array) -> None:
    """out[k] = the median of the finite residuals[k, slots] (K, H), or fallback[k] where fewer than `fewest` are."""
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
            out[k] = fallback[k]
        else:
            upper = quickselect(v, c, c // 2)
            if c % 2 == 1:
                out[k] = upper
            else:
                lower = v[0]
                for a in range(1, c // 2):
                    lower = max(lower, v[a])
                out[k] = 0.5 * (lower + upper)


# -- ranks against a window --------------------------------------------------------------------------------------------
#
# A window is a ring of W places and, beside it, the same finite scores sorted, each with its mark (class) and tick.
# A new score moves only what lies between the place that it takes and the place that became free.

HIGH, LOW, BOTH = 0, 1, 2  # which side of the reference set is strange
TESTED, WARMING, ALL_CLASSES = 0, 2, 4
CLASS_BITS, LEFT_OUT, FLAGGED = 63, 64, 128
RUN_LEVEL = 0.01  # a score at or below it may belong to a run that stays out of the window
NEAR = 2  # ticks within which two flagged scores belong to one run


@jit
def _lower(v: Array, n: int, x: float) -> int:
    """How many of the sorted v[:n] are below x."""
    lo = 0
    while n > 0:
        half = n >> 1
        if v[lo + half] < x:
            lo += half + 1
            n -= half + 1
        else:
            n = half
    return lo


@jit
def _upper(v: Array, n: int, x: float) -> int:
    """How many of the sorted v[:n] are at or below x."""
    lo = 0
    while n > 0:
        half = n >> 1
        if v[lo + half] <= x:
            lo += half + 1
            n -= half + 1
        else:
            n = half
    return lo


@jit
def _p_from(ge: float, le: float, total: float, side: int, paper: bool) -> float:
    """The p-value from the weights at or beyond on either side; `one` is the weight of the tested score itself."""
    one = 0.0 if paper else 1.0
    if side == HIGH:
        return (one + ge) / (one + total)
    if side == LOW:
        return (one + le) / (one + total)
    return min(1.0, 2.0 * min(one + ge, one + le) / (one + total))


@jit
def _allowed(alpha: float, total: float, side: int, paper: bool) -> float:
    """The largest weight at or beyond a score with which it still alarms; negative when none can."""
    if side == BOTH:
        alpha = alpha / 2.0
    if paper:
        return alpha * total + 1e-9
    return alpha * (1.0 + total) - 1.0 + 1e-9


@jit
def _tail_spread(v: Array, m: Array, n: int, cls: int, n_in: int, high: bool, fallback: float) -> float:
    """Mean excess of the outermost tenth of the class over its threshold: the scale of an exponential tail."""
    rank = n_in - (9 * n_in + 9) // 10  # members beyond the threshold
    s = 0.0
    seen = 0
    u = 0.0
    for step in range(2):
        seen = 0
        count = 0
        for a in range(n):
            i = n - 1 - a if high else a
            if cls >= 0 and (m[i] & CLASS_BITS) != cls:
                continue
            x = v[i] if high else -v[i]
            if step == 0:
                if seen == rank:
                    u = x
                    break
            else:
                if seen == rank:
                    break
                if x > u:
                    s += x - u
                    count += 1
            seen += 1
        if step == 1 and count > 0:
            s = s / count
    return s if s > 0.0 else fallback


@jit
def _outermost(v: Array, m: Array, n: int, cls: int, k: int, high: bool) -> float:
    """The (k + 1)-th value of the class counted from the outside."""
    if cls < 0:
        return float(v[n - 1 - k] if high else v[k])
    for a in range(n):
        i = n - 1 - a if high else a
        if (m[i] & CLASS_BITS) == cls:
            if k == 0:
                return float(v[i])
            k -= 1
    return np.nan


@jit
def _count_class(m: Array, place: int, n: int, cls: int, n_in: int) -> int:
    """How many of the class's n_in members stand before `place`, counted from the nearer end."""
    c = 0
    if place <= n // 2:
        for i in range(place):
            c += (m[i] & CLASS_BITS) == cls
        return c
    for i in range(place, n):
        c += (m[i] & CLASS_BITS) == cls
    return n_in - c


@jit
def _rank_sorted(
    v: Array, m: Array, ticks: Array, n: int,  # sorted scores, marks, ticks
    n_own: int, own: int, fewest: int, need: int,  # class of the tested score and how many it has
    s: float, tick: int, tol: float, spread: float,
    side: int, paper: bool, alpha: float, weights: Array,
    out: Array,  # (4,): p, strength, low bound, high bound
) -> int:  # fmt: skip
    """Rank one score (NaN: only the bounds are wanted) against a sorted window."""
    out[:] = np.nan
    cls = -1
    n_in = n
    code = TESTED
    if own >= 0:
        if n_own >= fewest:
            cls = own if n_own < n else -1  # a class of all needs no looking at marks
            n_in = n_own
        else:
            code = ALL_CLASSES
    if n_in < need or n_in == 0:
        return WARMING
    weighted = weights.shape[0] > 0
    total = float(n_in)
    if weighted:
        # ages count from the newest score of the set: the largest weight is 1, and no silent sensor's weights vanish
        newest = -1
        for i in range(n):
            if cls < 0 or (m[i] & CLASS_BITS) == cls:
                newest = max(newest, ticks[i])
        tick = newest
        total = 0.0
        for i in range(n):
            if cls < 0 or (m[i] & CLASS_BITS) == cls:
                total += weights[tick - ticks[i]]
    allowed = _allowed(alpha, total, side, paper)
    if side != LOW:
        out[3] = np.inf
        if allowed >= 0.0:
            if weighted:
                out[3] = _weighted_bound(v, m, ticks, n, cls, tick, weights, allowed, True)
            elif int(allowed) < n_in:
                out[3] = _outermost(v, m, n, cls, int(allowed), True)
        out[3] += tol
    if side != HIGH:
        out[2] = -np.inf
        if allowed >= 0.0:
            if weighted:
                out[2] = _weighted_bound(v, m, ticks, n, cls, tick, weights, allowed, False)
            elif int(allowed) < n_in:
                out[2] = _outermost(v, m, n, cls, int(allowed), False)
        out[2] -= tol
    if np.isnan(s):
        return code
    first = _lower(v, n, s - tol)
    last = _upper(v, n, s + tol) if side != HIGH else n
    ge = 0.0
    le = 0.0
    if weighted:
        for i in range(first, n):
            if cls < 0 or (m[i] & CLASS_BITS) == cls:
                ge += weights[tick - ticks[i]]
        if side != HIGH:
            for i in range(last):
                if cls < 0 or (m[i] & CLASS_BITS) == cls:
                    le += weights[tick - ticks[i]]
    elif cls < 0:
        ge = float(n - first)
        le = float(last)
    else:
        ge = float(n_in - _count_class(m, first, n, cls, n_in))
        if side != HIGH:
            le = float(_count_class(m, last, n, cls, n_in))
    out[0] = _p_from(ge, le, total, side, paper)
    strength = -np.log(_p_from(ge, le, total, side, False))
    high = side == HIGH or (side == BOTH and ge <= le)
    if (ge if high else le) == 0.0:
        edge = _outermost(v, m, n, cls, 0, high)
        excess = s - edge if high else edge - s
        strength += excess / _tail_spread(v, m, n, cls, n_in, high, spread)
    out[1] = strength
    return code


@jit
def _weighted_bound(
    v: Array, m: Array, ticks: Array, n: int, cls: int, tick: int, weights: Array, allowed: float, high: bool
) -> float:
    """The first value from the outside at which the weight at or beyond exceeds what is allowed."""
    s = 0.0
    for a in range(n):
        i = n - 1 - a if high else a
        if cls < 0 or (m[i] & CLASS_BITS) == cls:
            s += weights[tick - ticks[i]]
            if s > allowed:
                return float(v[i])
    return -np.inf if high else np.inf


@jit
def _find(v: Array, m: Array, ticks: Array, n: int, x: float, cls: int, tick: int) -> int:
    """Where the score x of class cls and tick stands among the sorted."""
    i = _lower(v, n, x)
    while (m[i] & CLASS_BITS) != cls or (ticks.shape[0] > 0 and ticks[i] != tick):
        i += 1
    return i


def _emit_move(_context: Any, a: Any, to: Any, start: Any, n: Any) -> Any:
    """a[to : to + n] = a[start : start + n], overlapping: a loop over the places is not compiled to this."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        target, source = (builder.gep(array.data, [place]) for place in arguments[1:3])
        size = context.get_abi_sizeof(context.get_data_type(signature.args[0].dtype))
        cgutils.raw_memmove(builder, target, source, arguments[3], size)  # type: ignore[no-untyped-call]
        return context.get_dummy_value()

    return types.void(a, types.intp, types.intp, types.intp), generate


_move: Any = intrinsic(_emit_move)


@jit
def _take_out(v: Array, m: Array, ticks: Array, n: int, i: int) -> None:
    _move(v, i, i + 1, n - 1 - i)
    _move(m, i, i + 1, n - 1 - i)
    if ticks.shape[0] > 0:
        _move(ticks, i, i + 1, n - 1 - i)


@jit
def _put_in(v: Array, m: Array, ticks: Array, n: int, x: float, cls: int, tick: int) -> None:
    i = _upper(v, n, x)
    _move(v, i + 1, i, n - i)
    _move(m, i + 1, i, n - i)
    v[i] = x
    m[i] = cls
    if ticks.shape[0] > 0:
        _move(ticks, i + 1, i, n - i)
        ticks[i] = tick


@jit
def _swap_in(v: Array, m: Array, ticks: Array, n: int, i: int, x: float, cls: int, tick: int) -> None:
    """Take out place i and put x in, moving only what lies between."""
    j = _upper(v, n, x)
    if j > i:
        j -= 1
        to, start, length = i, i + 1, j - i
    else:
        to, start, length = j + 1, j, i - j
    _move(v, to, start, length)
    _move(m, to, start, length)
    v[j] = x
    m[j] = cls
    if ticks.shape[0] > 0:
        _move(ticks, to, start, length)
        ticks[j] = tick


@jit
def _leave_out_run(
    tick: int, k: int, place: int, marks: Array,  # of a score with a small p, and the ring's marks
    n_left: Array, last_flag: Array, run_start: Array, most_left: int, longest_run: int,
) -> int:  # fmt: skip
    """Mark a flagged score, and say which scores of its run stay out: bit a is the one of a ticks ago, bit 0 itself."""
    marks[k, place] |= FLAGGED
    follows = tick - last_flag[k] <= NEAR
    last_flag[k] = tick
    if not follows:
        run_start[k] = tick
        return 0
    if tick - run_start[k] > longest_run:
        return 0
    leaving = 0
    for back in range(NEAR + 1):
        a = (place - back) % marks.shape[1]
        if not (marks[k, a] & FLAGGED) or (marks[k, a] & LEFT_OUT):
            continue
        if n_left[k] < most_left:
            marks[k, a] |= LEFT_OUT
            leaving |= 1 << back
            n_left[k] += 1
        else:
            marks[k, a] &= CLASS_BITS  # kept in by the cap once, it is not tried again
    return leaving


@jit
def rank_windows(
    S: Array, classes: Array, first_tick: int, k0: int, k1: int,  # (T, K) scores and classes; the columns k0 .. k1
    ring: Array, marks: Array, ring_ticks: Array, head: int,  # (K, W), (K, W), (W,) and the place of first_tick
    v: Array, m: Array, ticks: Array, n: Array, n_class: Array,  # (K, W) sorted; (K,) and (K, C) counts
    n_left: Array, last_flag: Array, run_start: Array,  # (K,) what was left out, and the current run
    tol: Array, spread: Array, side: int, paper: bool, alpha: float, need: int, fewest: int, use_classes: bool,
    weights: Array, absorb_runs: bool, most_left: int, longest_run: int,
    p: Array, strength: Array, low: Array, high: Array, code: Array,  # (T, K) results
) -> None:  # fmt: skip
    """Each column against a window of its own: a score goes in, and the oldest out, before the next is ranked."""
    T = S.shape[0]
    W = ring.shape[1]
    out = np.empty(4)
    old_ticks = np.empty(W, np.int64)
    for k in range(k0, k1):
        place = head
        old_ticks[:] = ring_ticks
        for t in range(T):
            tick = first_tick + t
            own = int(classes[t, k])
            code[t, k] = _rank_sorted(
                v[k], m[k], ticks[k], n[k], n_class[k, own], own if use_classes else -1, fewest, need,
                S[t, k], tick, tol[k], spread[k], side, paper, alpha, weights, out,
            )  # fmt: skip
            p[t, k] = out[0]
            strength[t, k] = out[1]
            low[t, k] = out[2]
            high[t, k] = out[3]

            old_class = marks[k, place] & CLASS_BITS
            if marks[k, place] & LEFT_OUT:
                n_left[k] -= 1
            marks[k, place] = own
            leaving = 0
            if absorb_runs and out[0] <= RUN_LEVEL:
                leaving = _leave_out_run(
                    tick, k, place, marks, n_left, last_flag, run_start, most_left, longest_run
                )
            for back in range(1, NEAR + 1):
                if leaving >> back & 1:
                    b = (place - back) % W
                    c = marks[k, b] & CLASS_BITS
                    i = _find(v[k], m[k], ticks[k], n[k], ring[k, b], c, tick - back)
                    _take_out(v[k], m[k], ticks[k], n[k], i)
                    n[k] -= 1
                    n_class[k, c] -= 1
                    ring[k, b] = np.nan

            x = np.nan if leaving & 1 else S[t, k]
            old = ring[k, place]
            if not np.isnan(old):
                i = _find(v[k], m[k], ticks[k], n[k], old, old_class, old_ticks[place])
                n_class[k, old_class] -= 1
                if not np.isnan(x):
                    _swap_in(v[k], m[k], ticks[k], n[k], i, x, own, tick)
                    n_class[k, own] += 1
                else:
                    _take_out(v[k], m[k], ticks[k], n[k], i)
                    n[k] -= 1
            elif not np.isnan(x):
                _put_in(v[k], m[k], ticks[k], n[k], x, own, tick)
                n[k] += 1
                n_class[k, own] += 1
            ring[k, place] = x
            old_ticks[place] = tick
            place += 1
            if place == W:
                place = 0


@jit
def rank_pool(
    S: Array, classes: Array, first_tick: int,
    ring: Array, marks: Array, ring_ticks: Array, head: int,
    v: Array, m: Array, ticks: Array, n: Array, n_class: Array,  # (2, K W) sorted, twice for merging; (1,) and (1, C)
    n_left: Array, last_flag: Array, run_start: Array,
    tol: Array, spread: Array, side: int, paper: bool, alpha: float, need: int, fewest: int, use_classes: bool,
    weights: Array, absorb_runs: bool, most_left: int, longest_run: int,
    p: Array, strength: Array, low: Array, high: Array, code: Array,
) -> None:  # fmt: skip
    """All columns against one pool; a tick's scores go in, and the oldest out, in one merging pass."""
    T, K = S.shape
    W = ring.shape[1]
    out = np.empty(4)
    gone = np.zeros(v.shape[1], np.uint8)
    new_v = np.empty(K)
    new_m = np.empty(K, np.uint8)
    place = head
    for t in range(T):
        tick = first_tick + t
        N = n[0]
        for k in range(K):
            own = int(classes[t, k])
            code[t, k] = _rank_sorted(
                v[0], m[0], ticks[0], N, n_class[0, own], own if use_classes else -1, fewest, need,
                S[t, k], tick, tol[k], spread[k], side, paper, alpha, weights, out,
            )  # fmt: skip
            p[t, k] = out[0]
            strength[t, k] = out[1]
            low[t, k] = out[2]
            high[t, k] = out[3]
        gone[:N] = 0
        n_new = 0
        old_tick = ring_ticks[place]
        for k in range(K):
            own = int(classes[t, k])
            old_class = marks[k, place] & CLASS_BITS
            if marks[k, place] & LEFT_OUT:
                n_left[k] -= 1
            marks[k, place] = own
            leaving = 0
            if absorb_runs and p[t, k] <= RUN_LEVEL:
                leaving = _leave_out_run(
                    tick, k, place, marks, n_left, last_flag, run_start, most_left, longest_run
                )
            for back in range(1, NEAR + 1):
                if leaving >> back & 1:
                    b = (place - back) % W
                    c = marks[k, b] & CLASS_BITS
                    _cross_out(v[0], m[0], ticks[0], N, n_class[0], gone, ring[k, b], c, tick - back)
                    ring[k, b] = np.nan
            if not np.isnan(ring[k, place]):
                _cross_out(v[0], m[0], ticks[0], N, n_class[0], gone, ring[k, place], old_class, old_tick)
            x = np.nan if leaving & 1 else S[t, k]
            if not np.isnan(x):
                new_v[n_new] = x
                new_m[n_new] = own
                n_new += 1
                n_class[0, own] += 1
            ring[k, place] = x
        n[0] = _merge_in(v, m, ticks, N, gone, new_v[:n_new], new_m, tick)
        ring_ticks[place] = tick
        place += 1
        if place == W:
            place = 0


@jit
def _cross_out(
    v: Array, m: Array, ticks: Array, n: int, n_class: Array, gone: Array, x: float, cls: int, tick: int
) -> None:
    """Mark the score x of class cls and tick as gone, one that is not gone yet where several are alike."""
    i = _lower(v, n, x)
    while gone[i] or (m[i] & CLASS_BITS) != cls or (ticks.shape[0] > 0 and ticks[i] != tick):
        i += 1
    gone[i] = 1
    n_class[cls] -= 1


@jit
def _merge_in(
    v: Array, m: Array, ticks: Array, n: int, gone: Array, new_v: Array, new_m: Array, tick: int
) -> int:
    """Sort new scores into v[0, :n], without what is gone, by way of v[1]; how many there are then.

    Among equal scores the new ones stand last, as if each had been put in by itself.
    """
    weighted = ticks.shape[1] > 0
    order = np.argsort(new_v, kind="mergesort")
    n_new = new_v.shape[0]
    i = 0
    c = 0
    for a in range(n_new + 1):  # before the a-th new one come the old ones up to it; after the last, the rest
        stop = _upper(v[0], n, new_v[order[a]]) if a < n_new else n
        while i < stop:
            if not gone[i]:
                v[1, c] = v[0, i]
                m[1, c] = m[0, i]
                if weighted:
                    ticks[1, c] = ticks[0, i]
                c += 1
            i += 1
        if a < n_new:
            v[1, c] = new_v[order[a]]
            m[1, c] = new_m[order[a]]
            if weighted:
                ticks[1, c] = tick
            c += 1
    v[0, :c] = v[1, :c]
    m[0, :c] = m[1, :c]
    if weighted:
        ticks[0, :c] = ticks[1, :c]
    return c


@jit
def rank_gathered(
    S: Array, classes: Array, first_tick: int,
    ring: Array, marks: Array, ring_ticks: Array, head: int,
    slots: Array,  # (n_slots,) places of the ring, relative to head + t and negative: the tested score's own past
    columns: Array, lags: int, everywhere: bool,  # local: the last lags ticks of columns (1 or T, K, N); or "or"
    n_left: Array, last_flag: Array, run_start: Array, capacity: int, window: int,
    tol: Array, spread: Array, side: int, paper: bool, alpha: float, need: int, fewest: int, use_classes: bool,
    weights: Array, absorb_runs: bool, most_left: int, longest_run: int,
    p: Array, strength: Array, low: Array, high: Array, code: Array,
) -> None:  # fmt: skip
    """Reference sets that are collected anew for each score: of one tick's scores all are ranked before any enters."""
    T, K = S.shape
    H = ring.shape[1]
    out = np.empty(4)
    v = np.empty(capacity + 1)
    m = np.empty(capacity + 1, np.uint8)
    ticks = np.empty(capacity + 1, np.int64)
    place = head
    for t in range(T):
        tick = first_tick + t
        near = columns[t if columns.shape[0] > 1 else 0]
        for k in range(K):
            own = int(classes[t, k])
            n = 0
            if lags == 0:
                for a in range(slots.shape[0]):
                    n = _collect(ring, marks, ring_ticks, k, (place + slots[a]) % H, v, m, ticks, n)
            elif not everywhere:
                for a in range(near.shape[1]):
                    for lag in range(lags, 0, -1):
                        n = _collect(ring, marks, ring_ticks, near[k, a], (place - lag) % H, v, m, ticks, n)
            else:
                for a in range(near.shape[1]):
                    for lag in range(H, 0, -1):
                        n = _collect(ring, marks, ring_ticks, near[k, a], (place - lag) % H, v, m, ticks, n)
                for j in range(K):
                    collected = False
                    for a in range(near.shape[1]):
                        collected |= near[k, a] == j
                    if not collected:
                        for lag in range(lags, 0, -1):
                            if ring_ticks[(place - lag) % H] >= tick - lags:  # training ticks may have gaps
                                n = _collect(ring, marks, ring_ticks, j, (place - lag) % H, v, m, ticks, n)
            order = np.argsort(v[:n], kind="mergesort")
            n_own = 0
            for a in range(n):
                n_own += (m[a] & CLASS_BITS) == own
            code[t, k] = _rank_sorted(
                v[order], m[order], ticks[order], n, n_own, own if use_classes else -1, fewest, need,
                S[t, k], tick, tol[k], spread[k], side, paper, alpha, weights, out,
            )  # fmt: skip
            p[t, k] = out[0]
            strength[t, k] = out[1]
            low[t, k] = out[2]
            high[t, k] = out[3]
        for k in range(K):
            if marks[k, (place - window) % H] & LEFT_OUT:
                n_left[k] -= 1
            marks[k, place] = classes[t, k]
            leaving = 0
            if absorb_runs and p[t, k] <= RUN_LEVEL:
                leaving = _leave_out_run(
                    tick, k, place, marks, n_left, last_flag, run_start, most_left, longest_run
                )
            for back in range(1, NEAR + 1):
                if leaving >> back & 1:
                    ring[k, (place - back) % H] = np.nan
            ring[k, place] = np.nan if leaving & 1 else S[t, k]
        ring_ticks[place] = tick
        place += 1
        if place == H:
            place = 0


@jit
def _collect(
    ring: Array, marks: Array, ring_ticks: Array, k: int, place: int, v: Array, m: Array, ticks: Array, n: int
) -> int:
    x = ring[k, place]
    if np.isnan(x):
        return n
    v[n] = x
    m[n] = marks[k, place]
    ticks[n] = ring_ticks[place]
    return n + 1
