"""Scores: the fast room against plain loops, and the local scale as a memory of the past only."""

from __future__ import annotations

import numpy as np
import pytest

import naive
from ecad import scores

NAN = np.nan


def residuals_with_holes(seed: int, n_times: int, n_sensors: int, holes: float = 0.2) -> np.ndarray:
    random = np.random.RandomState(seed)
    residuals = np.abs(random.standard_normal((n_times, n_sensors))) * random.uniform(0.1, 50, n_sensors)
    residuals[random.uniform(size=residuals.shape) < holes] = NAN
    return residuals


def naive_scales(
    residuals: np.ndarray, hours: np.ndarray | None, typical: np.ndarray, window: int
) -> np.ndarray:
    ticks = np.arange(len(residuals))
    return np.array(
        [
            [
                naive.local_scale(
                    residuals[:t, k],
                    ticks[:t],
                    None if hours is None else hours[:t],
                    t,
                    None if hours is None else hours[t],
                    typical[k],
                    window,
                )
                for k in range(residuals.shape[1])
            ]
            for t in range(len(residuals))
        ]
    )


@pytest.mark.parametrize("kind", ["absolute", "signed"])
def test_a_score_is_the_distance_from_the_centre_and_signed_keeps_its_sign(kind: str) -> None:
    random = np.random.RandomState(0)
    readings, centre = random.standard_normal((2, 30, 4))
    readings[random.uniform(size=readings.shape) < 0.2] = NAN
    expected = [[naive.score(kind, readings[t, k], centre[t, k]) for k in range(4)] for t in range(30)]
    np.testing.assert_array_equal(scores.residual_scores(readings, centre, kind), expected)


def test_an_unobserved_reading_and_an_unknown_centre_have_no_score() -> None:
    for kind in ("absolute", "signed", "studentised"):
        assert np.isnan(scores.residual_scores(np.array([NAN, 1.0]), np.array([1.0, NAN]), kind)).all()


@pytest.mark.parametrize(("ticks_per_day", "n_times"), [(24, 400), (48, 500), (4, 150), (1, 120)])
def test_the_local_scale_agrees_with_plain_loops(ticks_per_day: int, n_times: int) -> None:
    residuals = residuals_with_holes(ticks_per_day, n_times, 2)
    hours = (np.arange(n_times) % ticks_per_day * 24 // ticks_per_day).astype(np.int8)
    typical = np.array([naive.training_median(residuals[:, k], 1.0) for k in range(2)])
    memory = scores.empty_scale(2, ticks_per_day, typical)
    expected = naive_scales(residuals, hours, typical, 28 * ticks_per_day)
    np.testing.assert_allclose(memory.scales(residuals, hours), expected, rtol=1e-14)


def test_residuals_older_than_28_days_are_forgotten() -> None:
    n_times = 40 * 4
    hours = (np.arange(n_times) % 4 * 6).astype(np.int8)
    residuals = np.ones((n_times, 1))
    residuals[:60] = 1000.0
    memory = scores.empty_scale(1, 4, np.ones(1))
    scale = memory.scales(residuals, hours)
    np.testing.assert_allclose(scale, naive_scales(residuals, hours, np.ones(1), 28 * 4))
    assert scale[-1, 0] == 1.1 and scale[100, 0] > 500


def test_midnight_and_eleven_in_the_evening_are_neighbours_on_the_clock() -> None:
    hours = np.array([23] * 25 + [12] * 25 + [0], dtype=np.int8)
    residuals = np.array([[2.0]] * 25 + [[9.0]] * 25 + [[0.0]])
    memory = scores.empty_scale(1, 24, np.ones(1))
    assert memory.scales(residuals, hours)[-1, 0] == 2.0 + 0.1


def test_without_a_clock_every_past_residual_counts() -> None:
    residuals = residuals_with_holes(5, 200, 3)
    typical = np.array([1.0, 2.0, 3.0])
    memory = scores.empty_scale(3, None, typical)
    expected = naive_scales(residuals, None, typical, scores.UNCLOCKED_TICKS)
    np.testing.assert_allclose(memory.scales(residuals, None), expected, rtol=1e-14)


def test_until_twenty_residuals_are_known_the_scale_is_the_training_median() -> None:
    residuals = np.full((60, 1), 5.0)
    residuals[::2] = NAN
    scale = scores.empty_scale(1, None, np.array([3.0])).scales(residuals, None)[:, 0]
    assert (scale[:40] == 3.0).all() and (scale[40:] == 5.3).all()


def test_training_scores_are_studentised_by_the_rule_of_detection() -> None:
    residuals = residuals_with_holes(7, 300, 3, holes=0.3)
    hours = (np.arange(300) % 24).astype(np.int8)
    typical = np.array([naive.training_median(residuals[:, k], 1.0) for k in range(3)])
    fast = residuals / scores.empty_scale(3, 24, typical).scales(residuals, hours)
    for k in range(3):
        expected = naive.studentised_training_scores(residuals[:, k], np.arange(300), hours, 1.0)
        np.testing.assert_allclose(fast[:, k], expected, rtol=1e-12)


def test_no_scale_depends_on_its_own_or_a_later_residual() -> None:
    residuals = residuals_with_holes(3, 240, 2)
    hours = (np.arange(240) % 24).astype(np.int8)
    before = scores.empty_scale(2, 24, np.ones(2)).scales(residuals, hours)
    changed = residuals.copy()
    changed[150:] = 1e6
    after = scores.empty_scale(2, 24, np.ones(2)).scales(changed, hours)
    np.testing.assert_array_equal(before[:151], after[:151])
    assert (before[175:] != after[175:]).any()


@pytest.mark.parametrize("block", [1, 7, 100])
def test_blocks_of_any_length_give_the_same_scales(block: int) -> None:
    residuals = residuals_with_holes(11, 230, 3)
    hours = (np.arange(230) % 24).astype(np.int8)
    whole = scores.empty_scale(3, 24, np.ones(3)).scales(residuals, hours)
    memory = scores.empty_scale(3, 24, np.ones(3))
    parts = [memory.scales(residuals[a : a + block], hours[a : a + block]) for a in range(0, 230, block)]
    np.testing.assert_array_equal(np.concatenate(parts), whole)
