"""ECAD over a history: the whole of it against plain loops, and what fit and detect promise."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import Lasso
from threadpoolctl import threadpool_limits

import ecad
import naive
import naive_pipeline
from combinations import CHOICES, N_LATER, N_TRAIN, SEEDS, combination, draw, named, panel_for, panel_of
from ecad import ECAD, EcadError, EcadWarning, Panel, Report, detector
from panels import SmallPanel, small_panel

NAN = np.nan
COLUMNS = ("expected", "scores", "p_values", "strength", "lower", "upper", "alarms", "status_codes")


def judged_by_both(
    small: SmallPanel, n_train: int, fit: Any = None, **settings: Any
) -> tuple[ECAD, Report, naive_pipeline.Verdicts]:
    panel = panel_of(small)
    fitted = ECAD(**settings).fit(panel[:n_train])
    known = {name: value for name, value in settings.items() if name in naive_pipeline.DEFAULTS}
    return (
        fitted,
        fitted.detect(panel[n_train:]),
        naive_pipeline.run(small, n_train, fitted.in_bag_, fit, **known),
    )


def assert_agree(
    fitted: ECAD,
    report: Report,
    expected: naive_pipeline.Verdicts,
    spread: np.ndarray,
    tolerance: float = 1e-9,
) -> None:
    """Centres and scores within 1e-9 of the sensor's spread; p-values, alarms and status equal."""
    pure = fitted.score == "studentised"  # scores that are pure numbers
    unit = np.ones_like(spread) if pure else spread
    np.testing.assert_array_equal(fitted.train_ticks_, expected.train_ticks)
    assert_close(fitted.calibration_scores_, expected.calibration_scores, unit, tolerance)
    assert_close(report.expected, expected.expected, spread, tolerance)
    assert_close(report.scores, expected.scores, unit, tolerance)
    if fitted.half_life is None:
        np.testing.assert_array_equal(report.p_values, expected.p_values)
    else:  # sums of weights are rounded
        np.testing.assert_allclose(report.p_values, expected.p_values, rtol=1e-12)
    np.testing.assert_array_equal(report.alarms, expected.alarms)
    np.testing.assert_array_equal(report.status_codes, expected.status)
    np.testing.assert_allclose(report.strength, expected.strength, rtol=1e-6, atol=1e-6)
    # a bound holds what ties with it: 1e-9 of the spread, or of a usual local scale
    tie = 1e-8 if pure else 1e-9
    assert_close(report.lower, expected.lower, spread, tolerance + tie)
    assert_close(report.upper, expected.upper, spread, tolerance + tie)


def assert_close(fast: np.ndarray, slow: np.ndarray, unit: np.ndarray, tolerance: float) -> None:
    np.testing.assert_allclose(fast / unit, slow / unit, rtol=0, atol=tolerance * 1.0001)


