"""Stream: the same verdicts as over a history, tick by tick; gaps, wrong ticks, and a memory that does not grow."""

from __future__ import annotations

import datetime as dt
import gc
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from threadpoolctl import threadpool_limits

import ecad
from combinations import N_TRAIN, SEEDS, combination, named, panel_for, panel_of
from ecad import ECAD, EcadError, Panel, Verdict, stream
from ecad.report import Report
from holdings import arrays_of
from panels import SmallPanel, small_panel

NAN = np.nan
COLUMNS = ("values", "expected", "scores", "p_values", "strength", "lower", "upper", "alarms", "status_codes")


def quick(**settings: Any) -> ECAD:
    return ECAD(**{"lags": 3, "neighbours": 3, "n_members": 6, "random_state": 0, **settings})


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    """Small products: threads that wait for each other would cost more than the work."""
    with threadpool_limits(1):
        yield


@pytest.fixture(scope="module")
def small() -> SmallPanel:
    """With holes, bursts, empty ticks, repeated readings; a sensor dies while the stream runs."""
    readings = small_panel(3, 250, 4, dead=False, stuck=5)
    values = readings.values.copy()
    values[190:, 2] = NAN
    values[180:200, 1] = values[180, 0]  # stuck
    return replace(readings, values=values)


@pytest.fixture(scope="module")
def panel(small: SmallPanel) -> Panel:
    return panel_of(small)


@pytest.fixture(scope="module")
def fitted(panel: Panel) -> ECAD:
    return quick().fit(panel[:170])


def verdicts_of(running: stream.Stream, later: Panel) -> list[Verdict]:
    return [running.update(time, row) for time, row in zip(later.times, later.values)]


def assert_same_as_batch(verdicts: list[Verdict], report: Report, spread: np.ndarray) -> None:
    """p-values, alarms and status equal; what is rounded by the shape of a product within 1e-9 of the spread."""
    assert [verdict.time for verdict in verdicts] == list(report.times)
    streamed = {name: np.array([getattr(verdict, name) for verdict in verdicts]) for name in COLUMNS}
    for name in ("values", "alarms", "status_codes"):
        np.testing.assert_array_equal(streamed[name], getattr(report, name), err_msg=name)
    np.testing.assert_allclose(streamed["p_values"], report.p_values, rtol=1e-12)
    for name in ("expected", "scores", "lower", "upper"):
        np.testing.assert_allclose(
            streamed[name] / spread, getattr(report, name) / spread, rtol=1e-9, atol=1e-9, err_msg=name
        )
    np.testing.assert_allclose(streamed["strength"], report.strength, rtol=1e-6, atol=1e-6)


# -- equal to batch ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS, ids=named)
def test_stream_equals_batch_tick_by_tick(seed: int) -> None:
    panel = panel_of(panel_for(seed))
    fitted = ECAD(**combination(seed)).fit(panel[:N_TRAIN])
    report = fitted.detect(panel[N_TRAIN:])
    assert_same_as_batch(verdicts_of(fitted.stream(), panel[N_TRAIN:]), report, spread_of(panel))
    if fitted.half_life is None:
        streamed = [verdict.p_values for verdict in verdicts_of(fitted.stream(), panel[N_TRAIN:])]
        np.testing.assert_array_equal(streamed, report.p_values)


def spread_of(panel: Panel) -> np.ndarray:
    return np.nanstd(panel.values[:N_TRAIN], axis=0)


@pytest.mark.parametrize("impute", ["gaussian", "keep"])
@pytest.mark.parametrize("centre", ["ensemble", "quantile"])
def test_stream_equals_batch_with_members_of_scikit_learn(panel: Panel, impute: str, centre: str) -> None:
    regressor = HistGradientBoostingRegressor(max_iter=6, max_leaf_nodes=5)
    fitted = quick(regressor=regressor, impute=impute, centre=centre, n_members=4).fit(panel[:170])
    report = fitted.detect(panel[170:210])
    assert_same_as_batch(verdicts_of(fitted.stream(), panel[170:210]), report, spread_of(panel))


