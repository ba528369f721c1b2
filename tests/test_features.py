"""The rows that members see: the fast design against the plain loops, and what a row may know."""

from __future__ import annotations

import dataclasses
import functools
import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.tree import DecisionTreeRegressor

import naive
import panels
from ecad import Panel, features, imputation, judging, preparing, seasonality, settings, training

NAN = math.nan
METHODS = ["gaussian", "seasonal", "iterative", "keep", None]


def panel_of(small: panels.SmallPanel, ticks: slice, clock: bool = True) -> Panel:
    """Some ticks of a small panel."""
    return Panel(
        values=small.values[ticks],
        sensors=small.sensors,
        times=small.times[ticks] if clock else np.arange(small.n_times)[ticks],
        step=np.timedelta64(small.step_seconds, "s") if clock else 1,
        positions=small.positions,
        geometry=small.geometry,
    )


class Fitted:
    """A detector's parts, fitted to the first ticks of a small panel."""

    def __init__(self, small: panels.SmallPanel, n_train: int, clock: bool = True, **given: Any) -> None:
        if given.get("impute") == "keep":
            given["regressor"] = DecisionTreeRegressor(max_depth=2)
        self.small, self.n_train = small, n_train
        self.plan = settings.checked(
            **{"n_members": 2, "alpha": 0.2, "random_state": 0, "n_jobs": 1, **given}
        )
        panel = panel_of(small, slice(n_train), clock)
        with warnings.catch_warnings():
            # of an imputer that has learned enough for this
            warnings.simplefilter("ignore", ConvergenceWarning)
            self.prepared = preparing.prepare(self.plan, panel, 0)
            trained = training.train(self.plan, panel)
        self.model, self.memory = trained.model, trained.memory
        self.week_seconds = small.week_seconds if clock else None

    @property
    def layout(self) -> features.Layout:
        return self.model.layout

    def rows_in_judging(self, values: np.ndarray) -> np.ndarray:
        """X (T1, K, d) of the ticks that follow training."""
        seconds = None if self.week_seconds is None else self.week_seconds[self.n_train :][: len(values)]
        return judging._inputs(self.model, self.memory.copy(), values, ~np.isnan(values), seconds).X

    def rows_in_training(self, values: np.ndarray | None = None) -> np.ndarray:
        """X (T0 - longest lag, K, d); of other readings with what was learned left as it is."""
        prepared, first = self.prepared, self.layout.longest_lag
        if values is not None:
            prepared = self._refilled(values)
        return prepared.design(np.arange(first, self.n_train))

    def _refilled(self, values: np.ndarray) -> preparing.Prepared:
        prepared = self.prepared
        seconds = None if self.week_seconds is None else self.week_seconds[: self.n_train]
        usual = prepared.usual
        level = usual.levels(np.arange(self.n_train), seconds)[0]
        memory = imputation.LastDeviation(np.zeros(values.shape[1]))
        filled = imputation.fill(prepared.filling, memory, values, level, usual.scale)
        silent = prepared.silent
        if prepared.patience is not None:
            silent = features.silence(~np.isnan(values), np.full(values.shape[1], -1), 0, prepared.patience)
        return dataclasses.replace(
            prepared,
            panel=dataclasses.replace(prepared.panel, values=values),
            filled=filled,
            readings=usual.measure(filled, level),
            silent=silent,
        )


@functools.cache
def fitted(seed: int, n_train: int, n_sensors: int, **given: Any) -> Fitted:
    """A fit that several tests share."""
    return Fitted(panels.small_panel(seed, n_train + 40, n_sensors), n_train, **given)


# -- the same rows in plain loops --------------------------------------------------------------------------------------


