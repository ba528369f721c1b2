"""rows of numbers, a rank -> the number of that rank in each row, exact."""

from __future__ import annotations

from typing import Any

import numpy as np

from .compiled import jit

Array = np.ndarray[Any, Any]


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