def test_stream_equals_batch_with_iterative_imputation(panel: Panel) -> None:
    fitted = ECAD.paper(regressor="ridge", lags=3, neighbours=3, n_members=5, alpha=0.2, random_state=0)
    fitted.fit(panel[:170])
    report = fitted.detect(panel[170:200])
    assert np.isfinite(report.p_values).any()
    assert_same_as_batch(verdicts_of(fitted.stream(), panel[170:200]), report, spread_of(panel))


def test_stream_equals_batch_in_single_precision(panel: Panel) -> None:
    fitted = quick(dtype="float32", centre="quantile").fit(panel[:170])
    report = fitted.detect(panel[170:])
    p_values = [verdict.p_values for verdict in verdicts_of(fitted.stream(), panel[170:])]
    np.testing.assert_array_equal(p_values, report.p_values)


def test_stream_equals_batch_without_a_clock(small: SmallPanel) -> None:
    fitted = quick(score="studentised").fit(small.values[:170])
    report = fitted.detect(small.values[170:])
    verdicts = [fitted.stream().update(170, small.values[170])]
    running = fitted.stream()
    verdicts = [running.update(170 + t, row) for t, row in enumerate(small.values[170:])]
    np.testing.assert_array_equal([verdict.p_values for verdict in verdicts], report.p_values)
    assert verdicts[3].time == 173 and verdicts[3].to_records()[0]["time"] == 173


def test_stream_equals_batch_on_a_local_clock_through_the_change_of_time(small: SmallPanel) -> None:
    start = pd_range("2025-03-24", len(small.values))
    panel = Panel(small.values, small.sensors, start, np.timedelta64(3600, "s"), time_zone="Europe/Berlin")
    fitted = quick(score="studentised", reference="seasonal", alpha=0.1).fit(panel[:150])
    report = fitted.detect(panel[150:])
    verdicts = verdicts_of(fitted.stream(), panel[150:])
    np.testing.assert_array_equal([verdict.p_values for verdict in verdicts], report.p_values)
    assert verdicts[0].to_records()[0]["time"].endswith("+02:00")


def pd_range(start: str, n: int) -> np.ndarray:
    return np.datetime64(start, "us") + np.arange(n) * np.timedelta64(3_600_000_000, "us")


def test_a_stream_reports_the_stand_ins_of_its_tick(fitted: ECAD, panel: Panel) -> None:
    report = fitted.detect(panel[170:])
    assert report.stand_ins
    streamed = {
        (stand_in.sensor, stand_in.neighbour, stand_in.replacement, verdict.time)
        for verdict in verdicts_of(fitted.stream(), panel[170:])
        for stand_in in verdict.stand_ins
    }
    batch = {
        (stand_in.sensor, stand_in.neighbour, stand_in.replacement, time)
        for stand_in in report.stand_ins
        for time in panel.times
        if stand_in.start <= time <= stand_in.end
    }
    assert streamed == batch


# -- ticks -------------------------------------------------------------------------------------------------------------


def test_readings_may_come_as_a_mapping_a_list_or_an_array(fitted: ECAD, panel: Panel) -> None:
    time, row = panel.times[170], panel.values[170]
    mapping = {sensor: value for sensor, value in zip(panel.sensors, row) if not np.isnan(value)}
    holes = [None if np.isnan(value) else value for value in row]
    expected = fitted.stream().update(time, row)
    for values in (mapping, holes, list(row), {**mapping, "s2": None}):
        verdict = fitted.stream().update(time, values)
        if isinstance(values, dict) and "s2" in values and values["s2"] is None:
            assert np.isnan(verdict.p_values[2])
        else:
            np.testing.assert_array_equal(verdict.p_values, expected.p_values)


def test_times_may_come_as_text_datetime_or_timestamp(fitted: ECAD, panel: Panel) -> None:
    time, row = panel.times[170], panel.values[170]
    for given in (str(time), time, time.astype("datetime64[s]"), time.astype(dt.datetime)):
        assert fitted.stream().update(given, row).time == time


