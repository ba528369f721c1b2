"""readings with holes -> readings without, mask kept: a hole is filled from what is known by then.

Nothing here looks ahead, and nothing looks at the reading that is to be judged: `"gaussian"` and `"iterative"` see one
tick only, `"seasonal"` the past of one sensor. A filled cell may become a feature; it is never judged.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from . import _kernels

Array = np.ndarray[Any, Any]

JOINTLY_UP_TO = 100  # sensors; beyond it each hole is conditioned on the nearest few only
N_NEAR = 20
SHRINKAGE = 0.05
MOST_COLUMNS = 30  # beyond them the iterative imputer looks at 20 columns only
EM_ROUNDS, EM_TICKS, EM_TOLERANCE = 30, 5_000, 1e-3
EM_RIDGE = 1e-6  # added to every variance, so that a constant sensor can be divided by
_SLICES = 8  # sums of the EM are made in this many slices, whatever the number of threads


@dataclass(frozen=True, eq=False)
class Gaussian:
    """Mean and covariance of the sensors' deviations; holes become conditional means of their tick."""

    mean: Array
    covariance: Array  # (K, K), or with more than 100 sensors (K, m + 1, m + 1): each with its near ones
    precision: Array
    near: Array  # (K, m) with more than 100 sensors, else (K, 0)

    def fill(self, deviations: Array) -> Array:
        """Deviations (time, sensor) with no holes."""
        out = np.empty_like(deviations)
        if self.near.shape[1]:
            _kernels.fill_near(deviations, self.mean, self.covariance, self.near, out)
        else:
            _kernels.fill_jointly(deviations, self.mean, self.covariance, self.precision, out)
        return out

    def fill_same_tick(self, deviations: Array, index: Array) -> Array:
        """(time, sensor, neighbour): the others' deviations at the tick, holes filled without the sensor itself."""
        out = np.empty((*deviations.shape, index.shape[2] - 1))
        if self.near.shape[1]:
            _kernels.fill_same_near(deviations, self.mean, self.covariance, self.near, index, out)
        else:
            _kernels.fill_same_jointly(deviations, self.mean, self.covariance, index, out)
        return out


def fit_gaussian(deviations: Array, order: Array) -> Gaussian:
    """Learn mean and covariance from training deviations (time, sensor) with holes, order (K, M) nearest first."""
    n_sensors = deviations.shape[1]
    if n_sensors > JOINTLY_UP_TO:
        return _fit_near(deviations, order[:, 1 : 1 + N_NEAR])
    mean, covariance = expectation_maximisation(deviations)
    return Gaussian(mean, covariance, np.linalg.inv(covariance), np.empty((n_sensors, 0), dtype=np.int64))


def expectation_maximisation(deviations: Array) -> tuple[Array, Array]:
    """Mean and covariance by EM over the ticks with something observed."""
    some = _ticks_used(deviations)
    n_sensors = deviations.shape[1]
    seen = ~np.isnan(some)
    n_seen = np.maximum(seen.sum(axis=0), 1)
    mean = np.where(seen, some, 0.0).sum(axis=0) / n_seen
    variance = np.where(seen, (some - mean) ** 2, 0.0).sum(axis=0) / n_seen
    variance[~seen.any(axis=0)] = 1.0
    covariance = np.diag(np.maximum(variance, EM_RIDGE))
    for _ in range(EM_ROUNDS):
        precision = np.linalg.inv(covariance)
        total, outer, used = np.zeros(n_sensors), np.zeros((n_sensors, n_sensors)), 0
        for part in np.array_split(some, _SLICES):
            used += _kernels.conditional_sums(part, mean, precision, total, outer)
        if used == 0:
            break
        shift = total / used
        new = outer / used - np.outer(shift, shift)
        new[np.diag_indices(n_sensors)] += EM_RIDGE
        change = max(float(np.abs(shift).max()), float(np.abs(new - covariance).max()))
        mean, covariance = mean + shift, new
        if change < EM_TOLERANCE:
            break
    return mean, covariance


def _ticks_used(deviations: Array) -> Array:
    """Ticks with something observed; of many, evenly spaced ones."""
    some = deviations[~np.isnan(deviations).all(axis=1)]
    if len(some) > EM_TICKS:
        some = some[np.linspace(0, len(some) - 1, EM_TICKS).astype(np.int64)]
    return np.ascontiguousarray(some)


def _fit_near(deviations: Array, near: Array) -> Gaussian:
    """Pairwise-complete covariances of each sensor with its nearest, shrunk: the cost grows with K, not its cube."""
    n_sensors, m = near.shape
    deviations = _ticks_used(deviations)
    seen = ~np.isnan(deviations)
    n_seen = np.maximum(seen.sum(axis=0), 1)
    mean = np.where(seen, deviations, 0.0).sum(axis=0) / n_seen
    x = np.where(seen, deviations - mean, 0.0).T.copy()
    weight = seen.T.astype(np.float64)
    blocks = np.empty((n_sensors, m + 1, m + 1))
    for k in range(n_sensors):
        who = np.concatenate([[k], near[k]])
        n = np.maximum(weight[who] @ weight[who].T, 1.0)
        block = (x[who] @ x[who].T) / n
        variance = np.where(seen[:, who].any(axis=0), np.diag(block), 1.0)
        block *= 1.0 - SHRINKAGE
        block[np.diag_indices(m + 1)] = variance + EM_RIDGE
        blocks[k] = _positive_definite(block)
    return Gaussian(mean, blocks, np.empty((0, 0)), np.ascontiguousarray(near))


