"""X, y -> B members and who saw what; predictions of members that did not see a time -> one number.

`in_bag[b, i]` counts how often member b drew training time i. A leave-one-out predictor of time i aggregates the
members with a zero there, so its residual at time i is that of a prediction for a reading it has never seen.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from . import _kernels

Array = np.ndarray[Any, Any]
Aggregation = str | Callable[[Array], Array]

BLOCK_NUMBERS = 1 << 18  # leave-one-out predictions that stand in memory at once, per thread


def draw(n_times: int, n_members: int, seed: int, block_ends: Array | None = None) -> Array:
    """`in_bag` (B, n_times): draws with replacement, times one by one, or (moving blocks) runs of them.

    `block_ends[s]` is where the block that starts at time s ends, counted on past the last time around the circle.
    Every member has its own child of the seed: it is the same member wherever and whenever it is drawn.
    """
    in_bag = np.empty((n_members, n_times), dtype=np.uint16)
    for b, child in enumerate(np.random.SeedSequence(seed).spawn(n_members)):
        rng = np.random.default_rng(child)
        if block_ends is None:
            drawn = rng.integers(n_times, size=n_times)
        else:
            drawn = _blocks(rng, n_times, block_ends)
        in_bag[b] = np.bincount(drawn, minlength=n_times)
    return in_bag


def _blocks(rng: np.random.Generator, n_times: int, block_ends: Array) -> Array:
    starts = rng.integers(n_times, size=n_times)  # more than are needed, drawn at once
    lengths = block_ends[starts] - starts
    needed = int(np.searchsorted(np.cumsum(lengths), n_times)) + 1
    starts, lengths = starts[:needed], lengths[:needed]
    first = np.repeat(starts - (np.cumsum(lengths) - lengths), lengths)
    return np.asarray((first + np.arange(len(first)))[:n_times] % n_times)


def day_blocks(ticks: Array, span: int) -> Array:
    """`block_ends` for runs of `span` ticks over the usable `ticks`, circular on the clock of first to last tick."""
    n_times = len(ticks)
    around = np.concatenate([ticks, ticks + (ticks[-1] - ticks[0] + 1)])
    ends = np.searchsorted(around, ticks + span, side="left")
    return np.minimum(np.maximum(ends, np.arange(n_times) + 1), np.arange(n_times) + n_times)


@dataclass(frozen=True, eq=False)
class OutOfBag:
    """Which members did not see which training time, ready for every aggregation."""

    masks: Array  # (B, T') uint8
    aggregation: Aggregation
    low: Array  # (T',) first and one past the last order statistic that the aggregation averages
    high: Array
    valid: Array  # indices of the times that at least one member did not see

    @property
    def n_predictors(self) -> int:
        """How many leave-one-out predictors there are."""
        return len(self.valid)


def out_of_bag(in_bag: Array, aggregation: Aggregation) -> OutOfBag:
    """Prepare the masks."""
    masks = (in_bag == 0).astype(np.uint8)
    m = masks.sum(axis=0, dtype=np.int64)
    low, high = _order_statistics(m, aggregation)
    return OutOfBag(masks, aggregation, low, high, np.flatnonzero(m))


def _order_statistics(m: Array, aggregation: Aggregation) -> tuple[Array, Array]:
    low = np.zeros_like(m)
    if aggregation == "median":
        low = np.maximum(m - 1, 0) // 2
    elif aggregation == "trimmed_mean":
        low = np.where(m >= 3, np.maximum(1, (0.1 * m).astype(np.int64)), 0)
    return low.astype(np.int16), (m - low).astype(np.int16)


def aggregate(predictions: Array, aggregation: Aggregation) -> Array:
    """phi over all members: (B, ...) -> (...)."""
    if callable(aggregation):
        flat = predictions.reshape(len(predictions), -1)
        return np.asarray(aggregation(flat), dtype=np.float64).reshape(predictions.shape[1:])
    if aggregation == "mean":
        return np.asarray(predictions.mean(axis=0), dtype=np.float64)
    low, high = (int(x[0]) for x in _order_statistics(np.array([len(predictions)]), aggregation))
    # np.sort puts NaN last, where it could be trimmed away: what is unknown stays unknown
    middle = np.sort(predictions, axis=0)[low:high].mean(axis=0)
    return np.where(np.isnan(predictions).any(axis=0), np.nan, middle)


def leave_one_out(predictions: Array, oob: OutOfBag, times: slice) -> Array:
    """Leave-one-out predictions of the training rows: (B, time, sensor) at these times -> (time, sensor)."""
    masks = np.ascontiguousarray(oob.masks[:, times])
    out = np.empty(predictions.shape[1:])
    if callable(oob.aggregation):
        for t in range(len(out)):
            who = np.flatnonzero(masks[:, t])
            out[t] = oob.aggregation(predictions[who, t]) if len(who) else np.nan
    elif oob.aggregation == "mean":
        _kernels.loo_mean_rows(predictions, masks, out)
    else:
        _kernels.loo_sorted_rows(predictions, masks, oob.low[times], oob.high[times], out)
    return out


def quantile_rank(alpha: float, n: int) -> int:
    """The paper's (1 - alpha) quantile of n numbers is the r-th smallest of them."""
    return max(1, int(np.ceil(round((1.0 - alpha) * n, 9))))


