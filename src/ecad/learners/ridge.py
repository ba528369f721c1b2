"""X, y, in_bag -> B ridge regressions in one pass over the data.

A bootstrap changes how often a time counts, not what stands in its rows. So each time's rows are multiplied out once
into a small Gram block, all B weighted Gram matrices are one matrix product of counts and blocks, and each member is
one Cholesky factorisation. No row is ever copied.

A Gram matrix squares the condition of its rows. Where that could be seen in a prediction (few rows for many features,
on scales of their own), a second pass over the rows moves the coefficients by what the first has left.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.linalg.lapack import dpocon
from sklearn.linear_model import Ridge

from .. import _kernels

Array = np.ndarray[Any, Any]
OfBlock = Callable[[Array, Array, slice], Array]

DELICATE = 1e-6  # reciprocal condition of a Gram matrix below which what it says is refined
TIME_NUMBERS = 1 << 16  # entries of the times' own Gram matrices that stand in memory at once


@dataclass(frozen=True, eq=False)
class RidgeMembers:
    """Coefficients (group, member, feature) and intercepts (group, member); group (sensor,) says whose is whose."""

    coef: Array
    intercept: Array
    group: Array

    def astype(self, dtype: Any) -> RidgeMembers:
        """The same members in another precision."""
        return RidgeMembers(self.coef.astype(dtype), self.intercept.astype(dtype), self.group)

    def predict(self, X: Array) -> Array:
        """(time, sensor, feature) -> (member, time, sensor)."""
        n_times, n_sensors, d = X.shape
        n_groups, n_members, _ = self.coef.shape
        if n_groups == 1:
            out = self.coef[0] @ X.reshape(-1, d).T
            out += self.intercept[0][:, None]
            return out.reshape(n_members, n_times, n_sensors)
        out = np.empty((n_members, n_times, n_sensors), dtype=self.coef.dtype)
        for g in range(n_groups):
            who = np.flatnonzero(self.group == g)
            rows = X[:, who].reshape(-1, d)
            part = self.coef[g] @ rows.T + self.intercept[g][:, None]
            out[:, :, who] = part.reshape(n_members, n_times, len(who))
        return out


class WeightedGrams:
    """The B weighted Gram matrices of each group, added up block by block in a fixed order.

    A Gram matrix is that of (x - shift, 1, y), and kept as its upper triangle, row by row. Groups that are `empty` have
    no rows, and predict NaN.
    """

    def __init__(
        self, in_bag: Array, group: Array, shift: Array, strength: float, empty: Collection[int] = ()
    ) -> None:
        self.in_bag = in_bag.astype(np.float64)
        self.group = np.ascontiguousarray(group, dtype=np.int64)
        self.members_of = [np.flatnonzero(group == g) for g in range(int(group.max()) + 1)]
        self.full = [g for g in range(len(self.members_of)) if g not in empty]
        self.shift = shift  # near the features' mean: products of what is left do not cancel
        self.strength = strength
        self.triangle = np.triu_indices(len(shift) + 2)

    def fit(self, over_rows: Callable[[OfBlock], Array]) -> RidgeMembers:
        """The members; `over_rows` adds up, in a fixed order, what a function gives of (X, y, times) of each block."""
        sums = over_rows(self.block)
        members = self.solve(sums)
        if self.is_delicate(sums):
            members = self.refined(members, sums, over_rows(partial(self.slopes, members)))
        return members

    def block(self, X: Array, y: Array, times: slice) -> Array:
        """Weighted sums (group, B, entry) over rows X (time, sensor, feature), y with NaN where a row is not used."""
        n_entries = len(self.triangle[0])
        sums = np.zeros((len(self.members_of), len(self.in_bag), n_entries))
        size = max(1, TIME_NUMBERS // n_entries)
        grams = np.empty((min(size, len(y)), n_entries))
        for start in range(0, len(y), size):
            part = slice(start, min(start + size, len(y)))
            counts = np.ascontiguousarray(self.in_bag[:, times][:, part])
            for g, who in enumerate(self.members_of):
                of_times = grams[: part.stop - start]
                _kernels.time_grams(X[part], y[part], self.shift, who, of_times)
                sums[g] += counts @ of_times
        return sums

    def solve(self, sums: Array) -> RidgeMembers:
        """One Cholesky factorisation for each member and group."""
        members = self._unknown()
        for g, b in self._each():
            A, of_y, mean, weight = self._system(sums[g, b])
            members.coef[g, b] = coef = _solved(A, of_y[:-1] - mean * of_y[-1])
            members.intercept[g, b] = of_y[-1] / weight - coef @ (mean + self.shift)
        return members

    def is_delicate(self, sums: Array) -> bool:
        """Whether the rounding of these sums could be seen in a prediction; a group's first member stands for it."""
        return any(_condition(self._system(sums[g, 0])[0]) < DELICATE for g in self.full)

    def slopes(self, members: RidgeMembers, X: Array, y: Array, times: slice) -> Array:
        """Weighted sums (group, B, d + 1) of (x - shift, 1) times what the members leave of y."""
        left = (y - members.predict(X)) * self.in_bag[:, times, None]
        used = ~np.isnan(left[0])
        left, rows = np.where(used, left, 0.0), np.where(used[:, :, None], X - self.shift, 0.0)
        out = np.empty((len(self.members_of), len(left), rows.shape[2] + 1))
        for g, who in enumerate(self.members_of):
            of_rows = left[:, :, who].reshape(len(left), -1)
            out[g, :, :-1] = of_rows @ rows[:, who].reshape(of_rows.shape[1], -1)
            out[g, :, -1] = of_rows.sum(axis=1)
        return out

    def refined(self, members: RidgeMembers, sums: Array, slopes: Array) -> RidgeMembers:
        """The members moved to where no slope is left: one step of iterative refinement."""
        out = self._unknown()
        for g, b in self._each():
            A, _, mean, weight = self._system(sums[g, b])
            slope, rest, coef = slopes[g, b, :-1], slopes[g, b, -1], members.coef[g, b]
            step = _solved(A, slope - mean * rest - self.strength * coef)
            out.coef[g, b] = coef + step
            out.intercept[g, b] = members.intercept[g, b] + rest / weight - step @ (mean + self.shift)
        return out

    def _each(self) -> Iterator[tuple[int, int]]:
        """Group and member of every model that has rows."""
        return product(self.full, range(len(self.in_bag)))

    def _unknown(self) -> RidgeMembers:
        shape = (len(self.members_of), len(self.in_bag))
        return RidgeMembers(np.full((*shape, len(self.shift)), np.nan), np.full(shape, np.nan), self.group)

    def _system(self, sums: Array) -> tuple[Array, Array, Array, float]:
        """The matrix to solve with (upper triangle), products with y (d + 1), mean of the features, sum of weights."""
        d = len(self.shift)
        gram = np.zeros((d + 2, d + 2))
        gram[self.triangle] = sums
        weight = float(gram[d, d])
        sum_x = gram[:d, d]
        # the intercept is not penalised: what is solved is the system of deviations from the weighted means
        A = gram[:d, :d] - np.triu(np.outer(sum_x, sum_x)) / weight
        A[np.diag_indices(d)] += self.strength
        return A, gram[: d + 1, d + 1], sum_x / weight, weight


def _condition(A: Array) -> float:
    """The reciprocal condition of A (its upper triangle), as LAPACK estimates it; 0 where there is no factor."""
    try:
        factor, _ = cho_factor(A, lower=False, check_finite=False)
    except np.linalg.LinAlgError:
        return 0.0
    norm = np.abs(A + np.triu(A, 1).T).sum(axis=0).max()
    return float(dpocon(factor, norm, uplo="U")[0])


def _solved(A: Array, b: Array) -> Array:
    """A w = b, of a symmetric A that is given by its upper triangle."""
    try:
        return np.asarray(cho_solve(cho_factor(A, lower=False, check_finite=False), b, check_finite=False))
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.lstsq(A + np.triu(A, 1).T, b, rcond=None)[0])


def strength_of(regressor: Any) -> float | None:
    """The strength of a ridge regression that these members fit exactly; None for any other regressor."""
    if isinstance(regressor, str):
        return 1.0 if regressor == "ridge" else None
    plain = type(regressor) is Ridge and regressor.fit_intercept and not regressor.positive
    return float(regressor.alpha) if plain and np.ndim(regressor.alpha) == 0 and regressor.alpha > 0 else None
