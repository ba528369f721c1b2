"""rows with holes, means and covariances -> conditional means."""

from __future__ import annotations

from typing import Any

import numpy as np

from .compiled import jit

Array = np.ndarray[Any, Any]


@jit
def conditional_sums(
    D: Array,  # (T, K) with NaN
    mean: Array,
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
def fill_same_jointly(D: Array, mean: Array, covariance: Array, index: Array, out: Array) -> None:
    """out (T, K, N - 1): the row's value of each other column of index (1 or T, K, N); holes filled without k."""
    T, K, _ = out.shape
    N = index.shape[2]
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
                    v = _conditional_mean(D[t], j, k, mean, covariance, A, x, seen)
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
def _conditional_mean(
    d: Array,  # (K,) with NaN: one row
    target: int,
    without: int,  # a column that must not be used
    mean: Array,
    covariance: Array,
    A: Array,
    x: Array,
    seen: Array,
) -> float:
    o = 0
    for j in range(d.shape[0]):
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