class QuantileCentre:
    """For each row, the rank-th smallest of all leave-one-out predictions of it: exact, in bounded memory.

    Times that the same members left out have the same predictor: it is asked once, and counts as often as there are
    such times (day blocks leave about half as many predictors as times). Their predictions for a block of rows are one
    matrix product (mean) or come from one sort of the B members (median, trimmed mean); then the quantile is selected,
    and the block is forgotten.
    """

    def __init__(self, oob: OutOfBag, rank: int, dtype: Any = np.float64) -> None:
        self.oob = oob
        self.rank = rank
        n = oob.n_predictors
        distinct, self._times = _distinct(oob.masks, oob.valid)
        self._runs = np.concatenate([[0], np.flatnonzero(np.diff(self._times)) + 1, [len(distinct)]])
        self._masks = np.ascontiguousarray(oob.masks[:, distinct])
        self._low, self._high = oob.low[distinct], oob.high[distinct]
        self.rows = max(1, BLOCK_NUMBERS // max(len(distinct), 1))
        if oob.aggregation == "mean" and n:
            weights = self._masks / self._masks.sum(axis=0, dtype=np.float64)
            self._weights = np.ascontiguousarray(weights, dtype=dtype)
            # mean and spread of the n predictions tell the selection where to look first
            self._mean_weight = weights @ self._times / n
            centred = weights - self._mean_weight[:, None]
            self._covariance = (centred * self._times) @ centred.T / n
        self._z = float(ndtri(min(max((self.rank - 0.5) / max(n, 1), 1e-9), 1 - 1e-9)))

    @property
    def n_distinct(self) -> int:
        """How many different leave-one-out predictors there are."""
        return len(self._times)

    def of(self, predictions: Array, threads: int = 1) -> Array:
        """(B, rows) -> (rows,)."""
        n_rows = predictions.shape[1]
        out = np.full(n_rows, np.nan)
        if self.oob.n_predictors == 0:
            return out
        share = -(-n_rows // threads) if threads > 1 else n_rows
        share = -(-share // self.rows) * self.rows
        parts = [slice(a, min(a + share, n_rows)) for a in range(0, n_rows, max(share, 1))]
        if len(parts) <= 1:
            self._part(predictions, slice(0, n_rows), out)
        else:
            with ThreadPoolExecutor(len(parts)) as pool:
                list(pool.map(lambda part: self._part(predictions, part, out), parts))
        return out

    def _part(self, predictions: Array, part: slice, out: Array) -> None:
        dtype = self._weights.dtype if self.oob.aggregation == "mean" else np.float64
        buffer = np.empty((min(self.rows, part.stop - part.start), self.n_distinct), dtype)
        for a in range(part.start, part.stop, self.rows):
            block = slice(a, min(a + self.rows, part.stop))
            self._block(predictions[:, block], buffer[: block.stop - a], out[block])

    def _block(self, P: Array, numbers: Array, out: Array) -> None:
        if self.oob.aggregation == "mean":
            A = np.ascontiguousarray(P.T, dtype=numbers.dtype)
            np.matmul(A, self._weights, out=numbers)
            A = A.astype(np.float64, copy=False)
            middle = A @ self._mean_weight
            spread = np.sqrt(np.maximum(np.einsum("ij,ij->i", A @ self._covariance, A), 0.0))
        else:
            self._order_statistics(P, numbers)
            middle, spread = numbers.mean(axis=1), numbers.std(axis=1)
        half = 0.05 * spread + 1e-12 * np.abs(middle) + 1e-300
        guess = middle + self._z * spread
        _kernels.select_rows(numbers, self._times, self._runs, self.rank, guess, half, out)

    def _order_statistics(self, P: Array, numbers: Array) -> None:
        if callable(self.oob.aggregation):
            for i, mask in enumerate(self._masks.T):
                numbers[:, i] = self.oob.aggregation(P[mask > 0])
            return
        _kernels.loo_sorted_all(
            np.ascontiguousarray(P, dtype=np.float64), self._masks, self._low, self._high, numbers
        )
        numbers[np.isnan(P).any(axis=0)] = np.nan


def _distinct(masks: Array, valid: Array) -> tuple[Array, Array]:
    """One of the valid times for each different mask, and how many share it; those of fewest times first."""
    bits = np.packbits(masks[:, valid], axis=0)
    order = np.lexsort(bits)
    differs = (bits[:, order[1:]] != bits[:, order[:-1]]).any(axis=0)
    first = np.concatenate([[0], np.flatnonzero(differs) + 1]) if len(order) else order
    times = np.diff(first, append=len(order))
    by_times = np.argsort(times, kind="stable")
    return valid[order[first[by_times]]], times[by_times]
