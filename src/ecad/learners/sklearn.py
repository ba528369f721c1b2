"""X, y, in_bag -> B copies of any scikit-learn regressor.

A count is a sample weight where a weight of two is exactly a row given twice; elsewhere (trees, whose leaf sizes are
counted in rows and whose ties are drawn, other stochastic fits, pipelines) the rows are repeated.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.linear_model import (
    ElasticNet,
    GammaRegressor,
    Lasso,
    LinearRegression,
    PoissonRegressor,
    QuantileRegressor,
    Ridge,
    TweedieRegressor,
)
from sklearn.utils import get_tags

Array = np.ndarray[Any, Any]

_EXACT = (
    LinearRegression, Ridge, Lasso, ElasticNet, PoissonRegressor, GammaRegressor, TweedieRegressor, QuantileRegressor
)  # fmt: skip


def weights_are_counts(regressor: Any) -> bool:
    """Whether a sample weight of two means exactly the same as the row given twice."""
    return type(regressor) in _EXACT


def takes_missing(regressor: Any) -> bool:
    """Whether the regressor says that it can be given NaN."""
    return bool(get_tags(regressor).input_tags.allow_nan)


@dataclass(frozen=True, eq=False)
class SklearnMembers:
    """Fitted regressors, one list of B for each group; group (sensor,) says whose is whose."""

    regressors: list[list[Any]]
    group: Array
    keeps_missing: bool

    def predict(self, X: Array) -> Array:
        """(time, sensor, feature) -> (member, time, sensor); NaN where the regressor cannot take a row's hole."""
        n_times, n_sensors, _ = X.shape
        out = np.full((max(map(len, self.regressors)), n_times, n_sensors), np.nan)
        usable = np.ones((n_times, n_sensors), dtype=bool) if self.keeps_missing else ~np.isnan(X).any(axis=2)
        for g, members in enumerate(self.regressors):
            t, k = np.nonzero(usable & (self.group == g))
            if len(t):
                rows = X[t, k]
                for b, member in enumerate(members):
                    out[b, t, k] = np.asarray(member.predict(rows), dtype=np.float64).reshape(-1)
        return out


def fit_members(
    regressor: Any,
    X: Array,
    y: Array,
    time_index: Array,
    row_group: Array,
    in_bag: Array,
    n_groups: int,
    seed: int,
    n_jobs: int | None,
    progress: Callable[[int], None],
) -> list[list[Any]]:
    """Fit B members a group on rows X (row, feature); `time_index` (row,) says which column of `in_bag` a row is of."""
    n_members = len(in_bag)
    weighted = weights_are_counts(regressor)
    tasks = []
    for g in range(n_groups):
        rows = np.flatnonzero(row_group == g)
        if not len(rows):
            continue  # sensors without a training reading: nothing is ever predicted for them
        tasks += [(g, rows, b) for b in range(n_members)]
    work = (  # made one after another: counts of all members would need more memory than the rows
        delayed(_fit_one)(
            regressor,
            X[rows],
            y[rows],
            in_bag[b, time_index[rows]].astype(np.int64),
            _child(seed, b),
            weighted,
        )
        for _, rows, b in tasks
    )
    fitted: list[list[Any]] = [[] for _ in range(n_groups)]
    for (g, *_), member in zip(tasks, Parallel(n_jobs=n_jobs, return_as="generator")(work), strict=True):
        fitted[g].append(member)
        progress(1)
    return fitted


def _child(seed: int, member: int) -> int:
    """A member's own seed, whatever members there are besides."""
    return int(np.random.SeedSequence([seed, 1, member]).generate_state(1)[0] & 0x7FFFFFFF)


def _fit_one(regressor: Any, X: Array, y: Array, counts: Array, seed: int, weighted: bool) -> Any:
    member = clone(regressor)
    named = {name: seed for name in member.get_params() if name.rsplit("__", 1)[-1] == "random_state"}
    member.set_params(**named)
    if weighted:
        drawn = counts > 0
        return member.fit(X[drawn], y[drawn], sample_weight=counts[drawn].astype(np.float64))
    drawn = np.repeat(np.arange(len(y)), counts)
    return member.fit(X[drawn], y[drawn])