def test_a_time_beside_its_tick_is_moved_onto_it(fitted: ECAD, panel: Panel) -> None:
    late = fitted.stream().update(panel.times[170] + np.timedelta64(5, "m"), panel.values[170])
    assert late.time == panel.times[170] and late.gap == 0
    np.testing.assert_array_equal(
        late.p_values, fitted.stream().update(panel.times[170], panel.values[170]).p_values
    )
    with pytest.raises(EcadError, match="not on the panel's step"):
        fitted.stream().update(panel.times[170] + np.timedelta64(7, "m"), panel.values[170])


def test_a_series_is_read_by_the_names_of_its_index(fitted: ECAD, panel: Panel) -> None:
    row = pd.Series(panel.values[170], index=list(panel.sensors))
    by_name = fitted.stream().update(panel.times[170], row[::-1])
    np.testing.assert_array_equal(by_name.values, panel.values[170])
    by_place = fitted.stream().update(panel.times[170], pd.Series(panel.values[170]))
    np.testing.assert_array_equal(by_place.values, panel.values[170])


def test_a_gap_too_long_to_pass_through_is_refused(fitted: ECAD, panel: Panel) -> None:
    running = fitted.stream()
    with pytest.raises(EcadError, match="fit again on later data"):
        running.update(panel.times[-1] + np.timedelta64(50_000_000, "h"), panel.values[170])
    assert running.time == panel.times[169]


def test_skipped_ticks_count_as_not_observed(fitted: ECAD, panel: Panel) -> None:
    report = fitted.detect(panel[182:])
    running = fitted.stream()
    verdicts = verdicts_of(running, panel[182:])
    assert verdicts[0].gap == 12 and verdicts[1].gap == 0
    np.testing.assert_array_equal([verdict.p_values for verdict in verdicts], report.p_values[12:])


