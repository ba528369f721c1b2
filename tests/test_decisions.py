"""Decisions: an alarm is exactly p <= alpha, or exactly the rule of Benjamini and Hochberg."""

from __future__ import annotations

import numpy as np
import pytest

import naive
from ecad import decisions

NAN = np.nan


def p_values(seed: int, n_times: int, n_sensors: int) -> np.ndarray:
    """Many ties, many small ones, holes, empty ticks."""
    random = np.random.RandomState(seed)
    p = np.ceil(random.uniform(size=(n_times, n_sensors)) ** 3 * 400) / 400
    p[random.uniform(size=p.shape) < 0.2] = NAN
    p[random.uniform(size=n_times) < 0.1] = NAN
    return p


def test_an_alarm_is_exactly_a_p_value_of_at_most_alpha() -> None:
    p = np.array([[0.0, 0.05, np.nextafter(0.05, 1), 0.5, 1.0, NAN]])
    assert decisions.fixed(p, 0.05).tolist() == [[True, True, False, False, False, False]]


@pytest.mark.parametrize("level", [0.01, 0.05, 0.1, 0.25, 0.5])
@pytest.mark.parametrize("n_sensors", [1, 2, 7, 40])
def test_benjamini_hochberg_agrees_with_plain_loops(n_sensors: int, level: float) -> None:
    p = p_values(n_sensors, 200, n_sensors)
    expected = np.array([naive.bh(row, level) for row in p])
    np.testing.assert_array_equal(decisions.benjamini_hochberg(p, level), expected)
    assert n_sensors == 1 or expected.any()


def test_one_small_p_value_may_take_larger_ones_along() -> None:
    p = np.array([[0.01, 0.03, 0.04, 0.9], [0.03, 0.9, 0.9, 0.9]])
    assert decisions.benjamini_hochberg(p, 0.06).tolist() == [[True, True, True, False], [False] * 4]


def test_what_has_no_p_value_neither_counts_nor_alarms() -> None:
    p = np.array([[0.04, NAN, NAN, NAN], [NAN] * 4])
    assert decisions.benjamini_hochberg(p, 0.05).tolist() == [[True, False, False, False], [False] * 4]
    assert not decisions.fixed(p[1:], 0.05).any()


def test_the_order_of_sensors_does_not_matter() -> None:
    p = p_values(3, 100, 9)
    order = np.random.RandomState(0).permutation(9)
    shuffled = decisions.benjamini_hochberg(p[:, order], 0.2)
    np.testing.assert_array_equal(shuffled, decisions.benjamini_hochberg(p, 0.2)[:, order])


def test_the_false_discovery_rate_of_independent_p_values_stays_below_the_level() -> None:
    random = np.random.RandomState(1)
    p = random.uniform(size=(4000, 20))
    p[:, :5] **= 8  # five sensors with something to find
    alarms = decisions.benjamini_hochberg(p, 0.2)
    false_share = alarms[:, 5:].sum(axis=1) / np.maximum(alarms.sum(axis=1), 1)
    assert 0.1 < false_share.mean() < 0.2 * 15 / 20 * 1.1


def test_p_values_on_the_line_alarm_whatever_the_rounding() -> None:
    """25 / 4000 is 0.01 * 15 / 24, and one rounding away from it as floating-point numbers."""
    p = np.concatenate([np.full(15, 25 / 4000), np.full(9, 0.9)])
    assert decisions.benjamini_hochberg(p[None], 0.01).sum() == 15
