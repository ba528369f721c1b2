"""Alarms against the truth, ranking, and false-alarm ratios: counted by hand, by loops and by scikit-learn."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, f1_score, precision_score, recall_score

from ecad.errors import SettingError
from ecad.metrics import achievable, average_precision, false_alarm_ratio, score_alarms

TRUTH = np.array([[0, 0], [1, 0], [1, 1], [0, 1], [0, 0], [1, 0]], dtype=bool)
ALARMS = np.array([[0, 1], [0, 0], [1, 0], [0, 1], [0, 0], [0, 0]], dtype=bool)


def drawn(seed: int, shape: tuple[int, int] = (60, 5)) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.random(shape) < 0.2, rng.random(shape) < 0.3, rng.random(shape) < 0.8


def events_by_loop(alarms: np.ndarray, truth: np.ndarray, seen: np.ndarray) -> tuple[int, int, list[int]]:
    n_events, delays = 0, []
    for k in range(truth.shape[1]):
        begin, delay, before = 0, None, False
        for t in [t for t in range(len(truth)) if seen[t, k]]:
            if truth[t, k] and not before:
                n_events, begin, delay = n_events + 1, t, None
            if truth[t, k] and alarms[t, k] and delay is None:
                delay = t - begin
                delays.append(delay)
            before = truth[t, k]
    return n_events, len(delays), delays


# -- alarms ----------------------------------------------------------------------------------------------------------


def test_a_small_network_is_counted_as_by_hand() -> None:
    score = score_alarms(ALARMS, TRUTH)
    assert (score.n_readings, score.n_true, score.n_alarms, score.n_hits) == (12, 5, 3, 2)
    assert (score.precision, score.recall, score.flagged) == (2 / 3, 2 / 5, 3 / 12)
    assert score.f1 == pytest.approx(0.5)
    assert (score.n_events, score.n_found, score.events_found) == (3, 2, 2 / 3)
    assert score.delay == 1.0


def test_each_sensor_is_counted_apart() -> None:
    first, second = score_alarms(ALARMS, TRUTH).sensors
    assert (first.n_hits, first.n_true, first.n_alarms, first.n_events, first.n_found) == (1, 3, 1, 2, 1)
    assert (second.n_hits, second.n_true, second.n_alarms, second.n_events, second.n_found) == (1, 2, 2, 1, 1)
    assert (first.precision, second.precision) == (1.0, 0.5)


@pytest.mark.parametrize("seed", range(5))
def test_precision_recall_and_f1_are_those_of_scikit_learn(seed: int) -> None:
    alarms, truth, seen = drawn(seed)
    score = score_alarms(alarms, truth, seen)
    assert score.precision == pytest.approx(precision_score(truth[seen], alarms[seen]))
    assert score.recall == pytest.approx(recall_score(truth[seen], alarms[seen]))
    assert score.f1 == pytest.approx(f1_score(truth[seen], alarms[seen]))


@pytest.mark.parametrize("seed", range(5))
def test_events_and_delays_are_those_of_a_loop(seed: int) -> None:
    alarms, truth, seen = drawn(seed)
    score = score_alarms(alarms, truth, seen)
    n_events, n_found, delays = events_by_loop(alarms, truth, seen)
    assert (score.n_events, score.n_found) == (n_events, n_found)
    assert score.delay == pytest.approx(np.mean(delays))


def test_readings_that_were_not_observed_count_nowhere() -> None:
    alarms, truth, seen = drawn(1)
    score = score_alarms(alarms, truth, seen)
    assert score == score_alarms(alarms ^ ~seen, truth ^ ~seen, seen)
    assert score.n_readings == seen.sum()


def test_a_hole_does_not_break_an_event() -> None:
    truth = np.array([[1], [0], [1]], dtype=bool)
    seen = np.array([[1], [0], [1]], dtype=bool)
    assert score_alarms(truth, truth, seen).n_events == 1
    assert score_alarms(truth, truth).n_events == 2


def test_a_numbered_event_is_found_by_one_alarm_anywhere_in_it() -> None:
    numbers = np.array([[1, 1], [1, 1], [0, 0], [2, 0]])
    alarms = np.zeros((4, 2), dtype=bool)
    alarms[1, 1] = True
    score = score_alarms(alarms, numbers > 0, event_numbers=numbers)
    assert (score.n_events, score.n_found, score.delay) == (2, 1, 1.0)


def test_a_share_of_nothing_is_nan() -> None:
    nothing = np.zeros((3, 2), dtype=bool)
    score = score_alarms(nothing, nothing)
    shares = (score.precision, score.recall, score.f1, score.delay, score.events_found)
    assert all(math.isnan(share) for share in shares)
    assert score.flagged == 0.0
    assert math.isnan(score_alarms(nothing, nothing, nothing).flagged)


def test_arrays_of_different_shapes_are_refused() -> None:
    with pytest.raises(SettingError, match=r"\(6, 1\)"):
        score_alarms(ALARMS, TRUTH[:, :1])
    with pytest.raises(SettingError, match="1 axes"):
        score_alarms(ALARMS[:, 0], TRUTH[:, 0])


# -- ranking ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("digits", [0, 1, 8])
def test_average_precision_is_that_of_scikit_learn_also_with_ties(digits: int) -> None:
    rng = np.random.default_rng(digits)
    truth = rng.random((200, 3)) < 0.1
    strength = np.round(rng.standard_normal((200, 3)) + truth, digits)
    assert average_precision(strength, truth) == pytest.approx(
        average_precision_score(truth.ravel(), strength.ravel())
    )


def test_average_precision_leaves_out_what_has_no_strength_or_was_not_observed() -> None:
    strength, truth = np.array([3.0, np.nan, 2.0, 1.0]), np.array([False, True, True, True])
    assert average_precision(strength, truth, [True, True, True, False]) == 0.5


def test_average_precision_of_no_anomaly_is_nan() -> None:
    assert math.isnan(average_precision([1.0, 2.0], [False, False]))


# -- false alarms ----------------------------------------------------------------------------------------------------


def test_the_false_alarm_ratio_is_the_share_over_the_level() -> None:
    p = np.array([[0.01, 0.02, np.nan], [0.05, 0.5, 1.0]])
    one, five, half = false_alarm_ratio(p, (0.01, 0.05, 0.5))
    assert (one.level, one.n_alarms, one.n_readings) == (0.01, 1, 5)
    assert (one.ratio, five.ratio, half.ratio) == pytest.approx((20.0, 12.0, 1.6))


def test_excluded_readings_and_nan_count_nowhere() -> None:
    p = np.array([0.001, 0.2, np.nan, 0.9])
    (score,) = false_alarm_ratio(p, [0.1], exclude=[True, False, False, False])
    assert (score.ratio, score.n_alarms, score.n_readings) == (0.0, 0, 2)


def test_the_ratio_of_no_reading_is_nan() -> None:
    assert math.isnan(false_alarm_ratio(np.array([np.nan]))[0].ratio)


def test_the_ratio_of_uniform_p_values_is_about_one() -> None:
    p = np.random.default_rng(0).random(400_000)
    assert [score.ratio for score in false_alarm_ratio(p)] == pytest.approx([1.0, 1.0, 1.0], abs=0.05)


@pytest.mark.parametrize("alpha", [0.01, 0.05, 0.1])
def test_the_achievable_level_is_the_largest_p_value_up_to_alpha(alpha: float) -> None:
    for n in range(1, 500):
        attainable = [m / (n + 1) for m in range(n + 2) if m / (n + 1) <= alpha]
        assert achievable(alpha, n) == max(attainable)


def test_the_paper_s_local_window_cannot_reach_one_percent() -> None:
    assert achievable(0.01, 25) == 0.0
    assert achievable(0.05, 25) == 1 / 26
