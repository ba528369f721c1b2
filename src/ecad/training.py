"""training panel -> what was learned (Model), what a stream starts with (Memory): the other place that knows the order.

    readings -> usual levels -> filled -> features -> who draws what -> members -> leave-one-out residuals -> window

Features are made twice, block by block of time, once to train on and once to predict: that costs less than the memory
that they would fill.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from tqdm import tqdm

from . import _kernels, _threads, ensemble, features, imputation, neighbourhood, pvalues, scores, seasonality
from .errors import EcadWarning, FitError, SettingError
from .judging import HOUR, Memory, Model, class_of, rows
from .learners import Members
from .learners.ridge import RidgeMembers, WeightedGrams, strength_of
from .learners.sklearn import SklearnMembers, fit_members, takes_missing
from .panel import Panel
from .settings import seed_of

Array = np.ndarray[Any, Any]

BLOCK_NUMBERS = 1 << 18  # features that stand in memory at once, per thread
SEASONAL_LAG_SHARE = 8  # a seasonal lag costs that many first ticks: at most an eighth of training
UNCLOCKED_DAY = 24  # ticks that stand for a day where the panel has no clock


class Trained(NamedTuple):
    """What a fit leaves behind."""

    model: Model
    memory: Memory
    in_bag: Array  # (B, T')
    train_times: Array  # (T',) ticks
    calibration_scores: Array  # (T', K)
    seed: int


@dataclass(frozen=True, eq=False)
class _Prepared:
    """A training panel ready to be learned from: what several stages need."""

    plan: Any
    panel: Panel
    layout: features.Layout
    usual: seasonality.Usual
    spread: Array
    fitted: Array
    order: Array
    filling: imputation.Filling
    filled: Array
    readings: Array  # filled, in units of features
    patience: int | None
    silent: Array
    threads: int

    def blocks(self, ticks: Array, n_groups: int = 1) -> list[slice]:
        """Slices of the training `ticks` whose features fit into a block; many groups need longer ones."""
        numbers = BLOCK_NUMBERS * min(n_groups, 16)
        size = max(1, numbers // max(1, self.panel.n_sensors * self.layout.n_features))
        return [slice(a, min(a + size, len(ticks))) for a in range(0, len(ticks), size)]

    def design(self, ticks: Array, room: _threads.Room | None = None) -> Array:
        """Features (tick, sensor, feature) of ascending ticks; those in a room are there until the next are made."""
        span = slice(int(ticks[0]), int(ticks[-1]) + 1)
        shape = (span.stop - span.start, self.panel.n_sensors, self.layout.n_features)
        out = None if room is None else room.array("features", shape, self.plan.dtype)
        seconds = self.panel.week_seconds
        week_seconds = None if seconds is None else seconds[span]
        level, spread = self.usual.levels(np.arange(span.start, span.stop), week_seconds)
        X, _ = rows(
            self.layout, self.readings, span.start, self.order, self.silent[span], self.panel.values[span],
            level, spread, self.usual, self.filling, self.filled[span], week_seconds, self.plan.dtype, out,
        )  # fmt: skip
        return X if len(X) == len(ticks) else np.ascontiguousarray(X[ticks - span.start])


def train(plan: Any, panel: Panel, imputer_options: dict[str, Any] | None = None) -> Trained:
    """Fit everything to a training panel."""
    with _threads.one_blas_thread():
        return _train(plan, panel, imputer_options or {})


def _train(plan: Any, panel: Panel, imputer_options: dict[str, Any]) -> Trained:
    if isinstance(plan.regressor, str) and plan.regressor == "lstm":
        raise SettingError(
            'regressor="lstm" is not part of this version: use "ridge" or any scikit-learn regressor.'
        )
    seed = seed_of(plan.random_state)
    prepared = _prepare(plan, panel, seed, imputer_options)
    targets = _targets(prepared)
    ticks = np.flatnonzero(~np.isnan(targets).all(axis=1))
    if len(ticks) == 0:
        raise FitError(
            f"No training row is complete: there are {panel.n_times} ticks, and a row looks "
            f'{prepared.layout.longest_lag} ticks back. Give more data, fewer lags, or impute="gaussian".'
        )
    targets = targets[ticks]
    reference = _reference(prepared, len(ticks))
    in_bag = ensemble.draw(len(ticks), plan.n_members, seed, _block_ends(prepared, ticks))
    oob = ensemble.out_of_bag(in_bag, plan.aggregation)
    members = _fit_members(prepared, ticks, targets, in_bag, seed)
    expected = _leave_one_out(prepared, members, oob, ticks)
    # a target that no member missed, or that was not observed, has no score: NaN, never a guess
    residuals = scores.residual_scores(targets, expected, plan.score) * prepared.usual.unit
    return _finish(prepared, seed, ticks, in_bag, oob, members, residuals, reference)


# -- before the members ------------------------------------------------------------------------------------------------


def _prepare(plan: Any, panel: Panel, seed: int, imputer_options: dict[str, Any]) -> _Prepared:
    values = panel.values
    centre, scale, spread = seasonality.scale_of(values)
    fitted: Array = np.asarray(~np.isnan(values).all(axis=0))
    _tell_odd_sensors(panel, fitted)
    usual = seasonality.Usual(centre, scale, _season(plan, panel, centre, scale), plan.scale == "sensor")
    order = _order(plan, panel, fitted)
    layout = _layout(plan, panel, usual.season, int(fitted.sum()))
    level = usual.levels(np.arange(panel.n_times), panel.week_seconds)[0]
    filling, filled = _fill(plan, values, level, scale, order, seed, imputer_options)
    patience = _patience(plan, panel)
    silent = np.zeros(values.shape, dtype=bool)
    if patience is not None:
        silent = features.silence(~np.isnan(values), np.full(len(centre), -1), 0, patience)
    return _Prepared(
        plan=plan, panel=panel, layout=layout, usual=usual, spread=spread, fitted=fitted, order=order,
        filling=filling, filled=filled, readings=usual.measure(filled, level), patience=patience, silent=silent,
        threads=_threads.available(plan.n_jobs),
    )  # fmt: skip


def _tell_odd_sensors(panel: Panel, fitted: Array) -> None:
    if not fitted.any():
        raise FitError(f"None of the {panel.n_sensors} sensors has a reading in the training data.")
    dead = [panel.sensors[k] for k in np.flatnonzero(~fitted)]
    if dead:
        warnings.warn(
            f"{_named(dead)} no reading in the training data: no neighbour of others, and no verdicts of its own "
            "until it is fitted again.",
            EcadWarning,
            stacklevel=5,
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # an all-NaN sensor is not constant
        constant = np.nanmax(panel.values, axis=0) == np.nanmin(panel.values, axis=0)
    still = [panel.sensors[k] for k in np.flatnonzero(constant & fitted)]
    if still:
        warnings.warn(
            f"{_named(still)} the same value throughout the training data: any other value will be an alarm.",
            EcadWarning,
            stacklevel=5,
        )


def _named(sensors: list[str]) -> str:
    if len(sensors) == 1:
        return f"Sensor {sensors[0]!r} has"
    return f"{len(sensors)} sensors ({', '.join(map(repr, sensors[:5]))}{', ...' if len(sensors) > 5 else ''}) have"


def _season(plan: Any, panel: Panel, centre: Array, scale: Array) -> seasonality.Season | None:
    if panel.week_seconds is None:
        if plan.season in ("week", "day"):
            raise SettingError(
                f"season={plan.season!r} needs a panel with a clock, and this one has tick numbers only."
            )
        return None
    step = _step_seconds(panel)
    period = seasonality.choose_period(panel.n_times * step, plan.season)
    if period is None:
        return None
    return seasonality.fit_season(panel.values, panel.week_seconds, step, period, centre, scale)


def _step_seconds(panel: Panel) -> int:
    return max(1, int(np.timedelta64(panel.step, "us").astype(np.int64)) // 1_000_000)


def _order(plan: Any, panel: Panel, fitted: Array) -> Array:
    n_nearest = min(panel.n_sensors, plan.neighbours + neighbourhood.SPARE)
    if panel.positions is not None and panel.geometry is not None:
        order = neighbourhood.order_by_position(panel.positions, panel.geometry, n_nearest)
    elif panel.adjacency is not None:
        order = neighbourhood.order_by_path(panel.n_sensors, *panel.adjacency, n_nearest)
    else:
        order = neighbourhood.order_by_correlation(panel.values, n_nearest)
    return neighbourhood.put_last(order, ~fitted)


def _layout(plan: Any, panel: Panel, season: seasonality.Season | None, n_fitted: int) -> features.Layout:
    clock = panel.has_clock
    if plan.calendar is True and not clock:
        raise SettingError("calendar=True needs a panel with a clock, and this one has tick numbers only.")
    lags: tuple[int, ...] = ()
    if isinstance(plan.seasonal_lags, str):
        day = panel.ticks_per_day
        longest = panel.n_times // SEASONAL_LAG_SHARE
        lags = tuple(lag for lag in (day, 7 * day) if plan.lags < lag <= longest) if day else ()
    elif plan.seasonal_lags is not None:
        lags = tuple(int(lag) for lag in plan.seasonal_lags)
    layout = features.Layout(
        lags=plan.lags,
        neighbours=min(plan.neighbours, n_fitted),
        seasonal_lags=lags,
        calendar=clock if plan.calendar == "auto" else bool(plan.calendar),
        level=season is not None,
        same_tick=plan.same_tick,
    )
    if panel.n_times <= layout.longest_lag:
        raise FitError(
            f"{panel.n_times} training ticks are too few: a row looks {layout.longest_lag} ticks back. "
            "Give more data, or fewer lags."
        )
    return layout


def _fill(
    plan: Any,
    values: Array,
    level: Array,
    scale: Array,
    order: Array,
    seed: int,
    imputer_options: dict[str, Any],
) -> tuple[imputation.Filling, Array]:
    if plan.impute == "iterative":
        return imputation.fit_iterative(values, seed % 2**32, **imputer_options)
    filling: imputation.Filling = imputation.Keep()
    if plan.impute == "gaussian":
        filling = imputation.fit_gaussian((values - level) / scale, order)
    elif plan.impute == "seasonal":
        filling = imputation.Seasonal()
    memory = imputation.LastDeviation(np.zeros(values.shape[1]))
    return filling, imputation.fill(filling, memory, values, level, scale)


def _patience(plan: Any, panel: Panel) -> int | None:
    if plan.silent_after == "auto":
        return panel.ticks_per_day or UNCLOCKED_DAY
    return None if plan.silent_after is None else int(plan.silent_after)


# -- the members -------------------------------------------------------------------------------------------------------


def _targets(prepared: _Prepared) -> Array:
    """What is trained on (time, sensor), in units of features; NaN where there is no usable row."""
    plan, layout, panel = prepared.plan, prepared.layout, prepared.panel
    targets = prepared.readings.copy()
    if plan.train_on == "observed":
        targets[np.isnan(panel.values)] = np.nan
    targets[: layout.longest_lag] = np.nan
    targets[:, ~prepared.fitted] = np.nan
    if plan.impute is None:
        targets[~_complete(prepared)] = np.nan
    return targets


def _complete(prepared: _Prepared) -> Array:
    """(time, sensor): whether a row has no hole; computed from the holes, without making the row."""
    layout, readings = prepared.layout, prepared.readings
    hole = np.isnan(readings)
    ticks = np.arange(len(readings))[:, None]
    run = ticks - np.maximum.accumulate(np.where(hole, ticks, -1), axis=0)
    first = layout.longest_lag
    index = features.neighbours_at(prepared.order, layout.neighbours, prepared.silent[first:])
    out = np.zeros(readings.shape, dtype=bool)
    _kernels.complete_rows(
        run,
        first,
        index,
        layout.lags,
        readings,
        np.asarray(layout.seasonal_lags, dtype=np.int64),
        out[first:],
    )
    if layout.same_tick:
        others = np.broadcast_to(index[:, :, 1:], (len(readings) - first, *index[:, :, 1:].shape[1:]))
        out[first:] &= ~np.take_along_axis(hole[first:, None, :], others, axis=2).any(axis=2)
    return out


def _block_ends(prepared: _Prepared, ticks: Array) -> Array | None:
    if prepared.plan.bootstrap == "iid":
        return None
    return ensemble.day_blocks(ticks, prepared.panel.ticks_per_day or UNCLOCKED_DAY)


def _groups(prepared: _Prepared) -> tuple[Array, list[Any]]:
    """Group index of each sensor, and the groups' names."""
    groups, sensors = prepared.plan.groups, prepared.panel.sensors
    if groups == "shared":
        return np.zeros(len(sensors), dtype=np.int64), ["all sensors"]
    if groups == "sensor":
        return np.arange(len(sensors)), list(sensors)
    if not hasattr(groups, "keys"):
        raise SettingError(
            f'groups={groups!r} is not known: it takes "shared", "sensor" or a mapping sensor -> group.'
        )
    missing = [sensor for sensor in sensors if sensor not in groups]
    if missing:
        raise SettingError(
            f"groups= says nothing of {len(missing)} sensors, {missing[0]!r} the first: name a group for each."
        )
    names = sorted({groups[sensor] for sensor in sensors}, key=str)
    return np.array([names.index(groups[sensor]) for sensor in sensors], dtype=np.int64), names