def test_a_gap_longer_than_a_block_is_passed_through(
    fitted: ECAD, panel: Panel, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = fitted.stream().update(panel.times[220], panel.values[220])
    monkeypatch.setattr(stream, "GAP_BLOCK", 7)
    parts = fitted.stream().update(panel.times[220], panel.values[220])
    np.testing.assert_array_equal(whole.p_values, parts.p_values)


def wrong_ticks(panel: Panel) -> list[Any]:
    good, row = panel.times[180], panel.values[180]
    return [
        pytest.param(panel.times[179], row, id="the newest tick again"),
        pytest.param(panel.times[3], row, id="an earlier tick"),
        pytest.param(good + np.timedelta64(10, "m"), row, id="off the step"),
        pytest.param("yesterday, about noon", row, id="no time"),
        pytest.param(None, row, id="no time at all"),
        pytest.param(17, row, id="a tick number where there is a clock"),
        pytest.param(np.datetime64("NaT", "us"), row, id="not a time"),
        pytest.param(good, row[:3], id="too few values"),
        pytest.param(good, [*row, 1.0], id="too many values"),
        pytest.param(good, row[None, :], id="a table"),
        pytest.param(good, {"s0": 1.0, "stranger": 2.0}, id="an unknown sensor"),
        pytest.param(good, {"s0": "high"}, id="a word in a mapping"),
        pytest.param(good, ["high", 1.0, 2.0, 3.0], id="a word in a list"),
        pytest.param(good, 5.0, id="a single number"),
    ]


@pytest.mark.parametrize(("time", "values"), wrong_ticks(panel_of(small_panel(3, 250, 4))))
def test_a_tick_that_is_refused_changes_nothing(fitted: ECAD, panel: Panel, time: Any, values: Any) -> None:
    running = fitted.stream()
    verdicts_of(running, panel[170:180])
    before = [array.copy() for array in arrays_of(running)]
    with pytest.raises(EcadError):
        running.update(time, values)
    assert running.time == panel.times[179]
    for array, old in zip(arrays_of(running), before):
        np.testing.assert_array_equal(array, old)
    report = fitted.detect(panel[170:])
    after = verdicts_of(running, panel[180:])
    np.testing.assert_array_equal([verdict.p_values for verdict in after], report.p_values[10:])


def test_an_infinite_reading_is_no_reading(fitted: ECAD, panel: Panel) -> None:
    row = panel.values[170].copy()
    row[0] = np.inf
    verdict = fitted.stream().update(panel.times[170], row)
    assert np.isnan(verdict.values[0]) and verdict.status[0] == "missing" and not verdict.alarms[0]


def test_a_verdict_does_not_change_when_the_caller_reuses_the_row(fitted: ECAD, panel: Panel) -> None:
    running, row = fitted.stream(), panel.values[170].copy()
    verdict = running.update(panel.times[170], row)
    before, p_values = row.copy(), verdict.p_values.copy()
    row[:] = -1
    running.update(panel.times[171], row)
    np.testing.assert_array_equal(verdict.values, before)
    np.testing.assert_array_equal(verdict.p_values, p_values)


def test_records_are_ready_for_json_and_unknown_is_none(fitted: ECAD, panel: Panel) -> None:
    row = panel.values[170].copy()
    row[1] = NAN
    records = fitted.stream().update(panel.times[170], row).to_records()
    assert [record["sensor"] for record in records] == list(panel.sensors)
    assert list(records[0]) == [
        "time", "sensor", "value", "expected", "lower", "upper", "score", "p_value", "strength", "alarm", "status",
    ]  # fmt: skip
    assert (
        records[1]["p_value"] is None and records[1]["status"] == "missing" and records[1]["alarm"] is False
    )
    assert records[0]["time"] == "2025-01-13T02:00:00" and type(records[0]["p_value"]) is float


# -- memory ------------------------------------------------------------------------------------------------------------


def test_streams_of_one_detector_do_not_touch_each_other_or_the_detector(fitted: ECAD, panel: Panel) -> None:
    report = fitted.detect(panel[170:])
    one, other = fitted.stream(), fitted.stream()
    verdicts_of(one, panel[170:240])
    p_values = [verdict.p_values for verdict in verdicts_of(other, panel[170:])]
    np.testing.assert_array_equal(p_values, report.p_values)
    np.testing.assert_array_equal(fitted.detect(panel[170:]).p_values, report.p_values)


@pytest.mark.parametrize(
    ("settings", "n_ticks"),
    [
        ({"half_life": 100.0}, 20_000),
        ({"score": "studentised", "pool": "network", "alpha": 0.1}, 2_500),
        ({"reference": "seasonal", "impute": "seasonal", "alpha": 0.1}, 2_500),
        ({"reference": "local", "local": "or", "centre": "quantile", "alpha": 0.1}, 2_500),
    ],
    ids=["window", "pool", "seasonal", "local"],
)
def test_memory_does_not_grow(panel: Panel, settings: dict[str, Any], n_ticks: int) -> None:
    running = quick(**{"n_members": 4, **settings}).fit(panel[:120]).stream()
    rows = panel.values[np.random.RandomState(0).randint(120, 180, 1000)]
    moments = panel.times[119] + np.arange(1, n_ticks + 1) * (panel.times[1] - panel.times[0])
    sizes, blocks = [], []
    for t in range(n_ticks):
        running.update(moments[t], rows[t % 1000])
        if (t + 1) % (n_ticks // 5) == 0:
            gc.collect()
            sizes.append([array.nbytes for array in arrays_of(running)])
            blocks.append(sys.getallocatedblocks())  # objects of any kind in the whole process
    assert all(size == sizes[0] for size in sizes)
    # what grows does so between any two moments; what is loaded or cached once, here or elsewhere, does not
    assert min(np.diff(blocks)) < n_ticks / 100


def test_a_stream_goes_on_after_a_save_and_a_load(fitted: ECAD, panel: Panel, tmp_path: Any) -> None:
    running = fitted.stream()
    verdicts_of(running, panel[170:200])
    ecad.save(running, tmp_path / "model.ecad")
    loaded = ecad.load(tmp_path / "model.ecad")
    for one, other in zip(verdicts_of(running, panel[200:]), verdicts_of(loaded, panel[200:])):
        for name in COLUMNS:
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
