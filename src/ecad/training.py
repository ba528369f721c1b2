"""training panel -> what was learned (Model), what a stream starts with (Memory): the other place that knows the order.

    prepared readings -> who draws what -> members -> leave-one-out residuals -> window

Features are made twice, block by block of time, once to train on and once to predict: that costs less than the memory
that they would fill.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import reduce
from operator import iadd
from typing import Any, NamedTuple

import numpy as np
from tqdm import tqdm

from . import _threads, ensemble, features, imputation, pvalues, scores
from .errors import EcadError, FitError, SettingError
from .judging import Memory, Model, class_of, hours_of
from .learners import Members
from .learners.ridge import OfBlock, RidgeMembers, WeightedGrams, strength_of
from .learners.sklearn import SklearnMembers, fit_members, takes_missing
from .panel import Panel
from .preparing import Prepared, block_ends, prepare, targets_of
from .reference import reference_of, require_left_out
from .settings import seed_of

Array = np.ndarray[Any, Any]


class Trained(NamedTuple):
    """What a fit leaves behind."""

    model: Model
    memory: Memory
    in_bag: Array  # (B, T')
    train_times: Array  # (T',) ticks
    calibration_scores: Array  # (T', K)
    seed: int


def train(plan: Any, panel: Panel) -> Trained:
    """Fit everything to a training panel."""
    with _threads.one_blas_thread():
        return _train(plan, panel)


def refuse_unknown(regressor: Any) -> None:
    """A regressor that this version does not have."""
    if isinstance(regressor, str) and regressor == "lstm":
        raise SettingError(
            'The recurrent networks of regressor="lstm", which the paper\'s preset asks for, are not part of this '
            'version: say regressor="ridge", or any scikit-learn regressor.'
        )


def _train(plan: Any, panel: Panel) -> Trained:
    refuse_unknown(plan.regressor)
    seed = seed_of(plan.random_state)
    prepared = prepare(plan, panel, seed)
    targets = targets_of(prepared)
    ticks = np.flatnonzero(~np.isnan(targets).all(axis=1))
    if len(ticks) == 0:
        raise FitError(
            f"No training row is complete: there are {panel.n_times} ticks, and a row looks "
            f'{prepared.layout.longest_lag} ticks back. Give more data, fewer lags, or impute="gaussian".'
        )
    targets = targets[ticks]
    reference = reference_of(plan, panel, len(ticks), prepared.layout.neighbours)
    in_bag = ensemble.draw(len(ticks), plan.n_members, seed, block_ends(prepared, ticks))
    oob = ensemble.out_of_bag(in_bag, plan.aggregation)
    require_left_out(plan, oob, reference)
    members = _fit_members(prepared, ticks, targets, in_bag, seed)
    expected = _leave_one_out(prepared, members, oob, ticks)
    # a target that no member missed, or that was not observed, has no score: NaN, never a guess
    residuals = scores.residual_scores(targets, expected, plan.score) * prepared.usual.unit
    return _finish(prepared, seed, ticks, in_bag, oob, members, residuals, reference)


# -- the members -------------------------------------------------------------------------------------------------------


def _groups(prepared: Prepared) -> tuple[Array, list[Any]]:
    """Group index of each sensor, and the groups' names."""
    groups, sensors = prepared.plan.groups, prepared.panel.sensors
    if groups == "shared":
        return np.zeros(len(sensors), dtype=np.int64), ["all sensors"]
    if groups == "sensor":
        return np.arange(len(sensors)), list(sensors)
    missing = [sensor for sensor in sensors if sensor not in groups]
    if missing:
        raise SettingError(
            f"groups= says nothing of {len(missing)} sensors, {missing[0]!r} the first: name a group for each."
        )
    names = sorted({groups[sensor] for sensor in sensors}, key=str)
    return np.array([names.index(groups[sensor]) for sensor in sensors], dtype=np.int64), names


def _fit_members(prepared: Prepared, ticks: Array, targets: Array, in_bag: Array, seed: int) -> Members:
    group, names = _groups(prepared)
    _require_rows(prepared, group, names, targets, in_bag)
    regressor = prepared.plan.regressor
    strength = strength_of(regressor)
    if strength is not None:
        if prepared.plan.impute == "keep":
            raise SettingError(
                'impute="keep" gives NaN to the regressor, and ridge takes none: use impute="gaussian".'
            )
        return _fit_ridge(prepared, ticks, targets, in_bag, group, names, strength)
    return _fit_sklearn(prepared, ticks, targets, in_bag, group, seed)