def _fit_members(prepared: _Prepared, ticks: Array, targets: Array, in_bag: Array, seed: int) -> Members:
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


def _require_rows(prepared: _Prepared, group: Array, names: list[Any], targets: Array, in_bag: Array) -> None:
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
    prepared: _Prepared,
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
    grams = WeightedGrams(in_bag, group, shift)
    bar, room = _bar(prepared, "members", len(blocks)), _threads.Room()

    def one(block: slice) -> Array:
        sums = grams.block(prepared.design(ticks[block], room), targets[block], block)
        bar.update(1)
        return sums

    total = grams.nothing()
    for sums in _in_order(one, blocks, prepared.threads):
        total += sums  # always in the order of time, whatever the number of threads
    bar.close()
    unfitted_only = {g for g in range(len(names)) if not (prepared.fitted & (group == g)).any()}
    return grams.solve(total, strength, unfitted_only, np.dtype(prepared.plan.dtype))


def _fit_sklearn(
    prepared: _Prepared, ticks: Array, targets: Array, in_bag: Array, group: Array, seed: int
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
    fitted = fit_members(
        plan.regressor, np.concatenate(X), np.concatenate(y), np.concatenate(time_index), np.concatenate(row_group),
        in_bag, int(group.max()) + 1, seed, plan.n_jobs, bar.update,
    )  # fmt: skip
    bar.close()
    return SklearnMembers(fitted, group, keeps and plan.impute == "keep")


def _leave_one_out(prepared: _Prepared, members: Members, oob: ensemble.OutOfBag, ticks: Array) -> Array:
    """Leave-one-out predictions (T', sensor) of the training rows, in units of features."""
    out = np.empty((len(ticks), prepared.panel.n_sensors))
    blocks = prepared.blocks(ticks)
    bar, room = _bar(prepared, "leave-one-out", len(blocks)), _threads.Room()

    def one(block: slice) -> None:
        predictions = members.predict(prepared.design(ticks[block], room))
        out[block] = ensemble.leave_one_out(predictions, oob, block)
        bar.update(1)

    # regressors of scikit-learn have threads of their own
    list(_in_order(one, blocks, prepared.threads if isinstance(members, RidgeMembers) else 1))
    bar.close()
    return out


def _in_order(work: Callable[[slice], Any], blocks: list[slice], threads: int) -> Any:
    if threads == 1 or len(blocks) == 1:
        yield from map(work, blocks)
        return
    with ThreadPoolExecutor(threads) as pool:
        for start in range(
            0, len(blocks), 4 * threads
        ):  # a few at a time: results wait in memory for their turn
            yield from pool.map(work, blocks[start : start + 4 * threads])


def _bar(prepared: _Prepared, what: str, total: int) -> Any:
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


def _reference(prepared: _Prepared, n_times: int) -> pvalues.Reference:
    """The rules of ranking; refuses where no p-value could ever be as small as alpha."""
    plan, panel = prepared.plan, prepared.panel
    if plan.reference == "seasonal" and panel.ticks_per_day is None:
        raise SettingError(
            'reference="seasonal" needs a clock and a step that divides a day: use reference="window".'
        )
    if plan.classes == "hour" and panel.week_seconds is None:
        raise SettingError('classes="hour" needs a panel with a clock, and this one has tick numbers only.')
    sides = {"both": _kernels.BOTH, "high": _kernels.HIGH, "low": _kernels.LOW}
    reference = pvalues.Reference(
        kind=plan.reference,
        pool=plan.pool,
        classes=plan.classes is not None and plan.reference != "local",
        absorb=plan.absorb,
        half_life=plan.half_life,
        form=plan.p_value,
        side=sides[plan.tail] if plan.score == "signed" else _kernels.HIGH,
        alpha=plan.alpha,
        lags=plan.lags,
        everywhere=plan.local == "or",
    )
    n = _largest_set(plan, panel, n_times, prepared.layout.neighbours)
    if reference.smallest_p(n) > plan.alpha:
        text = (
            f"alpha={plan.alpha:g} cannot be reached: a reference set has at most {n} scores here, and the smallest "
            f"p-value that they can give is {reference.smallest_p(n) if n >= reference.need else 1 / (n + 1):.3g}. "
            f"{_remedy(plan, reference)}"
        )
        if plan.unreachable == "refuse":
            raise FitError(text)
        warnings.warn(text, EcadWarning, stacklevel=4)
    return reference


def _largest_set(plan: Any, panel: Panel, n_times: int, neighbours: int) -> int:
    if plan.reference == "seasonal":
        return pvalues.SEASONAL_DAYS * max(1, round(3 * (panel.ticks_per_day or 24) / 24))
    if plan.reference == "local":
        own = plan.lags * neighbours
        return (
            own if plan.local == "and" else n_times * neighbours + (panel.n_sensors - neighbours) * plan.lags
        )
    return n_times * (panel.n_sensors if plan.pool == "network" else 1)


def _remedy(plan: Any, reference: pvalues.Reference) -> str:
    if plan.half_life is not None and plan.reference == "window":
        return f"Give a longer half_life than {plan.half_life:g}, or a larger alpha."
    if plan.reference == "window":
        return f"Fit on at least {reference.need} usable ticks (twice that with two tails), or give a larger alpha."
    return 'Use reference="window", or give a larger alpha.'


def _finish(
    prepared: _Prepared,
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
    hours = None if seconds is None else (seconds % seasonality.DAY // HOUR).astype(np.int8)
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
    level = plan.centre_level or plan.alpha
    model = Model(
        layout=prepared.layout,
        usual=prepared.usual.after_training(),
        filling=prepared.filling,
        order=prepared.order,
        patience=prepared.patience,
        members=members,
        oob=oob,
        centre_quantile=ensemble.QuantileCentre(oob, level, plan.dtype)
        if plan.centre == "quantile"
        else None,
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
    prepared: _Prepared, residuals: Array, ticks: Array, hours: Array | None
) -> tuple[scores.LocalScale, Array]:
    """Training residuals by the local scale of their own past, and the memory that goes on from there."""
    n_times, n_sensors = prepared.panel.values.shape
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        typical = np.nanmedian(residuals, axis=0)
    typical = np.where(typical > 0, typical, prepared.spread)
    memory = scores.empty_scale(n_sensors, prepared.panel.ticks_per_day, typical)
    everywhere = np.full((n_times, n_sensors), np.nan)
    everywhere[ticks] = residuals
    return memory, (everywhere / memory.scales(everywhere, hours))[ticks]
