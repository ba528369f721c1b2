"""Simulated networks: what is promised about readings, holes, anomalies and null data."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ecad.datasets import KINDS, Simulation, plant, simulate, simulate_null, with_holes
from ecad.errors import SettingError
from ecad.panel import Panel

COMPLETE = {"missing": 0.0, "anomalies": 0.0}


def values(**settings: object) -> np.ndarray:
    return simulate(**settings).panel.values  # type: ignore[arg-type]


def same(a: np.ndarray, b: np.ndarray) -> bool:
    return bool(np.array_equal(a, b, equal_nan=True))


def bare(panel: Panel) -> Panel:
    return replace(panel, positions=None, geometry=None, adjacency=None)


def lag_one(errors: np.ndarray) -> float:
    return float(np.mean([np.corrcoef(e[1:], e[:-1])[0, 1] for e in errors.T]))


# -- seeds -----------------------------------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_simulation() -> None:
    a, b = simulate(n_times=600, seed=7), simulate(n_times=600, seed=7)
    assert same(a.panel.values, b.panel.values)
    assert same(a.truth, b.truth)
    assert a.events == b.events


def test_another_seed_gives_another_simulation() -> None:
    assert not same(values(n_times=600, seed=7), values(n_times=600, seed=8))


def test_switching_anomalies_off_changes_no_other_reading() -> None:
    planted = simulate(n_times=1500, anomalies=0.05)
    without = values(n_times=1500, anomalies=0.0)
    changed = ~np.isclose(planted.panel.values, without, equal_nan=True)
    assert changed.any()
    assert not (changed & ~planted.truth).any()


def test_switching_holes_off_changes_no_reading() -> None:
    holed, complete = values(n_times=600, anomalies=0.0), values(n_times=600, **COMPLETE)
    assert np.isnan(holed).any()
    assert same(np.where(np.isnan(holed), np.nan, complete), holed)


def test_one_kind_of_hole_does_not_move_the_others() -> None:
    only, both = values(n_times=600, bursts=0.0, dead=0.0), values(n_times=600, bursts=0.1, dead=0.1)
    assert np.isnan(both[np.isnan(only)]).all()


# -- the panel -------------------------------------------------------------------------------------------------------


def test_a_simulation_is_a_panel_on_a_clock_with_places_and_roads() -> None:
    panel = simulate(n_sensors=12, n_times=50, step="5min", start="2025-03-01 06:00").panel
    assert panel.values.shape == (50, 12)
    assert panel.sensors[0] == "S01" and panel.sensors[-1] == "S12"
    assert panel.step == np.timedelta64(5, "m")
    assert panel.times[0] == np.datetime64("2025-03-01T06:00") and (np.diff(panel.times) == panel.step).all()
    assert panel.geometry == "lonlat" and panel.positions is not None and panel.positions.shape == (12, 2)
    assert panel.ticks_per_day == 288


@pytest.mark.parametrize("n", [2, 3, 4, 5, 20, 300])
def test_every_sensor_can_be_reached_on_the_roads(n: int) -> None:
    adjacency = simulate(n_sensors=n, n_times=1).panel.adjacency
    assert adjacency is not None
    a, b, length = adjacency
    assert (length > 0).all()
    reached = {0}
    for _ in range(n):
        reached |= {j for i, j in [*zip(a, b), *zip(b, a)] if i in reached}
    assert reached == set(range(n))


@pytest.mark.parametrize("n_sensors", [1, 2, 3, 5])
@pytest.mark.parametrize("n_times", [1, 2, 30])
@pytest.mark.parametrize("step", ["1s", "7min", "1h", "1D"])
def test_any_size_and_step_will_do(n_sensors: int, n_times: int, step: str) -> None:
    assert simulate(n_sensors, n_times, step).panel.values.shape == (n_times, n_sensors)


def test_ten_thousand_sensors_are_not_too_many() -> None:
    assert simulate(n_sensors=10_000, n_times=48).panel.n_sensors == 10_000


# -- traffic ---------------------------------------------------------------------------------------------------------


def test_flows_are_never_negative() -> None:
    assert values(n_times=2000, noise=0.8, missing=0.0).min() >= 0.0


def test_there_are_rush_hours_on_weekdays_and_none_on_sundays_and_holidays() -> None:
    quiet = simulate(n_times=24 * 28, start="2025-04-07", noise=0.0, weather=0.0, **COMPLETE).panel
    days = quiet.values.reshape(28, 24, -1)
    weekday, sunday, good_friday = days[0], days[6], days[11]
    assert (weekday[17] > 3 * weekday[3]).all()
    assert (sunday[8] < 0.6 * weekday[8]).all()
    assert same(good_friday, sunday)
    assert same(days[1], days[0])


def test_holidays_are_told_and_are_not_in_the_truth() -> None:
    made = simulate(n_times=24 * 28, start="2025-04-07", anomalies=0.0)
    days = made.holidays.reshape(28, 24)
    assert np.flatnonzero(days.all(axis=1)).tolist() == [11, 14, 24]
    assert made.holidays.sum() == 72 and not made.truth.any()
    assert not simulate(n_times=24 * 28, start="2025-04-07", holidays=()).holidays.any()
    assert not plant(made.panel).holidays.any()


def test_the_weather_lowers_the_flow_of_all_roads_at_once() -> None:
    dry, wet = (values(n_times=3000, noise=0.0, weather=w, **COMPLETE) for w in (0.0, 0.3))
    loss = 1.0 - wet / dry
    assert loss.min() > -0.02 and 0.1 < loss.max() <= 0.31
    assert np.corrcoef(loss.T).min() > 0.95


# -- null data -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def null_errors() -> np.ndarray:
    """Differences over a week: the profile goes, twice the variance of the errors is left."""
    readings = simulate_null(n_times=60_000, error_autocorrelation=0.9, noise=30.0, seed=2).values
    return (readings[168:] - readings[:-168]) / np.sqrt(2.0)


@pytest.mark.parametrize("autocorrelation", [0.0, 0.6, 0.9])
def test_null_errors_have_the_stated_autocorrelation(autocorrelation: float) -> None:
    readings = simulate_null(n_times=60_000, error_autocorrelation=autocorrelation, seed=1).values
    assert lag_one(readings[168:] - readings[:-168]) == pytest.approx(autocorrelation, abs=0.02)


def test_null_errors_have_one_spread_for_all_sensors_and_hours(null_errors: np.ndarray) -> None:
    assert null_errors.std(axis=0) == pytest.approx(30.0, rel=0.05)
    by_hour = null_errors[: len(null_errors) // 24 * 24].reshape(-1, 24, 10).std(axis=(0, 2))
    assert by_hour == pytest.approx(30.0, rel=0.06)


def test_null_errors_are_gaussian(null_errors: np.ndarray) -> None:
    z = null_errors / null_errors.std()
    assert np.mean(z**4) == pytest.approx(3.0, abs=0.15)
    assert np.mean(z**3) == pytest.approx(0.0, abs=0.1)


def test_null_errors_are_stationary_from_the_first_tick() -> None:
    first = [simulate_null(n_sensors=40, n_times=337, noise=1.0, seed=s).values for s in range(25)]
    spread = np.std([v[0] - v[168] for v in first])
    assert spread == pytest.approx(np.sqrt(2.0), rel=0.1)


def test_neighbours_have_more_of_their_errors_in_common(null_errors: np.ndarray) -> None:
    adjacency = simulate_null(n_times=1, seed=2).adjacency
    assert adjacency is not None
    correlation = np.corrcoef(null_errors.T)
    joined = np.zeros_like(correlation, dtype=bool)
    joined[adjacency[0], adjacency[1]] = joined[adjacency[1], adjacency[0]] = True
    apart = ~joined & ~np.eye(10, dtype=bool)
    assert correlation[joined].mean() > correlation[apart].mean() + 0.1
    alone = simulate_null(n_times=20_000, space_correlation=0.0).values
    assert abs(np.corrcoef((alone[168:] - alone[:-168]).T) - np.eye(10)).max() < 0.06


def test_null_data_are_not_clipped() -> None:
    assert simulate_null(noise=400.0).values.min() < 0.0


def test_null_data_hold_the_share_of_holes_asked_for() -> None:
    assert np.isnan(simulate_null(missing=0.4).values).mean() == pytest.approx(0.4, abs=0.01)


# -- holes -----------------------------------------------------------------------------------------------------------


def test_holes_come_in_the_shares_asked_for() -> None:
    panel = simulate(n_sensors=40, n_times=3000, **COMPLETE).panel
    assert np.isnan(with_holes(panel, 0.3).values).mean() == pytest.approx(0.3, abs=0.01)
    assert np.isnan(with_holes(panel, 0.0, bursts=0.1).values).mean() == pytest.approx(0.095, abs=0.01)


def test_bursts_last_three_steps_or_more() -> None:
    hole = np.isnan(with_holes(simulate(**COMPLETE).panel, 0.0, bursts=0.02).values)
    edges = np.diff(np.pad(hole, ((1, 1), (0, 0))).astype(int), axis=0)
    for k in range(hole.shape[1]):
        lengths = np.flatnonzero(edges[:, k] < 0) - np.flatnonzero(edges[:, k] > 0)
        assert (lengths >= 3).all()


def test_a_dead_sensor_never_comes_back() -> None:
    hole = np.isnan(with_holes(simulate(**COMPLETE).panel, 0.0, dead=0.25).values)
    silent = hole.any(axis=0)
    assert silent.sum() == 5
    assert hole[-1, silent].all()
    assert (np.diff(hole.astype(int), axis=0) >= 0).all()


def test_with_holes_leaves_its_panel_alone() -> None:
    panel = simulate(n_times=100, **COMPLETE).panel
    before = panel.values.copy()
    with_holes(panel, 0.5)
    assert same(panel.values, before)


# -- anomalies -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def many() -> tuple[Simulation, np.ndarray]:
    """A simulation full of events, and its readings without them."""
    return simulate(n_times=6000, anomalies=0.05, missing=0.0), values(n_times=6000, **COMPLETE)


def planted(
    simulation: Simulation, clean: np.ndarray, kind: str
) -> list[tuple[float, np.ndarray, np.ndarray]]:
    """Size, readings and what they were before, of each event of a kind (time, sensor)."""
    panel, found = simulation.panel, []
    for event in simulation.events:
        first, last = np.searchsorted(panel.times, np.array([event.start, event.end]))
        columns = [panel.sensors.index(name) for name in event.sensors]
        if event.kind == kind:
            rows = slice(first, last + 1)
            found.append((event.size, panel.values[rows][:, columns], clean[rows][:, columns]))
    assert found
    return found


def test_the_share_of_anomalies_is_the_one_asked_for() -> None:
    for share in (0.002, 0.01, 0.1):
        made = simulate(anomalies=share)
        assert made.truth.sum() / made.panel.observed.sum() == pytest.approx(share, rel=0.05)


def test_no_anomalies_means_none() -> None:
    made = simulate(n_times=500, anomalies=0.0)
    assert made.events == () and not made.truth.any() and not made.event_numbers.any()


def test_all_kinds_take_turns(many: tuple[Simulation, np.ndarray]) -> None:
    counts = {kind: sum(event.kind == kind for event in many[0].events) for kind in KINDS}
    assert 0 < max(counts.values()) <= 1.5 * min(counts.values())


def test_only_the_kinds_asked_for_are_planted() -> None:
    assert {event.kind for event in simulate(kinds=["stuck", "unit"]).events} == {"stuck", "unit"}


def test_events_last_from_one_to_twenty_four_steps(many: tuple[Simulation, np.ndarray]) -> None:
    lengths = {int((event.end - event.start) / np.timedelta64(1, "h")) + 1 for event in many[0].events}
    assert min(lengths) == 1 and max(lengths) <= 24 and len(lengths) > 12


def test_events_of_a_sensor_do_not_touch(many: tuple[Simulation, np.ndarray]) -> None:
    numbers = many[0].event_numbers
    for k in range(numbers.shape[1]):
        t = np.flatnonzero(numbers[:, k])
        changes = np.flatnonzero(np.diff(numbers[t, k]))
        assert (t[changes + 1] - t[changes] > 3).all()


def test_the_truth_is_false_in_holes() -> None:
    made = simulate(missing=0.5, anomalies=0.05)
    assert not made.truth[~made.panel.observed].any()


def test_event_numbers_cover_the_truth_and_nothing_else(many: tuple[Simulation, np.ndarray]) -> None:
    made = many[0]
    assert same(made.event_numbers > 0, made.truth)
    assert set(np.unique(made.event_numbers)) == set(range(len(made.events) + 1))


def test_clean_until_keeps_the_beginning_clean() -> None:
    made = simulate(anomalies=0.02, clean_until=0.5, missing=0.0)
    assert not made.truth[:2190].any()
    assert made.truth[2190:].mean() == pytest.approx(0.02, rel=0.03)


@pytest.mark.parametrize("kind", ["drop", "region"])
def test_drops_and_regions_take_their_share_of_the_flow(
    many: tuple[Simulation, np.ndarray], kind: str
) -> None:
    for size, after, before in planted(*many, kind):
        assert after == pytest.approx(before * (1 - size), abs=0.06)


def test_surges_add_their_share(many: tuple[Simulation, np.ndarray]) -> None:
    for size, after, before in planted(*many, "surge"):
        assert after == pytest.approx(before * (1 + size), abs=0.06)


def test_a_stuck_sensor_repeats_its_last_reading(many: tuple[Simulation, np.ndarray]) -> None:
    made, clean = many
    for event in made.events:
        if event.kind == "stuck":
            first = int(np.searchsorted(made.panel.times, event.start))
            column = made.panel.sensors.index(event.sensors[0])
            assert event.size == clean[first - 1, column]
    assert all((after == size).all() for size, after, _ in planted(*many, "stuck"))


def test_zeros_are_zero(many: tuple[Simulation, np.ndarray]) -> None:
    assert all((after == 0.0).all() for _, after, _ in planted(*many, "zeros"))


def test_a_drift_grows_evenly_to_its_size(many: tuple[Simulation, np.ndarray]) -> None:
    for size, after, before in planted(*many, "drift"):
        gain = 1 + size * np.arange(1, len(before) + 1)[:, None] / len(before)
        assert after == pytest.approx(before * gain, abs=0.06)


def test_a_shift_shows_the_readings_of_before(many: tuple[Simulation, np.ndarray]) -> None:
    made, clean = many
    for event in made.events:
        if event.kind == "shift":
            first, last = np.searchsorted(made.panel.times, np.array([event.start, event.end]))
            column = made.panel.sensors.index(event.sensors[0])
            late = clean[first - int(event.size) : last + 1 - int(event.size), column]
            assert same(made.panel.values[first : last + 1, column], late)


def test_a_unit_error_is_a_factor(many: tuple[Simulation, np.ndarray]) -> None:
    for size, after, before in planted(*many, "unit"):
        assert after == pytest.approx(before * size, abs=0.06)


def test_a_region_is_a_connected_neighbourhood(many: tuple[Simulation, np.ndarray]) -> None:
    made = many[0]
    assert made.panel.adjacency is not None
    a, b, _ = made.panel.adjacency
    for event in made.events:
        if event.kind == "region":
            inside = {made.panel.sensors.index(name) for name in event.sensors}
            assert 3 <= len(inside) <= 8
            reached = {min(inside)}
            for _ in inside:
                reached |= {j for i, j in [*zip(a, b), *zip(b, a)] if i in reached and j in inside}
            assert reached == inside


def test_the_effect_is_the_largest_change_of_a_reading(many: tuple[Simulation, np.ndarray]) -> None:
    made, clean = many
    change = np.abs(made.panel.values - clean)
    largest = [change[made.event_numbers == number].max() for number in range(1, len(made.events) + 1)]
    assert [event.effect for event in made.events] == pytest.approx(largest, abs=1e-3)


def test_anomalies_can_be_planted_in_readings_with_holes_of_ones_own() -> None:
    own = simulate_null(n_times=2000, missing=0.3, noise=5.0)
    made = plant(own, 0.02, seed=3)
    assert same(made.panel.observed, own.observed)
    assert made.truth.sum() == pytest.approx(0.02 * own.observed.sum(), rel=0.05)
    kept = own.observed & ~made.truth
    assert same(made.panel.values[kept], own.values[kept])


def test_a_region_is_found_by_positions_where_there_are_no_roads() -> None:
    own = replace(simulate_null(n_times=800), adjacency=None)
    assert all(len(event.sensors) >= 3 for event in plant(own, 0.05, ["region"]).events)


# -- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"n_sensors": 0}, "n_sensors=0"),
        ({"n_sensors": 10_001}, "n_sensors=10001"),
        ({"n_times": 0}, "n_times=0"),
        ({"step": "soon"}, "step='soon'"),
        ({"step": "0h"}, "step='0h'"),
        ({"start": "yesterday"}, "start='yesterday'"),
        ({"missing": 1.5}, "missing=1.5"),
        ({"bursts": -0.1}, "bursts=-0.1"),
        ({"dead": 2}, "dead=2"),
        ({"anomalies": 0.5}, "anomalies=0.5"),
        ({"kinds": ["flood"]}, "'flood'"),
        ({"kinds": "drop"}, "kinds='drop'"),
        ({"kinds": []}, "kinds="),
        ({"clean_until": 1.2}, "clean_until=1.2"),
        ({"error_autocorrelation": 1.0}, "error_autocorrelation=1.0"),
        ({"space_correlation": -1.0}, "space_correlation=-1.0"),
        ({"weather": 3.0}, "weather=3.0"),
        ({"noise": -1.0}, "noise=-1.0"),
        ({"holidays": ["Easter"]}, "'Easter'"),
    ],
)
def test_an_impossible_setting_is_named(settings: dict[str, object], named: str) -> None:
    with pytest.raises(SettingError, match=named):
        simulate(**{"n_sensors": 3, "n_times": 50, **settings})  # type: ignore[arg-type]


def test_a_region_needs_a_geography() -> None:
    with pytest.raises(SettingError, match="region"):
        plant(bare(simulate_null(n_times=100)))
