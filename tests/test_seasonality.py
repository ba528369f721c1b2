"""Usual levels and spreads: the fast tables against the plain loops."""

from __future__ import annotations

import math

import numpy as np
import pytest

import naive
import panels
from ecad import seasonality

NAN = math.nan
HOUR, DAY, WEEK = 3600, 86_400, 604_800


def close(fast: np.ndarray, plain: np.ndarray, unit: np.ndarray | float = 1.0) -> bool:
    """Within 1e-9 of the unit, NaN in the same places."""
    return bool(np.allclose(fast / unit, plain / unit, rtol=0, atol=1e-9, equal_nan=True))


def odd_values(n_times: int) -> np.ndarray:
    """Readings of a constant, a mostly equal, an absent and a once observed sensor."""
    values = np.full((n_times, 4), NAN)
    values[:, 0] = 0.1
    values[:, 1] = 5.0
    values[::9, 1] = 9.0
    values[3, 3] = -2.0
    return values


def seconds_of(n_times: int, step: int, start: int = 0) -> np.ndarray:
    return (start + np.arange(n_times) * step) % WEEK


@pytest.mark.parametrize("small", panels.small_panels(6), ids=lambda small: f"seed{small.seed}")
def test_centre_is_the_median_scale_the_mad_and_spread_the_deviation(small: panels.SmallPanel) -> None:
    fast, plain = seasonality.scale_of(small.values), naive.scale_of(small.values)
    for one, other in zip(fast, plain, strict=True):
        assert close(one, other, plain[2])


def test_a_sensor_without_spread_is_measured_by_the_next_coarser_unit() -> None:
    fast, plain = seasonality.scale_of(odd_values(40)), naive.scale_of(odd_values(40))
    for one, other in zip(fast, plain, strict=True):
        assert one.tolist() == pytest.approx(other.tolist())
    assert fast[1][[0, 2, 3]].tolist() == [1, 1, 2]


def test_a_sensor_that_moves_little_beside_its_level_is_not_constant() -> None:
    values = 1e12 + np.random.default_rng(0).normal(size=(200, 1))
    assert 0.8 < seasonality.scale_of(values)[2][0] < 1.2


def test_a_constant_sensor_has_no_spread_whatever_the_rounding_of_its_mean() -> None:
    for value in (0.1, 1e6 / 3, -7e-5, 1e12 / 7):
        values = np.full((1001, 1), value)
        assert np.ravel(seasonality.scale_of(values)).tolist() == np.ravel(naive.scale_of(values)).tolist()