def _require_rows(prepared: Prepared, group: Array, names: list[Any], targets: Array, in_bag: Array) -> None:
    """Every member must have something to learn each group from."""
    for g in range(len(names)):
        who = (group == g) & prepared.fitted
        if not who.any():
            continue
        usable = (~np.isnan(targets[:, who])).any(axis=1)
        if usable.sum() < 2 or not (in_bag[:, usable] > 0).any(axis=1).all():
            raise FitError(
                f"Group {names[g]!r} has {int(usable.sum())} training ticks with a usable row, too few for each of "
                f"{len(in_bag)} members to draw one. Put its sensors into a larger group, or leave them out."
            )


def _fit_ridge(
    prepared: Prepared,
    ticks: Array,
    targets: Array,
    in_bag: Array,
    group: Array,
    names: list[Any],
    strength: float,
) -> Members:
    blocks = prepared.blocks(ticks, len(names))
    # eight ticks here and there, each on its own: together they would span, and so make, all of training
    some = range(0, len(ticks), max(1, len(ticks) // 8))
    sample = np.concatenate([prepared.design(ticks[i : i + 1]) for i in some])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        shift = np.nan_to_num(np.nanmean(sample.reshape(-1, sample.shape[2]), axis=0)).astype(np.float64)
    unfitted_only = {g for g in range(len(names)) if not (prepared.fitted & (group == g)).any()}
    grams, room = WeightedGrams(in_bag, group, shift, strength, unfitted_only), _threads.Room()

    def over_rows(of_block: OfBlock) -> Array:
        bar = _bar(prepared, "members", len(blocks))

        def one(block: slice) -> Array:
            sums = of_block(prepared.design(ticks[block], room), targets[block], block)
            bar.update(1)
            return sums

        # always added in the order of time, whatever the number of threads
        total: Array = reduce(iadd, _in_order(one, blocks, prepared.threads))
        bar.close()
        return total

    return grams.fit(over_rows).astype(prepared.plan.dtype)


def _fit_sklearn(
    prepared: Prepared, ticks: Array, targets: Array, in_bag: Array, group: Array, seed: int
) -> Members:
    plan = prepared.plan
    keeps = takes_missing(plan.regressor)
    if plan.impute == "keep" and not keeps:
        raise SettingError(
            f'impute="keep" gives NaN to the regressor, and {type(plan.regressor).__name__} takes none: '
            'use impute="gaussian", or a regressor such as HistGradientBoostingRegressor.'
        )
    X, y, time_index, row_group = [], [], [], []
    for block in prepared.blocks(ticks):
        t, k = np.nonzero(~np.isnan(targets[block]))
        X.append(prepared.design(ticks[block])[t, k])
        y.append(targets[block][t, k])
        time_index.append(t + block.start)
        row_group.append(group[k])
    bar = _bar(prepared, "members", len(in_bag) * (int(group.max()) + 1))
    with _said_by(plan.regressor):
        fitted = fit_members(
            plan.regressor, np.concatenate(X), np.concatenate(y), np.concatenate(time_index),
            np.concatenate(row_group), in_bag, int(group.max()) + 1, seed, plan.n_jobs, bar.update,
        )  # fmt: skip
    bar.close()
    return SklearnMembers(fitted, group, keeps and plan.impute == "keep")


@contextmanager
def _said_by(regressor: Any) -> Iterator[None]:
    """What a regressor refuses is told in a sentence that names it."""
    try:
        yield
    except (EcadError, MemoryError):
        raise
    except Exception as error:
        said = (str(error) or type(error).__name__).splitlines()[0].rstrip(".")
        raise FitError(
            f"The members could not be trained: {type(regressor).__name__} says: {said}. (Features and targets are "
            "deviations from what is usual, in units of each sensor's spread; scale=None gives them as they are read.)"
        ) from error


def _leave_one_out(prepared: Prepared, members: Members, oob: ensemble.OutOfBag, ticks: Array) -> Array:
    """Leave-one-out predictions (T', sensor) of the training rows, in units of features."""
    out = np.empty((len(ticks), prepared.panel.n_sensors))
    blocks = prepared.blocks(ticks)
    bar, room = _bar(prepared, "leave-one-out", len(blocks)), _threads.Room()

    def one(block: slice) -> None:
        predictions = members.predict(prepared.design(ticks[block], room))
        out[block] = ensemble.leave_one_out(predictions, oob, block)
        bar.update(1)

    if isinstance(members, RidgeMembers):
        list(_in_order(one, blocks, prepared.threads))
    else:  # regressors of scikit-learn have threads of their own
        with _said_by(prepared.plan.regressor):
            list(_in_order(one, blocks, 1))
    bar.close()
    return out


def _in_order(work: Callable[[slice], Any], blocks: list[slice], threads: int) -> Iterator[Any]:
    if threads == 1 or len(blocks) == 1:
        yield from map(work, blocks)
        return
    with ThreadPoolExecutor(threads) as pool:
        # a few at a time: results wait in memory for their turn
        for start in range(0, len(blocks), 4 * threads):
            yield from pool.map(work, blocks[start : start + 4 * threads])


def _bar(prepared: Prepared, what: str, total: int) -> Any:
    show = prepared.plan.progress
    # with None, tqdm shows a bar at a terminal only; delay keeps short work quiet
    return tqdm(
        total=total,
        desc=what,
        disable=None if show is None else not show,
        delay=0 if show else 1.0,
        leave=False,
    )


# -- after the members -------------------------------------------------------------------------------------------------


def _finish(
    prepared: Prepared,
    seed: int,
    ticks: Array,
    in_bag: Array,
    oob: ensemble.OutOfBag,
    members: Members,
    residuals: Array,
    reference: pvalues.Reference,
) -> Trained:
    plan, panel = prepared.plan, prepared.panel
    n_times, n_sensors = panel.values.shape
    seconds = panel.week_seconds
    hours = hours_of(seconds)
    observed = ~np.isnan(panel.values)
    local_scale = None
    tolerance = (1e-9 if plan.dtype == "float64" else 1e-5) * prepared.spread
    strength_unit = prepared.spread
    training_scores = residuals
    if plan.score == "studentised":
        local_scale, training_scores = _studentise(prepared, residuals, ticks, hours)
        tolerance = tolerance / local_scale.typical
        strength_unit = np.ones(n_sensors)
    classes = class_of(plan.classes, observed, np.zeros(n_sensors, dtype=bool), hours)[ticks]
    centre = None
    if plan.centre == "quantile":
        rank = ensemble.quantile_rank(plan.centre_level or plan.alpha, oob.n_predictors)
        centre = ensemble.QuantileCentre(oob, rank, plan.dtype)
    model = Model(
        layout=prepared.layout,
        usual=prepared.usual.after_training(),
        filling=prepared.filling,
        order=prepared.order,
        patience=prepared.patience,
        members=members,
        oob=oob,
        centre_quantile=centre,
        score=plan.score,
        classes=plan.classes,
        reference=reference,
        tolerance=tolerance,
        strength_unit=strength_unit,
        rule=plan.rule,
        fitted=prepared.fitted,
        dtype=plan.dtype,
        ticks_per_day=panel.ticks_per_day,
    )
    window = pvalues.open_window(
        training_scores, classes, ticks, n_times, reference, hours, panel.ticks_per_day
    )
    recent = features.Recent(
        readings=prepared.readings[n_times - prepared.layout.longest_lag :].copy(),
        last_seen=np.where(observed, np.arange(n_times)[:, None], -1).max(axis=0),
        observed=observed[-1].copy(),
    )
    last_deviation = None
    if isinstance(prepared.filling, imputation.Seasonal):
        last_deviation = imputation.last_deviation(
            panel.values, prepared.usual.levels(np.arange(n_times), seconds)[0], prepared.usual.scale
        )
    memory = Memory(n_times, panel.times[-1], recent, last_deviation, local_scale, window)
    return Trained(model, memory, in_bag, ticks, training_scores, seed)


def _studentise(
    prepared: Prepared, residuals: Array, ticks: Array, hours: Array | None
) -> tuple[scores.LocalScale, Array]:
    """Training residuals by the local scale of their own past, and the memory that goes on from there."""
    n_times, n_sensors = prepared.panel.values.shape
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        typical = np.nanmedian(residuals, axis=0)
    typical = np.where(typical > 0, typical, prepared.spread)
    memory = scores.empty_scale(n_sensors, prepared.panel.day, typical)
    everywhere = np.full((n_times, n_sensors), np.nan)
    everywhere[ticks] = residuals
    return memory, (everywhere / memory.scales(everywhere, hours))[ticks]