def plain_fill(
    fit: Fitted, level: np.ndarray, scale: np.ndarray
) -> tuple[np.ndarray, Callable[[int, int], np.ndarray]]:
    """All ticks without holes, and (t, k) -> tick t filled without sensor k."""
    values, n_train = fit.small.values, fit.n_train
    if fit.plan.impute == "gaussian":
        D = naive.deviations(values, level, scale)
        learned = naive.gaussian_em(D[:n_train])
        filled = np.array([naive.gaussian_fill(row, *learned) for row in D]) * scale + level
        return filled, lambda t, k: naive.gaussian_fill_without(D[t], k, *learned) * scale + level[t]
    if fit.plan.impute == "iterative":
        imputer = fit.model.filling.imputer

        def without(t: int, k: int) -> np.ndarray:
            hidden = values.copy()
            hidden[t, k] = NAN
            return imputer.transform(hidden)[t]

        return imputer.transform(values), without
    filled = naive.seasonal_fill(values, level) if fit.plan.impute == "seasonal" else values
    return filled, lambda t, k: filled[t]


def plain_rows(
    fit: Fitted, *, season: str | None, lags: tuple[int, ...], day: int
) -> Callable[[int, int], np.ndarray]:
    """(t, k) -> X[t, k], t counted from the start of training."""
    small, plan, n_train = fit.small, fit.plan, fit.n_train
    train = small.values[:n_train]
    centre, scale, _ = naive.scale_of(train)
    level, width = np.tile(centre, (small.n_times, 1)), np.tile(scale, (small.n_times, 1))
    if season is not None:
        phase = naive.phase_of(small.week_seconds, small.step_seconds, season)
        hour = naive.hour_of_phase(small.step_seconds, season)
        bin_width = naive.phase_width(small.step_seconds)
        tables = naive.seasonal_tables_crossfit(
            train, phase[:n_train], hour, season, scale, centre, bin_width
        )
        level, width = (naive.at_times(table, phase, n_train) for table in tables)
    filled, without = plain_fill(fit, level, scale)
    seen = np.isfinite(train).any(axis=0)
    order = naive.order_of_neighbours(small.positions, small.geometry, None, train)
    order = np.array([[row[0], *sorted(row[1:], key=lambda j: not seen[j])] for row in order])
    # features are deviations from what is usual at their own tick, or readings as they came
    origin, unit = (level, scale) if plan.scale == "sensor" else (np.zeros_like(level), 1.0)
    calendar = np.array([naive.calendar_row(seconds) for seconds in small.week_seconds])

    def row(t: int, k: int) -> np.ndarray:
        made = naive.design_row(
            t, k, (filled - origin) / unit, small.observed, order, plan.lags, min(plan.neighbours, int(seen.sum())),
            lags,
            calendar if fit.layout.calendar else None,
            (level - centre) / scale if season else None,
            width / scale if season else None,
            plan.same_tick,
            (without(t, k) - origin[t]) / unit if plan.same_tick else None,
            day=day,
            replace_silent=plan.silent_after is not None,
        )  # fmt: skip
        assert made is not None
        return made

    return row