@pytest.mark.parametrize("step", [300, HOUR, 6 * HOUR, DAY])
def test_the_season_is_chosen_by_how_long_training_lasted(step: int) -> None:
    for span in (1, 2 * DAY, 3 * DAY, 3 * DAY + 1, 3 * WEEK - 1, 3 * WEEK, 3 * WEEK + 1):
        for n_times in (span // step, -(-span // step)):
            assert seasonality.choose_period(n_times * step, "auto") == naive.season_of(n_times, step)
    assert seasonality.choose_period(1, "week") == "week"
    assert seasonality.choose_period(99 * WEEK, None) is None


@pytest.mark.parametrize("step", [300, HOUR, 5400, 5 * HOUR, 6 * HOUR, DAY, 2 * DAY])
@pytest.mark.parametrize("period", ["day", "week"])
def test_a_phase_is_a_bin_of_the_day_or_week_at_least_an_hour_wide(step: int, period: str) -> None:
    seconds = seconds_of(3000, step)
    fast = seasonality.phase_of(seconds, naive.phase_width(step), period)
    assert fast.tolist() == naive.phase_of(seconds, step, period).tolist()


def test_training_is_cut_into_equal_folds_and_what_is_later_is_one_more() -> None:
    for n_times in (1, 4, 24, 25, 26, 97, 1000):
        ticks = np.arange(n_times + 3)
        fast = seasonality.fold_of(ticks, n_times).tolist()
        assert fast == [naive.fold_of(t, n_times) for t in ticks]


def both_tables(
    values: np.ndarray, seconds: np.ndarray, step: int, period: str
) -> tuple[seasonality.Season, np.ndarray, np.ndarray, np.ndarray]:
    centre, scale, spread = naive.scale_of(values)
    fast = seasonality.fit_season(values, seconds, step, period, centre, scale)
    phase = naive.phase_of(seconds, step, period)
    hours = naive.hour_of_phase(step, period)
    level, width = naive.seasonal_tables_crossfit(
        values, phase, hours, period, scale, centre, naive.phase_width(step)
    )
    return fast, level, width, spread


@pytest.mark.parametrize(
    ("period", "step", "n_times", "start"),
    [
        ("day", HOUR, 150, 0),
        ("day", HOUR, 73, 5 * DAY + 7 * HOUR),
        ("day", 900, 200, 0),
        ("day", 5 * HOUR, 90, 0),
        ("week", 4 * HOUR, 130, 3 * DAY),
        ("week", 6 * HOUR, 90, 0),
        ("week", 5 * HOUR, 100, 0),  # a width that does not divide a day
        ("week", DAY, 40, 0),
        ("week", 2 * DAY, 30, 0),
        ("week", 8 * DAY, 30, 0),
        ("week", 6 * HOUR, 20, 0),  # too short: most phases have one reading or none
    ],
)
def test_tables_are_medians_of_phases_drawn_towards_those_of_hours_and_of_all(
    period: str, step: int, n_times: int, start: int
) -> None:
    small = panels.small_panel(n_times + step, n_times, 2, step_seconds=step)
    values = np.hstack([small.values, odd_values(n_times)])
    fast, level, width, spread = both_tables(values, seconds_of(n_times, step, start), step, period)
    assert close(fast.level.transpose(0, 2, 1), level.transpose(0, 2, 1), spread)
    assert close(fast.spread.transpose(0, 2, 1), width.transpose(0, 2, 1), spread)


def test_hours_of_a_week_have_tables_of_their_own() -> None:
    small = panels.small_panel(4, 400, 1, dead=False)
    fast, level, width, spread = both_tables(small.values, small.week_seconds, HOUR, "week")
    assert fast.level.shape == (26, 1, 168)
    assert close(fast.level, level, spread) and close(fast.spread, width, spread)


def test_training_reads_the_table_of_its_fold_and_detection_that_of_all() -> None:
    small = panels.small_panel(3, 200, 4)
    fast, level, width, _ = both_tables(small.values[:150], small.week_seconds[:150], HOUR, "day")
    phase = naive.phase_of(small.week_seconds, HOUR, "day")
    at_level, at_spread = fast.at(np.arange(200), small.week_seconds)
    assert close(at_level, naive.at_times(level, phase, 150))
    assert close(at_spread, naive.at_times(width, phase, 150))


def test_a_training_reading_does_not_help_to_draw_its_own_level(monkeypatch: pytest.MonkeyPatch) -> None:
    # how far levels are drawn is the one choice that all readings make together
    monkeypatch.setattr(seasonality, "WEIGHTS", (4.0,))
    small = panels.small_panel(8, 200, 3, dead=False)
    centre, scale, _ = seasonality.scale_of(small.values)

    def levels(values: np.ndarray) -> np.ndarray:
        season = seasonality.fit_season(values, small.week_seconds, HOUR, "day", centre, scale)
        return season.at(np.arange(len(values)), small.week_seconds)[0]

    before = levels(small.values)
    moved = False
    for t, k in ((0, 0), (7, 1), (8, 2), (111, 0), (199, 1)):
        changed = small.values.copy()
        changed[t, k] = 1e6
        after = levels(changed)
        own_fold = seasonality.fold_of(np.arange(200), 200) == seasonality.fold_of(np.array([t]), 200)
        assert 8 <= own_fold.sum() < 10
        assert np.array_equal(after[own_fold], before[own_fold])
        moved |= not np.array_equal(after, before)
    assert moved


def test_how_far_levels_are_drawn_is_learned_sensor_by_sensor() -> None:
    random = np.random.RandomState(0)
    seconds = seconds_of(24 * 70, HOUR)
    wave = 10 * np.sin(2 * np.pi * seconds / DAY)
    values = np.column_stack([wave, np.zeros_like(wave)]) + random.normal(size=(len(wave), 2))
    centre, scale, _ = seasonality.scale_of(values)
    season = seasonality.fit_season(values, seconds, HOUR, "week", centre, scale)
    later = season.after_training().level[0]
    assert np.abs(later[0] - wave[:168]).max() < 0.6  # ten readings stand behind an hour's median
    assert np.abs(later[1]).max() < 0.2  # and no hours where there are none


def test_once_training_is_over_the_table_of_all_is_enough() -> None:
    small = panels.small_panel(3, 200, 4)
    fast, *_ = both_tables(small.values[:150], small.week_seconds[:150], HOUR, "day")
    later = fast.after_training()
    assert later.level.shape == (1, *fast.level.shape[1:])
    for one, other in zip(
        later.at(np.arange(150, 200), small.week_seconds[150:]),
        fast.at(np.arange(150, 200), small.week_seconds[150:]),
        strict=True,
    ):
        assert np.array_equal(one, other)