def quick(**settings: Any) -> ECAD:
    return ECAD(**{"lags": 3, "neighbours": 3, "n_members": 6, "random_state": 0, **settings})


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Small products: threads that wait for each other would cost more than the work."""
    with threadpool_limits(1):
        yield


@pytest.fixture(scope="module")
def small() -> SmallPanel:
    return small_panel(3, 230, 4)


@pytest.fixture(scope="module")
def panel(small: SmallPanel) -> Panel:
    return panel_of(small)


# -- against plain loops -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS, ids=named)
def test_every_stage_together_agrees_with_plain_loops(seed: int) -> None:
    readings = panel_for(seed)
    fitted, report, expected = judged_by_both(readings, N_TRAIN, **combination(seed))
    assert np.isfinite(report.p_values).sum() > N_LATER
    assert_agree(fitted, report, expected, naive.scale_of(readings.values[:N_TRAIN])[2])


def test_every_choice_of_every_setting_is_among_the_combinations() -> None:
    drawn = [draw(seed) for seed in SEEDS]
    for name, options in CHOICES.items():
        seen = Counter(choices[name] for choices in drawn)
        assert all(seen[option] >= 2 for option in options), (name, seen)


def test_a_weekly_season_agrees_with_plain_loops() -> None:
    readings = small_panel(5, 24 * 21 + 20, 2, holes=0.15, dead=False)
    fitted, report, expected = judged_by_both(
        readings, 24 * 21, lags=3, neighbours=2, n_members=5, random_state=1, score="studentised"
    )
    assert fitted.model_.layout.seasonal_lags == (24,)
    assert_agree(fitted, report, expected, naive.scale_of(readings.values[: 24 * 21])[2])


def test_ticks_of_half_an_hour_agree_with_plain_loops() -> None:
    readings = small_panel(6, 330, 3, step_seconds=1800)
    fitted, report, expected = judged_by_both(
        readings, 300, lags=3, neighbours=3, n_members=5, random_state=1, reference="seasonal", alpha=0.1
    )
    assert_agree(fitted, report, expected, naive.scale_of(readings.values[:300])[2])


def test_a_step_that_does_not_divide_a_day_agrees_with_plain_loops() -> None:
    """Twenty-five minutes: a day is the nearest number of ticks, and so is what 28 days of residuals need."""
    readings = small_panel(7, 330, 3, step_seconds=1500)
    fitted, report, expected = judged_by_both(
        readings,
        300,
        lags=3,
        neighbours=3,
        n_members=5,
        random_state=1,
        score="studentised",
        silent_after="auto",
    )
    assert fitted.model_.patience == 58 and fitted.memory_.local_scale.residuals.shape[1] == 1613
    assert_agree(fitted, report, expected, naive.scale_of(readings.values[:300])[2])


@pytest.mark.parametrize("impute", ["gaussian", "keep"])
@pytest.mark.parametrize(
    "regressor",
    [HistGradientBoostingRegressor(max_iter=8, max_leaf_nodes=6, min_samples_leaf=10), Lasso(0.05)],
    ids=["boosting", "lasso"],
)
def test_members_of_scikit_learn_agree_with_plain_loops(regressor: Any, impute: str) -> None:
    if impute == "keep" and isinstance(regressor, Lasso):
        with pytest.raises(EcadError, match="takes none"):
            quick(regressor=regressor, impute="keep").fit(panel_of(small_panel(2, 120, 3)))
        return
    readings = small_panel(2, 215, 3)

    def fit(rows: np.ndarray, targets: np.ndarray) -> Any:
        return clone(regressor).fit(rows, targets).predict

    fitted, report, expected = judged_by_both(
        readings,
        190,
        fit,
        regressor=regressor,
        impute=impute,
        lags=3,
        neighbours=2,
        n_members=4,
        random_state=0,
    )
    # Lasso stops where it is near enough, and is told counts where the loop repeats rows
    tolerance = 1e-3 if isinstance(regressor, Lasso) else 1e-9
    spread = naive.scale_of(readings.values[:190])[2]
    if tolerance == 1e-9:
        assert_agree(fitted, report, expected, spread)
    assert_close(report.expected, expected.expected, spread, tolerance)


@pytest.mark.parametrize("centre", ["ensemble", "quantile"])
def test_an_unfitted_and_a_constant_sensor_agree_with_plain_loops(centre: str) -> None:
    readings = small_panel(4, 200, 5, dead=False, stuck=0)
    values = readings.values.copy()
    values[:170, 1] = NAN  # speaks only after training
    values[:170, 3] = np.where(np.isnan(values[:170, 3]), NAN, 7.0)
    readings = replace(readings, values=values)
    with pytest.warns(EcadWarning):
        fitted, report, expected = judged_by_both(
            readings, 170, lags=3, neighbours=3, n_members=5, random_state=1, centre=centre
        )
    assert_agree(fitted, report, expected, naive.scale_of(values[:170])[2])


# -- detect ------------------------------------------------------------------------------------------------------------


def test_detect_twice_gives_the_same_and_changes_nothing(panel: Panel) -> None:
    for settings in (
        {},
        {"score": "studentised", "pool": "network"},
        {"impute": "seasonal", "half_life": 50.0},
    ):
        fitted = quick(**settings).fit(panel[:170])
        first, second = fitted.detect(panel[170:]), fitted.detect(panel[170:])
        for name in COLUMNS:
            np.testing.assert_array_equal(getattr(first, name), getattr(second, name))


def test_blocks_of_any_length_give_the_same_report(panel: Panel, monkeypatch: pytest.MonkeyPatch) -> None:
    fitted = quick(centre="quantile", score="studentised").fit(panel[:170])
    whole = fitted.detect(panel[170:])
    monkeypatch.setattr(detector, "BLOCK_ROWS", 7 * panel.n_sensors)
    parts = fitted.detect(panel[170:])
    for name in ("p_values", "alarms", "status_codes"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(parts, name))
    np.testing.assert_allclose(whole.scores, parts.scores, rtol=1e-9, atol=1e-9)
    assert whole.stand_ins == parts.stand_ins


def test_a_gap_after_the_fitted_data_becomes_rows_of_nan(panel: Panel) -> None:
    fitted = quick().fit(panel[:170])
    report = fitted.detect(panel[182:])
    assert len(report.times) == panel.n_times - 170
    np.testing.assert_array_equal(report.times, panel.times[170:])
    assert np.isnan(report.values[:12]).all() and np.isnan(report.p_values[:12]).all()
    assert (report.status[:12] == "missing").all() and not report.alarms[:12].any()
    values = panel.values[170:].copy()
    values[:12] = NAN
    same = fitted.detect(panel[170:].with_values(values))
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(report, name), getattr(same, name))


@pytest.mark.parametrize("first", [0, 100, 169])
def test_an_overlap_or_an_earlier_time_is_refused(panel: Panel, first: int) -> None:
    fitted = quick().fit(panel[:170])
    with pytest.raises(EcadError, match=r"2025-01-13 01:00"):
        fitted.detect(panel[first:200])


def test_a_tick_off_the_grid_another_step_and_an_unknown_sensor_are_refused(panel: Panel) -> None:
    fitted = quick().fit(panel[:170])
    later = panel[170:]
    with pytest.raises(EcadError):
        fitted.detect(replace(later, times=later.times + np.timedelta64(10, "m")))
    with pytest.raises(EcadError):
        fitted.detect(replace(later, step=np.timedelta64(1800, "s")))
    with pytest.raises(EcadError, match="stranger"):
        fitted.detect(replace(later, sensors=("s0", "s1", "s2", "stranger")))


def test_sensors_are_found_by_name_and_absent_ones_are_missing(panel: Panel) -> None:
    fitted = quick().fit(panel[:170])
    report = fitted.detect(panel[170:])
    shuffled = fitted.detect(panel[170:].select(["s2", "s0", "s3", "s1"]))
    assert shuffled.sensors == panel.sensors
    np.testing.assert_array_equal(shuffled.p_values, report.p_values)
    with pytest.warns(EcadWarning):
        fewer = fitted.detect(panel[170:].drop(["s1"]))
    assert (fewer.status[:, 1] == "missing").all() and np.isfinite(fewer.p_values[:, 0]).any()


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
@pytest.mark.parametrize("shape", ["wide", "long"])
def test_frames_of_the_callers_kind_come_back(panel: Panel, kind: str, shape: str) -> None:
    pandas = panel.to_frame(shape)
    given = {"pandas": lambda x: x, "polars": pl.from_pandas, "pyarrow": pa.Table.from_pandas}[kind]
    cut = 170 if shape == "wide" else 170 * panel.n_sensors
    train, later = given(pandas.iloc[:cut]), given(pandas.iloc[cut:].reset_index(drop=True))
    frame = quick().fit(train).detect(later).to_frame()
    assert isinstance(frame, {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.Table}[kind])
    rows = frame.to_pandas() if kind != "pandas" else frame
    assert len(rows) == (panel.n_times - 170) * panel.n_sensors
    assert list(rows.columns) == [
        "time", "sensor", "value", "expected", "lower", "upper", "score", "p_value", "strength", "alarm", "status",
    ]  # fmt: skip
    assert rows["sensor"].iloc[: panel.n_sensors].tolist() == list(panel.sensors)
    np.testing.assert_array_equal(rows["value"].to_numpy(), panel.values[170:].ravel())
    alarms = (rows["p_value"] <= 0.05).to_numpy()
    np.testing.assert_array_equal(rows["alarm"].to_numpy(), alarms)


def test_arrays_go_on_right_after_the_fitted_ones(small: SmallPanel) -> None:
    fitted = quick().fit(small.values[:170])
    report = fitted.detect(small.values[170:])
    assert report.p_values.shape == small.values[170:].shape and report.times[0] == 170
    assert np.isfinite(report.p_values).any()


def test_a_report_says_why_a_reading_has_no_verdict(panel: Panel) -> None:
    report = quick().fit(panel[:170]).detect(panel[170:])
    missing = ~panel[170:].observed
    assert missing.any() and (report.status[missing] == "missing").all()
    tested = np.isfinite(report.p_values)
    assert np.isin(report.status[tested], ["tested", "all classes"]).all()
    assert (report.alarms == (report.p_values <= report.alpha)).all()


def test_rows_with_a_hole_have_no_features_without_imputation() -> None:
    panel = panel_of(small_panel(3, 230, 4, dead=False, holes=0.04))
    report = quick(impute=None, alpha=0.1).fit(panel[:190]).detect(panel[190:])
    assert (report.status == "no features").any() and (report.status == "tested").any() | (
        report.status == "all classes"
    ).any()
    assert np.isnan(report.expected[report.status == "no features"]).all()


def test_a_dead_sensor_is_replaced_in_its_neighbourhood_and_the_report_says_so(small: SmallPanel) -> None:
    values = small.complete.copy()
    values[185:, 2] = NAN
    panel = panel_of(replace(small, values=values))
    report = quick(neighbours=3).fit(panel[:170]).detect(panel[170:])
    whose = [stand_in for stand_in in report.stand_ins if stand_in.neighbour == "s2"]
    assert whose and all(stand_in.replacement != "s2" for stand_in in whose)
    # silent a day after its last reading, until the end
    assert {stand_in.start for stand_in in whose} == {panel.times[184 + 25]}
    assert {stand_in.end for stand_in in whose} == {panel.times[-1]}
    assert quick(neighbours=3, silent_after=None).fit(panel[:170]).detect(panel[170:]).stand_ins == ()


# -- fit ---------------------------------------------------------------------------------------------------------------


def test_a_sensor_without_a_training_reading_is_named_and_never_judged(small: SmallPanel) -> None:
    values = small.complete.copy()
    values[:170, 1] = NAN
    panel = panel_of(replace(small, values=values))
    with pytest.warns(EcadWarning, match="'s1' has no reading"):
        fitted = quick().fit(panel[:170])
    assert fitted.unfitted_sensors_ == ("s1",)
    assert 1 not in np.delete(fitted.neighbours_, 1, axis=0)
    report = fitted.detect(panel[170:])
    assert (report.status[:, 1] == "not fitted").all()
    for name in ("p_values", "scores", "expected", "lower", "upper", "strength"):
        assert np.isnan(getattr(report, name)[:, 1]).all() and np.isfinite(getattr(report, name)[:, 0]).any()


def test_a_sensor_that_was_not_fitted_stands_in_for_nobody_when_it_reports(small: SmallPanel) -> None:
    values = small.complete.copy()
    values[:170, 1] = NAN
    values[170:, 1] = 1e6  # nobody knows its unit
    values[172:, 2] = NAN  # so that somebody is needed
    panel = panel_of(replace(small, values=values))
    silent = panel.with_values(np.where(np.arange(4) == 1, NAN, values))
    with pytest.warns(EcadWarning, match="'s1' has no reading"):
        fitted = quick(neighbours=2, silent_after=5).fit(panel[:170])
    report = fitted.detect(panel[170:])
    assert report.stand_ins and not {"s1"} & {stand_in.replacement for stand_in in report.stand_ins}
    np.testing.assert_array_equal(report.expected, fitted.detect(silent[170:]).expected)


def test_a_value_far_from_all_others_that_comes_again_is_named(small: SmallPanel) -> None:
    values = small.complete.copy()
    values[[5, 50, 51, 120], 1] = -9999
    panel = panel_of(replace(small, values=values))
    with pytest.warns(EcadWarning, match="'s1' reads -9999 4 times .* missing_values=-9999"):
        quick().fit(panel[:170])


def test_of_many_sensors_the_nearest_that_were_fitted_are_neighbours() -> None:
    random = np.random.RandomState(0)
    values = random.normal(size=(120, 60))
    values[:, 1:50] = NAN
    places = np.column_stack([np.arange(60.0), np.zeros(60)])
    panel = Panel(values, tuple(f"s{k}" for k in range(60)), np.arange(120), 1, places, "xy")
    with pytest.warns(EcadWarning, match="49 sensors"):
        fitted = quick(neighbours=4).fit(panel)
    assert fitted.neighbours_[0].tolist() == [0, 50, 51, 52]


def test_a_constant_sensor_is_named_and_with_a_model_of_its_own_any_other_value_alarms(
    small: SmallPanel,
) -> None:
    values = small.complete.copy()
    values[:, 2] = 50.0
    values[200, 2] = 50.01
    panel = panel_of(replace(small, values=values))
    with pytest.warns(EcadWarning, match="'s2' has the same value"):
        fitted = quick(groups="sensor").fit(panel[:170])
    report = fitted.detect(panel[170:])
    assert report.alarms[30, 2] and report.alarms[:, 2].sum() == 1


def test_no_reading_at_all_and_too_few_ticks_are_refused(panel: Panel) -> None:
    with pytest.raises(EcadError, match="None of the 4 sensors"):
        quick().fit(panel.with_values(np.full(panel.values.shape, NAN)))
    with pytest.raises(EcadError, match="too few"):
        quick(lags=30).fit(panel[:30])


def test_a_refused_fit_leaves_the_former_one_as_it_was(panel: Panel) -> None:
    fitted = quick().fit(panel[:170])
    before = fitted.detect(panel[170:])
    with pytest.raises(EcadError):
        fitted.fit(panel[:3])
    np.testing.assert_array_equal(fitted.detect(panel[170:]).p_values, before.p_values)


@pytest.mark.parametrize(
    "settings",
    [
        {"alpha": 0.001},
        {"reference": "local", "alpha": 0.01},
        {"reference": "seasonal", "alpha": 0.002},
        {"score": "signed", "alpha": 1 / 160},
        {"half_life": 5.0, "alpha": 0.05},
        {"p_value": "paper", "alpha": 0.001},
    ],
)
def test_an_alpha_that_no_p_value_can_reach_is_refused_with_a_remedy(
    panel: Panel, settings: dict[str, Any]
) -> None:
    with pytest.raises(EcadError, match=r"cannot be reached: .*(Use|Give|Fit)"):
        quick(**settings).fit(panel[:170])
    with pytest.warns(EcadWarning, match="cannot be reached"):
        quick(**settings, unreachable="warn").fit(panel[:170])


@pytest.mark.parametrize(
    "settings",
    [
        {"reference": "window", "score": "studentised", "pool": "network", "half_life": 6.0, "alpha": 0.05},
        {"reference": "local", "half_life": 1.0, "alpha": 0.25},
        {"reference": "seasonal", "half_life": 48.0, "alpha": 0.15},
    ],
    ids=lambda settings: settings["reference"],
)
def test_what_is_called_reachable_is_reached(panel: Panel, settings: dict[str, Any]) -> None:
    """A wild reading at the end has the smallest p-value of its set, whatever the ages of the scores."""
    values = panel.values.copy()
    values[-1] = 1e9
    report = quick(**settings).fit(panel[:170]).detect(panel.with_values(values)[170:])
    assert report.alarms[-1].any()


@pytest.mark.parametrize(
    "settings",
    [
        {"reference": "seasonal", "half_life": 24.0, "alpha": 0.05},
        {"reference": "local", "half_life": 0.5, "alpha": 0.1},
    ],
)
def test_a_half_life_too_short_for_alpha_is_refused(panel: Panel, settings: dict[str, Any]) -> None:
    with pytest.raises(EcadError, match="cannot be reached"):
        quick(**settings).fit(panel[:170])


def test_a_day_of_training_in_blocks_of_a_day_leaves_nothing_out_and_is_refused() -> None:
    minutes = panel_of(small_panel(2, 340, 3, dead=False, step_seconds=300))  # 28 hours
    day, rest = minutes[:280], minutes[280:]
    with pytest.raises(EcadError, match=r'0 were left out .* bootstrap="iid"'):
        quick().fit(day)
    with pytest.raises(EcadError, match="take a quantile of"):
        quick(centre="quantile", unreachable="warn").fit(day)
    with pytest.warns(EcadWarning, match="0 were left out"):
        warming = quick(unreachable="warn").fit(day).detect(rest)
    assert (warming.status[:10] != "tested").all()
    assert np.isfinite(quick(bootstrap="iid").fit(day).detect(rest).p_values).any()


@pytest.mark.parametrize("centre", ["ensemble", "quantile"])
def test_an_aggregation_that_forgets_its_axis_is_refused(panel: Panel, centre: str) -> None:
    with pytest.raises(EcadError, match=r"aggregation= gave .* axis=0"):
        quick(aggregation=np.median, centre=centre).fit(panel[:170])


def test_one_sensor_can_be_imputed_column_on_columns(panel: Panel) -> None:
    one = panel.select(["s0"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        report = quick(impute="iterative").fit(one[:170]).detect(one[170:])
    assert np.isfinite(report.p_values).any()


@pytest.mark.parametrize("lags", [[12, 24], (12, 24), np.array([12, 24])], ids=["list", "tuple", "array"])
def test_seasonal_lags_may_be_any_row_of_numbers(panel: Panel, lags: Any) -> None:
    assert quick(seasonal_lags=lags).fit(panel[:170]).model_.layout.seasonal_lags == (12, 24)


def test_a_report_has_the_level_that_was_fitted(panel: Panel) -> None:
    fitted = quick(alpha=0.2).fit(panel[:170])
    report = fitted.set_params(alpha=0.01).detect(panel[170:])
    assert report.alpha == 0.2 and (report.alarms == (report.p_values <= 0.2)).all()


@pytest.mark.parametrize("zones", [(None, "-05:00"), ("-05:00", None)])
def test_a_panel_with_a_zone_does_not_continue_one_without(panel: Panel, zones: tuple[Any, Any]) -> None:
    earlier, later = (replace(part, time_zone=zone) for part, zone in zip((panel[:170], panel[170:]), zones))
    with pytest.raises(EcadError, match="time_zone="):
        quick().fit(earlier).detect(later)


def test_groups_of_one_sensor_are_fitted_apart(panel: Panel) -> None:
    """With one neighbour, a sensor's own model does not depend on what the other sensors' readings are."""
    settings: dict[str, Any] = {"groups": "sensor", "neighbours": 1, "impute": "seasonal"}
    report = quick(**settings).fit(panel[:170]).detect(panel[170:])
    values = panel.values.copy()
    values[:, 1:] = values[:, 1:] ** 2
    changed = panel.with_values(values)
    other = quick(**settings).fit(changed[:170]).detect(changed[170:])
    np.testing.assert_array_equal(report.p_values[:, 0], other.p_values[:, 0])
    assert (report.p_values[:, 1] != other.p_values[:, 1]).any()


def test_one_group_for_all_is_the_shared_model(panel: Panel) -> None:
    shared = quick().fit(panel[:170]).detect(panel[170:])
    one = quick(groups=dict.fromkeys(panel.sensors, "all")).fit(panel[:170]).detect(panel[170:])
    np.testing.assert_array_equal(shared.p_values, one.p_values)


def test_a_group_for_each_sensor_must_be_named(panel: Panel) -> None:
    with pytest.raises(EcadError, match="'s3'"):
        quick(groups={"s0": 1, "s1": 1, "s2": 2}).fit(panel[:170])
    with pytest.raises(EcadError):
        quick(groups=3).fit(panel[:170])


def test_readings_without_a_clock_are_judged_by_tick_numbers(small: SmallPanel) -> None:
    panel = ecad.read_panel(small.values)
    fitted = quick().fit(panel[:170])
    assert fitted.model_.layout.n_features == 9  # lags of neighbours and nothing else
    assert np.isfinite(fitted.detect(panel[170:]).p_values).any()
    for settings in ({"calendar": True}, {"season": "day"}, {"reference": "seasonal"}, {"classes": "hour"}):
        with pytest.raises(EcadError, match="clock"):
            quick(**settings).fit(panel[:170])


# -- an estimator ------------------------------------------------------------------------------------------------------


def test_parameters_are_read_set_and_cloned(panel: Panel) -> None:
    estimator = quick(alpha=0.1, regressor=Lasso(alpha=0.3))
    assert estimator.get_params()["regressor__alpha"] == 0.3
    estimator.set_params(alpha=0.2, regressor__alpha=0.5)
    copy = clone(estimator)
    assert copy is not estimator and copy.alpha == 0.2 and copy.regressor.alpha == 0.5
    assert clone(ECAD.paper(regressor="ridge")).get_params() == ECAD.paper(regressor="ridge").get_params()
    before, fitted = quick().get_params(), quick().fit(panel[:170])
    assert fitted.get_params() == before
    np.testing.assert_array_equal(clone(fitted).fit(panel[:170]).in_bag_, fitted.in_bag_)


def test_a_setting_that_cannot_work_is_refused_at_fit_not_before(panel: Panel) -> None:
    wrong = quick(alpha=2)
    with pytest.raises(EcadError, match="alpha=2"):
        wrong.fit(panel[:170])
    with pytest.raises(EcadError, match="n_memberz"):
        ECAD.paper(n_memberz=3)


def test_an_estimator_that_is_not_fitted_says_so(panel: Panel) -> None:
    for kind in (NotFittedError, EcadError):  # scikit-learn's word for it, and ours
        with pytest.raises(kind, match="ECAD has not been fitted"):
            quick().detect(panel)
        with pytest.raises(kind, match="call fit first"):
            quick().stream()


def test_results_are_shown_in_one_line(panel: Panel) -> None:
    detector = quick().fit(panel[:170])
    report, stream = detector.detect(panel[170:]), detector.stream()
    verdict = stream.update(panel.times[170], panel.values[170])
    for shown in (report, stream, verdict):
        assert repr(shown).startswith(f"<{type(shown).__name__}: ") and "\n" not in repr(shown)
    assert f"{len(panel.sensors)} sensors" in repr(verdict) and str(verdict.time_text) in repr(verdict)


def test_what_was_learned_is_described_by_fitted_attributes(panel: Panel) -> None:
    fitted = quick(n_members=4).fit(panel[:170])
    n_times = len(fitted.train_times_)
    assert fitted.in_bag_.shape == (4, n_times)
    assert (fitted.in_bag_.sum(axis=1) == n_times).all()
    np.testing.assert_array_equal(fitted.train_times_, panel.times[fitted.train_ticks_])
    seen_by_all = (fitted.in_bag_ > 0).all(axis=0)
    assert fitted.n_never_left_out_ == seen_by_all.sum() > 0
    assert np.isnan(fitted.calibration_scores_[seen_by_all]).all()
    observed = panel.observed[fitted.train_ticks_]
    np.testing.assert_array_equal(np.isfinite(fitted.calibration_scores_), observed & ~seen_by_all[:, None])


def test_nothing_is_warned_of_where_nothing_is_wrong(panel: Panel) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        quick().fit(panel[:170]).detect(panel[170:])
