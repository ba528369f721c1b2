"""X, y, in_bag -> B ridge regressions in one pass over the data.

A bootstrap changes how often a time counts, not what stands in its rows. So each time's rows are multiplied out once
into a small Gram block, all B weighted Gram matrices are one matrix product of counts and blocks, and each member is
one Cholesky factorisation. No row is ever copied.

A Gram matrix squares the condition of its rows. Where that could be seen in a prediction (few rows for many features,
on scales of their own), a second pass over the rows moves the coefficients by what the first has left.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.linalg.lapack import dpocon
from sklearn.linear_model import Ridge

from .. import _kernels

Array = np.ndarray[Any, Any]

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

    A Gram matrix is that of (x - shift, 1, y), and kept as its upper triangle, row by row.
    """

    def __init__(self, in_bag: Array, group: Array, shift: Array) -> None:
        self.in_bag = in_bag.astype(np.float64)
        self.group = np.ascontiguousarray(group, dtype=np.int64)
        self.members_of = [np.flatnonzero(group == g) for g in range(int(group.max()) + 1)]
        self.shift = shift  # near the features' mean: products of what is left do not cancel
        self.triangle = np.triu_indices(len(shift) + 2)

    @property
    def n_groups(self) -> int:
        """How many models each member is."""
        return len(self.members_of)

    def nothing(self) -> Array:
        """Sums over no rows, to which those of blocks are added."""
        return np.zeros((self.n_groups, len(self.in_bag), len(self.triangle[0])))

    def block(self, X: Array, y: Array, times: slice) -> Array:
        """Weighted sums (group, B, entry) over rows X (time, sensor, feature), y with NaN where a row is not used."""
        sums = self.nothing()
        n_entries = sums.shape[2]
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

    def is_delicate(self, sums: Array, strength: float, empty: set[int]) -> bool:
        """Whether the rounding of these sums could be seen in a prediction; a group's first member stands for it."""
        full = set(range(self.n_groups)) - empty
        return any(self._condition(sums[g, 0], strength) < DELICATE for g in full)

    def slopes(self, members: RidgeMembers, X: Array, y: Array, times: slice) -> Array:
        """Weighted sums (group, B, d + 1) of (x - shift, 1) times what the members leave of y."""
        left = (y - members.predict(X)) * self.in_bag[:, times, None]
        used = ~np.isnan(left[0])
        left, rows = np.where(used, left, 0.0), np.where(used[:, :, None], X - self.shift, 0.0)
        out = np.empty((self.n_groups, len(left), rows.shape[2] + 1))
        for g, who in enumerate(self.members_of):
            of_rows = left[:, :, who].reshape(len(left), -1)
            out[g, :, :-1] = of_rows @ rows[:, who].reshape(of_rows.shape[1], -1)
            out[g, :, -1] = of_rows.sum(axis=1)
        return out

    def refined(
        self, members: RidgeMembers, sums: Array, slopes: Array, strength: float, empty: set[int]
    ) -> RidgeMembers:
        """The members moved to where no slope is left: one step of iterative refinement."""
        coef, intercept = members.coef.copy(), members.intercept.copy()
        for g in set(range(self.n_groups)) - empty:
            for b in range(len(self.in_bag)):
                A, mean, weight = self._system(sums[g, b], strength)
                slope, rest = slopes[g, b, :-1], slopes[g, b, -1]
                step = _solved(A, slope - mean * rest - strength * coef[g, b])
                coef[g, b] += step
                intercept[g, b] += rest / weight - step @ (mean + self.shift)
        return RidgeMembers(coef, intercept, members.group)

    def solve(self, sums: Array, strength: float, empty: set[int]) -> RidgeMembers:
        """One Cholesky factorisation for each member and group; `empty` groups, which have no rows, predict NaN."""
        n_members, d = sums.shape[1], len(self.shift)
        coef = np.full((self.n_groups, n_members, d), np.nan)
        intercept = np.full((self.n_groups, n_members), np.nan)
        for g in set(range(self.n_groups)) - empty:
            for b in range(n_members):
                A, mean, weight = self._system(sums[g, b], strength)
                of_y = self._gram(sums[g, b])[:, d + 1]
                coef[g, b] = _solved(A, of_y[:d] - mean * of_y[d])
                intercept[g, b] = of_y[d] / weight - coef[g, b] @ (mean + self.shift)
        return RidgeMembers(coef, intercept, self.group)

    def _gram(self, sums: Array) -> Array:
        """The upper triangle as a matrix."""
        gram = np.zeros((len(self.shift) + 2, len(self.shift) + 2))
        gram[self.triangle] = sums
        return gram

    def _system(self, sums: Array, strength: float) -> tuple[Array, Array, float]:
        """The matrix (upper triangle) to solve with, the weighted mean of the features, and the sum of the weights."""
        d, gram = len(self.shift), self._gram(sums)
        weight = gram[d, d]
        sum_x = gram[:d, d]
        # the intercept is not penalised: what is solved is the system of deviations from the weighted means
        A = gram[:d, :d] - np.triu(np.outer(sum_x, sum_x)) / weight
        A[np.diag_indices(d)] += strength
        return A, sum_x / weight, float(weight)

    def _condition(self, sums: Array, strength: float) -> float:
        """The reciprocal condition of a member's system, as LAPACK estimates it; 0 where there is no factor."""
        A, _, _ = self._system(sums, strength)
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
