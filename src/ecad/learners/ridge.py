"""X, y, in_bag -> B ridge regressions in one pass over the data.

A bootstrap changes how often a time counts, not what stands in its rows. So each time's rows are multiplied out once
into a small Gram block, all B weighted Gram matrices are one matrix product of counts and blocks, and each member is
one Cholesky factorisation. No row is ever copied.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from sklearn.linear_model import Ridge

from .. import _kernels

Array = np.ndarray[Any, Any]

TIME_NUMBERS = 1 << 16  # entries of the times' own Gram matrices that stand in memory at once


@dataclass(frozen=True, eq=False)
class RidgeMembers:
    """Coefficients (group, member, feature) and intercepts (group, member); group (sensor,) says whose is whose."""

    coef: Array
    intercept: Array
    group: Array

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

    def solve(self, sums: Array, strength: float, empty: set[int], dtype: Any = np.float64) -> RidgeMembers:
        """One Cholesky factorisation for each member and group; `empty` groups, which have no rows, predict NaN."""
        n_members, d = sums.shape[1], len(self.shift)
        coef = np.full((self.n_groups, n_members, d), np.nan)
        intercept = np.full((self.n_groups, n_members), np.nan)
        gram = np.zeros((d + 2, d + 2))
        for g in set(range(self.n_groups)) - empty:
            for b in range(n_members):
                gram[self.triangle] = sums[g, b]
                coef[g, b], intercept[g, b] = self._solve_one(gram, strength)
        return RidgeMembers(coef.astype(dtype), intercept.astype(dtype), self.group)

    def _solve_one(self, gram: Array, strength: float) -> tuple[Array, float]:
        d = len(self.shift)
        weight = gram[d, d]
        sum_x, sum_y = gram[:d, d], gram[d, d + 1]
        # the intercept is not penalised: what is solved is the system of deviations from the weighted means
        A = gram[:d, :d] - np.triu(np.outer(sum_x, sum_x)) / weight
        A[np.diag_indices(d)] += strength
        b = gram[:d, d + 1] - sum_x * (sum_y / weight)
        try:
            w = cho_solve(cho_factor(A, lower=False, check_finite=False), b, check_finite=False)
        except np.linalg.LinAlgError:
            full = A + np.triu(A, 1).T
            w = np.linalg.lstsq(full, b, rcond=None)[0]
        return w, float((sum_y - sum_x @ w) / weight - w @ self.shift)


def strength_of(regressor: Any) -> float | None:
    """The strength of a ridge regression that these members fit exactly; None for any other regressor."""
    if isinstance(regressor, str):
        return 1.0 if regressor == "ridge" else None
    plain = type(regressor) is Ridge and regressor.fit_intercept and not regressor.positive
    return float(regressor.alpha) if plain and np.ndim(regressor.alpha) == 0 and regressor.alpha > 0 else None