CASES: dict[str, dict[str, Any]] = {
    "a day's season and lag": {"n_train": 200, "season": "day", "lags": (24,)},
    "a week's season": {
        "n_train": 150,
        "n_sensors": 3,
        "season": "week",
        "step_seconds": 14_400,
        "day": 6,
        "lags": (6,),
    },
    "neither season nor seasonal lags": {"n_train": 60, "season": None, "lags": ()},
    "no clock": {"n_train": 120, "clock": False, "season": None, "lags": ()},
    "same tick": {"n_train": 100, "season": "day", "lags": (), "same_tick": True},
    "as they are": {"n_train": 100, "season": "day", "lags": (), "scale": None, "same_tick": True},
    "lags of one's own": {"n_train": 90, "season": "day", "lags": (7, 30), "seasonal_lags": (7, 30)},
    "no season asked": {"n_train": 90, "season": None, "calendar": False, "lags": (), "seasonal_lags": None},
    "quick stand-ins": {
        "n_train": 90,
        "season": "day",
        "lags": (),
        "silent_after": 3,
        "day": 3,
        "same_tick": True,
    },
    "no stand-ins": {"n_train": 90, "season": "day", "lags": (), "silent_after": None},
    "many lags of one": {"n_train": 90, "season": "day", "lags": (), "sensor_lags": 9, "neighbours": 1},
    "two steps an hour": {"n_train": 160, "season": "day", "lags": (), "step_seconds": 1800, "day": 48},
    "six hours a step": {"n_train": 100, "season": "week", "lags": (4,), "step_seconds": 21_600, "day": 4},
    "an unknown sensor": {"n_train": 100, "season": "day", "lags": (), "absent": 1, "same_tick": True},
    **{
        f"impute={m}": {"n_train": 90, "season": "day", "lags": (), "impute": m, "same_tick": True}
        for m in METHODS
    },
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore:Sensor 's1' has no reading")
def test_rows_are_those_of_the_plain_loops_in_training_and_in_judging(name: str) -> None:
    asked = {"n_sensors": 5, "clock": True, "step_seconds": 3600, "absent": None, "day": 24, "sensor_lags": 3}
    asked |= {"neighbours": 3, **CASES[name]}
    n_train, lags, day = asked.pop("n_train"), asked.pop("lags"), asked.pop("day")
    season = asked["season"] if "calendar" in asked else asked.pop("season")
    absent = asked.pop("absent")
    small = panels.small_panel(
        len(name), n_train + 40, asked.pop("n_sensors"), step_seconds=asked.pop("step_seconds")
    )
    if absent is not None:
        values = small.values.copy()
        values[:n_train, absent] = NAN
        small = dataclasses.replace(small, values=values)
    fit = Fitted(small, n_train, asked.pop("clock"), lags=asked.pop("sensor_lags"), **asked)
    plain = plain_rows(fit, season=season, lags=lags, day=day)
    tolerance = 1e-9 * (
        1.0 if fit.plan.scale == "sensor" else naive.scale_of(small.values[:n_train])[2].min()
    )
    first = fit.layout.longest_lag
    X0, X1 = fit.rows_in_training(), fit.rows_in_judging(small.values[n_train:])
    assert X0.shape[2] == X1.shape[2] == fit.layout.n_features
    for k in range(small.n_sensors):
        for t in range(first, n_train, 1 if n_train < 150 else 3):
            assert X0[t - first, k] == pytest.approx(plain(t, k), abs=tolerance, rel=0, nan_ok=True)
        for t in range(n_train, small.n_times):
            assert X1[t - n_train, k] == pytest.approx(plain(t, k), abs=tolerance, rel=0, nan_ok=True)


# -- what a row may know -----------------------------------------------------------------------------------------------


def changes(values: np.ndarray, seed: int) -> list[np.ndarray]:
    """Other readings: far away, none, holes where readings were and readings where holes were."""
    random = np.random.RandomState(seed).standard_normal(values.shape) * 100
    return [values + 1e6, np.full_like(values, NAN), np.where(np.isnan(values), random, NAN), random]


def same(method: str | None, one: np.ndarray, other: np.ndarray) -> bool:
    # scikit-learn's products of many rows round as the shape of the batch will have it
    slack = 1e-9 if method == "iterative" else 0.0
    return bool(np.allclose(one, other, rtol=slack, atol=slack, equal_nan=True))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("same_tick", [False, True])
@pytest.mark.parametrize("in_training", [False, True])
def test_no_feature_of_a_reading_changes_when_it_or_what_the_sensor_reports_later_does(
    method: str | None, same_tick: bool, in_training: bool
) -> None:
    fit = fitted(5, 200, 5, lags=3, neighbours=4, impute=method, same_tick=same_tick, silent_after=6)
    assert fit.layout.seasonal_lags == (24,) and fit.layout.level and fit.layout.calendar
    ticks = slice(fit.n_train) if in_training else slice(fit.n_train, None)
    rows = fit.rows_in_training if in_training else fit.rows_in_judging
    first = fit.layout.longest_lag if in_training else 0
    values = fit.small.values[ticks]
    before = rows(values)
    for t in range(first, len(values), 35) if in_training else (0, 1, 2, 9, 23, 24, 25, 39):
        for k in range(5):
            for changed in changes(values, t):
                after = values.copy()
                after[t:, k] = changed[t:, k]
                assert same(method, rows(after)[t - first, k], before[t - first, k])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("same_tick", [False, True])
@pytest.mark.parametrize("in_training", [False, True])
def test_no_feature_changes_when_anything_later_does(
    method: str | None, same_tick: bool, in_training: bool
) -> None:
    fit = fitted(5, 200, 5, lags=3, neighbours=4, impute=method, same_tick=same_tick, silent_after=6)
    ticks = slice(fit.n_train) if in_training else slice(fit.n_train, None)
    rows = fit.rows_in_training if in_training else fit.rows_in_judging
    first = fit.layout.longest_lag if in_training else 0
    values = fit.small.values[ticks]
    before = rows(values)
    for t in range(first, len(values), 35) if in_training else (0, 1, 9, 24, 38):
        for changed in changes(values, t):
            after = values.copy()
            after[t + same_tick :] = changed[
                t + same_tick :
            ]  # the neighbours' same tick is seen where it was asked for
            assert same(method, rows(after)[: t + 1 - first], before[: t + 1 - first])


@pytest.mark.parametrize("same_tick", [False, True])
def test_no_feature_changes_with_what_it_must_not_know_among_many_sensors_either(same_tick: bool) -> None:
    fit = fitted(2, 60, 102, lags=2, neighbours=4, same_tick=same_tick, season="day")
    assert fit.model.filling.near.shape == (102, 20)
    values = fit.small.values[60:]
    before = fit.rows_in_judging(values)
    for t in (0, 1, 20, 39):
        for k in range(0, 102, 25):
            for changed in changes(values, t):
                after = values.copy()
                after[t:, k] = changed[t:, k]
                assert same("gaussian", fit.rows_in_judging(after)[t, k], before[t, k])


def test_a_feature_does_change_with_the_past() -> None:
    fit = fitted(5, 200, 5, lags=3, neighbours=4, impute="gaussian", same_tick=True, silent_after=6)
    values = fit.small.values[fit.n_train :]
    before = fit.rows_in_judging(values)
    after = values.copy()
    after[9, 2] = 1e6
    changed = (fit.rows_in_judging(after) != before).any(axis=2)
    assert not changed[9, 2] and changed[10:13, 2].all() and not changed[:9].any()
    assert changed[9].any()  # the same tick of those whose neighbour it is


# -- the parts ---------------------------------------------------------------------------------------------------------


def test_calendar_terms_are_two_harmonics_of_day_and_week_and_the_weekend() -> None:
    seconds = np.arange(0, 604_800, 1234)
    plain = np.array([naive.calendar_row(s) for s in seconds])
    assert features.calendar_terms(seconds) == pytest.approx(plain, abs=1e-12)


@pytest.mark.parametrize("small", panels.small_panels(4), ids=lambda small: f"seed{small.seed}")
@pytest.mark.parametrize("patience", [1, 3, 24])
def test_a_sensor_is_silent_when_it_did_not_report_for_so_long(
    small: panels.SmallPanel, patience: int
) -> None:
    plain = np.array([naive.silent(small.observed, t, patience) for t in range(small.n_times)])
    nobody = np.full(small.n_sensors, -1)
    assert np.array_equal(features.silence(small.observed, nobody, 0, patience), plain)
    cut = 50  # what was seen before the cut is remembered as one number a sensor
    last_seen = np.where(small.observed[:cut], np.arange(cut)[:, None], -1).max(axis=0)
    assert np.array_equal(features.silence(small.observed[cut:], last_seen, cut, patience), plain[cut:])
    assert plain.any()


@pytest.mark.parametrize("seed", range(3))
def test_silent_neighbours_give_their_places_to_the_next_nearest(seed: int) -> None:
    random = np.random.RandomState(seed)
    order = np.array([[k, *random.permutation([j for j in range(9) if j != k])] for k in range(9)])
    silent = random.uniform(size=(60, 9)) < np.linspace(0, 1, 60)[:, None]
    for neighbours in (1, 2, 5, 9):
        fast = features.neighbours_at(order, neighbours, silent)
        for t in range(60):
            assert fast[t].tolist() == naive.neighbourhood_at(t, order, neighbours, silent[t]).tolist()


def test_where_nobody_is_silent_one_neighbourhood_holds_for_all_ticks() -> None:
    order = np.array([[0, 2, 1], [1, 2, 0], [2, 1, 0]])
    index = features.neighbours_at(order, 2, np.zeros((7, 3), dtype=bool))
    assert index.tolist() == [[[0, 2], [1, 2], [2, 1]]]


def test_a_row_reaches_back_to_its_longest_lag() -> None:
    assert features.Layout(lags=5, neighbours=3).longest_lag == 5
    assert features.Layout(lags=5, neighbours=3, seasonal_lags=(24, 168)).longest_lag == 168
    assert features.Layout(lags=5, neighbours=3, seasonal_lags=(2,)).longest_lag == 5


def test_a_row_has_as_many_numbers_as_its_layout_says() -> None:
    layout = features.Layout(
        lags=5, neighbours=4, seasonal_lags=(24,), calendar=True, level=True, same_tick=True
    )
    assert layout.n_features == 5 * 4 + 1 + 9 + 2 + 3
    assert features.Layout(lags=5, neighbours=5).n_features == 25  # the paper's


def test_rows_can_be_made_in_single_precision() -> None:
    fit = fitted(5, 200, 5, lags=3, neighbours=4, impute="gaussian", same_tick=True, silent_after=6)
    single = dataclasses.replace(fit.model, dtype="float32")
    values, seconds = fit.small.values[fit.n_train :], fit.small.week_seconds[fit.n_train :]
    X = judging._inputs(single, fit.memory.copy(), values, ~np.isnan(values), seconds).X
    assert X.dtype == np.float32
    assert np.allclose(X, fit.rows_in_judging(values), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("lengths", [(1,) * 12, (5, 1, 6), (12,), (3, 0, 9), (2, 10)])
def test_the_memory_of_a_stream_is_its_newest_readings_however_they_came(lengths: tuple[int, ...]) -> None:
    small = panels.small_panel(0, 20, 3)
    readings, observed = small.complete, small.observed
    recent = features.Recent(readings[:8][-4:].copy(), np.full(3, 2), observed[7].copy())
    start = 8
    for n in lengths:
        recent.push(readings[start : start + n], observed[start : start + n], start)
        start += n
    assert np.array_equal(recent.readings, readings[16:20])
    assert recent.observed.tolist() == observed[19].tolist()
    plain = [max([2, *(t for t in range(8, 20) if observed[t, k])]) for k in range(3)]
    assert recent.last_seen.tolist() == plain


def test_levels_enter_by_the_fold_in_training_and_by_all_in_judging() -> None:
    fit = fitted(5, 200, 5, lags=3, neighbours=4, impute="gaussian", same_tick=True, silent_after=6)
    usual = fit.prepared.usual
    assert isinstance(usual.season, seasonality.Season)
    column = 3 * 4 + 1 + 9
    for X, ticks in (
        (fit.rows_in_training(), np.arange(fit.layout.longest_lag, fit.n_train)),
        (fit.rows_in_judging(fit.small.values[fit.n_train :]), np.arange(fit.n_train, fit.n_train + 40)),
    ):
        level, spread = usual.season.at(ticks, fit.small.week_seconds[ticks])
        assert X[:, :, column] == pytest.approx((level - usual.centre) / usual.scale)
        assert X[:, :, column + 1] == pytest.approx(spread / usual.scale)


def test_what_was_measured_is_restored() -> None:
    small = panels.small_panel(0, 60, 3)
    for relative in (True, False):
        usual = seasonality.Usual(*naive.scale_of(small.values)[:2], season=None, relative=relative)
        level = usual.levels(np.arange(60), None)[0]
        back = usual.restore(usual.measure(small.values, level), level)
        assert back == pytest.approx(small.values, nan_ok=True)
