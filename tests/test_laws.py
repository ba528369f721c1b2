"""The laws of the house, each a test; and whether p-values keep their promise when nothing is wrong."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.tree import DecisionTreeRegressor

import ecad
from combinations import panel_of
from ecad import ECAD, Panel, TabularECAD, ensemble, settings
from holdings import arrays_of
from panels import SmallPanel, small_panel

NAN = np.nan
SOURCE = Path(ecad.__file__).parent
ROOMS = (
    "imputation",
    "neighbourhood",
    "features",
    "ensemble",
    "scores",
    "pvalues",
    "decisions",
    "seasonality",
)
COLUMNS = ("expected", "scores", "p_values", "strength", "lower", "upper", "alarms", "status_codes")

WAYS: list[dict[str, Any]] = [
    {},
    {"centre": "quantile", "aggregation": "median", "score": "studentised", "pool": "network"},
    {"score": "signed", "half_life": 80.0, "impute": "seasonal", "same_tick": True},
    {
        "reference": "local",
        "local": "or",
        "classes": None,
        "absorb": "all",
        "p_value": "paper",
        "same_tick": True,
    },
    {"reference": "seasonal", "aggregation": "trimmed_mean", "rule": "bh", "alpha": 0.1, "train_on": "all"},
    {"regressor": DecisionTreeRegressor(max_depth=4), "impute": "keep", "alpha": 0.1},
]
EVERY_WAY = pytest.mark.parametrize(
    "settings", WAYS, ids=lambda way: "-".join(map(str, way)) or "as it comes"
)


def quick(**given: Any) -> ECAD:
    return ECAD(**{"lags": 3, "neighbours": 3, "n_members": 6, "random_state": 0, **given})


@pytest.fixture(scope="module")
def small() -> SmallPanel:
    return small_panel(11, 240, 4)


@pytest.fixture(scope="module")
def panel(small: SmallPanel) -> Panel:
    return panel_of(small)


def quiet_panel(seed: int, n_times: int, n_sensors: int, holes: float = 0.0, memory: float = 0.6) -> Panel:
    """Nothing is wrong: AR(1) errors around a daily wave."""
    random = np.random.RandomState(seed)
    errors = random.standard_normal((n_times + 100, n_sensors))
    for t in range(1, len(errors)):
        errors[t] += memory * errors[t - 1]
    wave = 5 * np.sin(2 * np.pi * np.arange(n_times) / 24)
    values = 100 + wave[:, None] + errors[100:]
    values[random.uniform(size=values.shape) < holes] = NAN
    return ecad.read_panel(values, start="2025-01-06", step="1h")


# -- 1. one direction of strangeness -----------------------------------------------------------------------------------


@EVERY_WAY
def test_the_further_a_reading_is_from_what_was_expected_the_smaller_is_p(
    panel: Panel, settings: dict[str, Any]
) -> None:
    fitted = quick(**settings).fit(panel[:170])
    time, row = panel.times[170], panel.values[170].copy()
    first, unit = fitted.stream().update(time, row), np.nanstd(panel.values[:170, 0])
    p, strength = [], []
    for distance in (0.0, 0.3, 1.0, 3.0, 10.0, 100.0):
        row[0] = first.expected[0] + distance * unit
        verdict = fitted.stream().update(time, row)
        p.append(verdict.p_values[0])
        strength.append(verdict.strength[0])
    if settings.get("score") == "signed":  # both tails: p is largest at the median, not at zero
        p, strength = p[2:], strength[2:]
    assert (np.diff(p) <= 0).all() and p[-1] < 0.1
    assert (np.diff(strength) >= 0).all() and strength[-1] > strength[-2] > strength[-3]


def test_there_is_no_setting_for_the_direction() -> None:
    words = ("polarity", "direction", "invert", "sign", "larger", "higher")
    assert not [row.name for row in settings.SETTINGS if any(word in row.name for word in words)]


# -- 2. an alarm is exactly p <= alpha ---------------------------------------------------------------------------------


@EVERY_WAY
def test_an_alarm_is_exactly_a_p_value_of_at_most_alpha_and_a_reading_outside_its_bounds(
    panel: Panel, settings: dict[str, Any]
) -> None:
    report = quick(**settings).fit(panel[:170]).detect(panel[170:])
    known = np.isfinite(report.p_values)
    if settings.get("rule") != "bh":
        np.testing.assert_array_equal(report.alarms, report.p_values <= report.alpha)
    outside = (report.values < report.lower) | (report.values > report.upper)
    np.testing.assert_array_equal(outside[known], (report.p_values <= report.alpha)[known])


def test_rows_of_ones_own_alarm_exactly_where_p_is_at_most_alpha_and_predict_is_what_was_expected() -> None:
    random = np.random.RandomState(0)
    X = random.standard_normal((300, 3))
    y = X @ [1.0, 2.0, 3.0] + random.standard_normal(300)
    y[[210, 250]] = 40.0, NAN
    for centre in ("quantile", "ensemble"):
        fitted = TabularECAD(centre=centre, random_state=0, alpha=0.1).fit(X[:200], y[:200])
        report = fitted.detect(X[200:], y[200:])
        np.testing.assert_array_equal(report.alarms, report.p_values <= 0.1)
        np.testing.assert_array_equal(fitted.predict(X[200:]), report.expected)
        assert report.alarms[10] and np.isnan(report.p_values[50]) and not report.alarms[50]


# -- 3. a filled cell is never judged, and never calibrates ------------------------------------------------------------


@EVERY_WAY
def test_what_was_not_observed_has_no_verdict_and_no_calibration_score(
    panel: Panel, settings: dict[str, Any]
) -> None:
    fitted = quick(**settings).fit(panel[:170])
    report = fitted.detect(panel[170:])
    missing = ~panel[170:].observed
    assert missing.any()
    for name in ("p_values", "scores", "strength"):
        assert np.isnan(getattr(report, name)[missing]).all()
    assert not report.alarms[missing].any() and (report.status[missing] == "missing").all()
    filled = ~panel.observed[fitted.train_ticks_]
    if fitted.train_on == "observed":
        assert filled.any() and np.isnan(fitted.calibration_scores_[filled]).all()
    running = fitted.stream()
    for time, row in zip(panel.times[170:], panel.values[170:]):
        running.update(time, row)
        window = running.memory.window
        newest = (window.head - 1) % len(window.ticks)
        assert window.ticks[newest] == window.next_tick - 1
        assert np.isnan(window.ring[np.isnan(row), newest]).all()


def test_warming_up_is_unknown_and_not_normal(small: SmallPanel) -> None:
    values = small.complete.copy()
    values[4:160, 1] = NAN
    sparse = panel_of(replace(small, values=values))
    report = quick().fit(sparse[:170]).detect(sparse[170:])
    warming = report.status == "warming up"
    assert warming[:, 1].any() and not warming[:, 0].any()
    for name in ("p_values", "strength", "lower", "upper"):
        assert np.isnan(getattr(report, name)[warming]).all()
    assert not report.alarms[warming].any() and np.isfinite(report.scores[warming]).all()


@EVERY_WAY
def test_a_centre_does_not_know_the_reading_it_is_compared_with(
    panel: Panel, settings: dict[str, Any]
) -> None:
    fitted = quick(**settings).fit(panel[:170])
    before = fitted.detect(panel[170:])
    for k in range(4):
        values = panel.values[170:].copy()
        values[30:, k] = 3 * values[30:, k] + 77
        after = fitted.detect(panel[170:].with_values(values))
        np.testing.assert_allclose(after.expected[30, k], before.expected[30, k], rtol=1e-12)
        # whether the reading is missing is nothing that the centre may know either
        values[30, k] = NAN
        after = fitted.detect(panel[170:].with_values(values))
        np.testing.assert_allclose(after.expected[30, k], before.expected[30, k], rtol=1e-12)


# -- 4. score before learn ---------------------------------------------------------------------------------------------


@EVERY_WAY
def test_a_verdict_depends_on_nothing_later(panel: Panel, settings: dict[str, Any]) -> None:
    fitted = quick(**settings).fit(panel[:170])
    before = fitted.detect(panel[170:])
    values = panel.values[170:].copy()
    values[40:] = np.where(np.isnan(values[40:]), 5.0, values[40:] ** 2)
    after = fitted.detect(panel[170:].with_values(values))
    for name in COLUMNS:
        np.testing.assert_allclose(
            getattr(after, name)[:40], getattr(before, name)[:40], rtol=1e-9, atol=1e-12
        )
    short = fitted.detect(panel[170:210])
    np.testing.assert_array_equal(short.p_values, before.p_values[:40])


@EVERY_WAY
def test_scoring_changes_no_state(panel: Panel, settings: dict[str, Any]) -> None:
    fitted = quick(**settings).fit(panel[:170])
    before = [array.copy() for array in arrays_of(fitted.memory_)]
    fitted.detect(panel[170:])
    stream = fitted.stream()
    stream.update(panel.times[170], panel.values[170])
    for now, then in zip(arrays_of(fitted.memory_), before, strict=True):
        np.testing.assert_array_equal(now, then)
    moved = zip(arrays_of(stream.memory), before, strict=True)
    assert any(not np.array_equal(now, then, equal_nan=True) for now, then in moved)


# -- 5. stream equals batch (every combination: test_stream) -----------------------------------------------------------


@EVERY_WAY
def test_a_stream_gives_the_verdicts_of_the_batch(panel: Panel, settings: dict[str, Any]) -> None:
    fitted = quick(**settings).fit(panel[:170])
    report, running = fitted.detect(panel[170:]), fitted.stream()
    verdicts = [running.update(time, row) for time, row in zip(panel.times[170:], panel.values[170:])]
    np.testing.assert_allclose([v.p_values for v in verdicts], report.p_values, rtol=1e-12)
    np.testing.assert_array_equal([v.alarms for v in verdicts], report.alarms)


# -- 6. the same members wherever and in whatever order they are fitted ------------------------------------------------


def test_a_member_draws_the_same_times_however_many_others_there_are() -> None:
    for block_ends in (None, ensemble.day_blocks(np.arange(200), 24)):
        few, many = ensemble.draw(200, 3, 7, block_ends), ensemble.draw(200, 11, 7, block_ends)
        np.testing.assert_array_equal(many[:3], few)
        assert (ensemble.draw(200, 3, 8, block_ends) != few).any()


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"centre": "quantile"},
        {"centre": "quantile", "aggregation": "median", "groups": "sensor"},
        {"regressor": RandomForestRegressor(3, max_depth=3), "n_members": 4},
    ],
    ids=["ridge", "quantile", "median", "forest"],
)
def test_one_thread_and_two_give_the_same(panel: Panel, given: dict[str, Any]) -> None:
    one, two = (quick(**given, n_jobs=n).fit(panel[:170]) for n in (1, 2))
    np.testing.assert_array_equal(one.in_bag_, two.in_bag_)
    np.testing.assert_array_equal(one.calibration_scores_, two.calibration_scores_)
    first, second = one.detect(panel[170:]), two.detect(panel[170:])
    for name in COLUMNS:
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))


def test_the_same_seed_gives_the_same_detector_and_another_seed_another(panel: Panel) -> None:
    for given in ({}, {"regressor": RandomForestRegressor(3, max_depth=3)}):
        one, same, other = (quick(**{**given, "random_state": seed}).fit(panel[:170]) for seed in (1, 1, 2))
        np.testing.assert_array_equal(one.calibration_scores_, same.calibration_scores_)
        assert (one.in_bag_ != other.in_bag_).any()


def test_the_seed_that_was_drawn_gives_the_same_detector_again(panel: Panel) -> None:
    one = quick(random_state=None).fit(panel[:170])
    again = quick(random_state=one.seed_).fit(panel[:170])
    np.testing.assert_array_equal(one.calibration_scores_, again.calibration_scores_)


@pytest.mark.parametrize(
    "given", [{}, {"centre": "quantile", "score": "studentised"}], ids=["default", "quantile"]
)
def test_the_order_of_sensors_does_not_matter(panel: Panel, given: dict[str, Any]) -> None:
    order = ["s2", "s0", "s3", "s1"]
    report = quick(**given).fit(panel[:170]).detect(panel[170:])
    shuffled = quick(**given).fit(panel[:170].select(order)).detect(panel[170:].select(order))
    index = [panel.sensors.index(name) for name in order]
    np.testing.assert_array_equal(shuffled.p_values, report.p_values[:, index])
    np.testing.assert_array_equal(shuffled.alarms, report.alarms[:, index])


@pytest.mark.parametrize("given", [{}, {"score": "signed", "impute": "seasonal"}], ids=["default", "signed"])
def test_the_unit_of_a_sensor_does_not_matter(panel: Panel, given: dict[str, Any]) -> None:
    unit, origin = np.array([1.0, 1000.0, 0.01, 1.8]), np.array([0.0, 0.0, 5.0, 32.0])
    report = quick(**given).fit(panel[:170]).detect(panel[170:])
    other = panel.with_values(panel.values * unit + origin)
    converted = quick(**given).fit(other[:170]).detect(other[170:])
    np.testing.assert_array_equal(converted.p_values, report.p_values)
    np.testing.assert_allclose(converted.expected, report.expected * unit + origin, rtol=1e-8)


# -- 7. one verdict through every door ---------------------------------------------------------------------------------


def test_the_records_of_a_stream_are_the_rows_of_a_frame(panel: Panel) -> None:
    fitted = quick().fit(panel[:170])
    rows = fitted.detect(panel[170:180]).to_frame().to_dict("records")
    running = fitted.stream()
    records = [
        record
        for time, values in zip(panel.times[170:180], panel.values[170:180])
        for record in running.update(time, values).to_records()
    ]
    assert len(rows) == len(records)
    for row, record in zip(rows, records):
        assert list(row) == list(record)
        for name in ("sensor", "alarm", "status"):
            assert row[name] == record[name]
        assert (record["p_value"] is None) == np.isnan(row["p_value"])
        assert record["p_value"] is None or record["p_value"] == row["p_value"]


# -- 8. checked once, at the border ------------------------------------------------------------------------------------


@pytest.mark.parametrize("room", ROOMS)
def test_inner_rooms_assume_and_do_not_check(room: str) -> None:
    tree = ast.parse((SOURCE / f"{room}.py").read_text(encoding="utf-8"))
    assert not [node.lineno for node in ast.walk(tree) if isinstance(node, ast.Raise)]


# -- what p promises ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("holes", [0.0, 0.2])
@pytest.mark.parametrize(
    "given",
    [
        {},
        {"centre": "quantile"},
        {"score": "signed"},
        {"score": "studentised", "pool": "network"},
        {"half_life": 28 * 24.0},
    ],
    ids=["default", "quantile", "signed", "network", "half-life"],
)
def test_when_nothing_is_wrong_a_share_of_alpha_alarms(given: dict[str, Any], holes: float) -> None:
    shares = []
    for seed in (1, 2):
        panel = quiet_panel(seed, 3000, 6, holes)
        report = ECAD(n_members=15, random_state=0, **given).fit(panel[:1500]).detect(panel[1500:])
        p = report.p_values[np.isfinite(report.p_values)]
        shares.append([np.mean(p <= level) / level for level in (0.05, 0.1, 0.3)])
    assert np.abs(np.mean(shares, axis=0) - 1).max() < 0.15


def test_planted_anomalies_are_found_and_do_not_blind_the_detector() -> None:
    panel = quiet_panel(3, 3000, 6)
    values = panel.values.copy()
    random = np.random.RandomState(0)
    planted = np.zeros(values.shape, dtype=bool)
    for start in range(1500, 2990, 75):  # runs of three, four in a hundred readings
        planted[start : start + 3, random.randint(6)] = True
    values[planted] += 12
    panel = panel.with_values(values)
    for absorb in ("runs", "all"):
        report = (
            ECAD(n_members=15, random_state=0, alpha=0.01, absorb=absorb)
            .fit(panel[:1500])
            .detect(panel[1500:])
        )
        found = report.alarms[planted[1500:]].mean()
        assert found > 0.9 if absorb == "runs" else found > 0.3