def _positive_definite(block: Array) -> Array:
    """Pairwise estimates need not fit together; those that do have, shrunk, no correlation eigenvalue below this."""
    unit = np.sqrt(np.diag(block))
    value, vector = np.linalg.eigh(block / np.outer(unit, unit))
    if value[0] >= SHRINKAGE:
        return block
    return np.asarray((vector * np.maximum(value, SHRINKAGE)) @ vector.T * np.outer(unit, unit))


@dataclass(eq=False)
class LastDeviation:
    """What `"seasonal"` remembers: how far each sensor was from its level when last seen."""

    deviation: Array  # (sensor,), zero before any


@dataclass(frozen=True, eq=False)
class Iterative:
    """scikit-learn's IterativeImputer, column on columns, fitted once (the paper's way)."""

    imputer: Any = field(repr=False)

    def fill(self, values: Array) -> Array:
        """Readings (time, sensor) with no holes."""
        holes = np.isnan(values)
        rows = holes.any(axis=1)
        filled = values.copy()
        if rows.any():
            # beside a full row, for the imputer takes a short cut where nothing at all was observed:
            # an empty tick would be filled otherwise alone than among others
            given = np.vstack([values[rows], np.zeros(values.shape[1])])
            filled[rows] = np.where(holes[rows], self.imputer.transform(given)[:-1], values[rows])
        return filled


@dataclass(frozen=True)
class Seasonal:
    """A hole is the usual level of its hour plus the last known deviation from it."""


@dataclass(frozen=True)
class Keep:
    """Holes stay holes."""


Filling = Gaussian | Iterative | Seasonal | Keep


def fill(filling: Filling, memory: LastDeviation | None, values: Array, level: Array, scale: Array) -> Array:
    """Readings (time, sensor) with their holes filled; `level` is what is usual then, `scale` each sensor's unit."""
    if isinstance(filling, Keep):
        return values
    if isinstance(filling, Iterative):
        return filling.fill(values)
    holes = np.isnan(values)
    if isinstance(filling, Gaussian):
        if not holes.any():
            return values
        away = filling.fill((values - level) / scale)
    else:
        assert memory is not None
        away = _carry_forward((values - level) / scale, memory)
    return np.where(holes, level + scale * away, values)


def fill_same_tick(
    filling: Filling, values: Array, filled: Array, level: Array, scale: Array, index: Array
) -> Array:
    """(time, sensor, neighbour): the other sensors' readings at the tick, holes filled without the sensor itself."""
    n_times, n_sensors = values.shape
    index = np.broadcast_to(index, (n_times, *index.shape[1:]))
    if isinstance(filling, Gaussian):
        away = filling.fill_same_tick((values - level) / scale, np.ascontiguousarray(index))
        others = (
            np.take_along_axis(level[:, None, :], index[:, :, 1:], axis=2) + scale[index[:, :, 1:]] * away
        )
        seen = np.take_along_axis(values[:, None, :], index[:, :, 1:], axis=2)
        return np.where(np.isnan(seen), others, seen)
    out = np.empty((n_times, n_sensors, index.shape[2] - 1))
    for k in range(n_sensors):
        at_tick = filled  # what fills one sensor alone has not seen the other
        if isinstance(filling, Iterative):
            at_tick = values.copy()
            at_tick[:, k] = np.nan
            at_tick = filling.fill(at_tick)
        out[:, k] = np.take_along_axis(at_tick, index[:, k, 1:], axis=1)
    return out


def last_deviation(values: Array, level: Array, scale: Array) -> LastDeviation:
    """What is remembered at the end of training readings (time, sensor)."""
    memory = LastDeviation(np.zeros(values.shape[1]))
    _carry_forward((values - level) / scale, memory)
    return memory


def _carry_forward(deviations: Array, memory: LastDeviation) -> Array:
    """Each hole gets the last deviation known; the memory moves on."""
    row = np.arange(len(deviations) + 1)[:, None]
    with_memory = np.vstack([memory.deviation, deviations])
    last = np.maximum.accumulate(np.where(np.isnan(with_memory), 0, row), axis=0)
    filled = np.take_along_axis(with_memory, last, axis=0)[1:]
    if len(filled):
        memory.deviation = filled[-1].copy()
    return np.asarray(filled)


def fit_iterative(values: Array, seed: int, **options: Any) -> tuple[Iterative, Array]:
    """The fitted imputer and the filled training readings; `options` go to scikit-learn's IterativeImputer."""
    import sklearn
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer

    if values.shape[1] > MOST_COLUMNS:
        options = {"n_nearest_features": 20, **options}  # its cost explodes with the number of columns
    imputer = IterativeImputer(**{"random_state": seed, "keep_empty_features": True, **options})
    # a hundred small fits inside, each of which would check what was checked at the border
    with sklearn.config_context(assume_finite=True, skip_parameter_validation=True):
        filled = imputer.fit_transform(values.copy())  # with one column it writes into what it is given
    return Iterative(imputer), np.where(np.isnan(values), filled, values)
