"""Who counts as whose neighbour: the fast orders against the plain loops."""

from __future__ import annotations

import numpy as np
import pytest

import naive
import panels
from ecad import neighbourhood


def plain_order(positions: np.ndarray, geometry: str) -> np.ndarray:
    return naive.order_of_neighbours(positions, geometry, None, np.zeros((1, len(positions))))


def by_path(n_sensors: int, edges: tuple[np.ndarray, np.ndarray, np.ndarray], n_nearest: int) -> np.ndarray:
    return neighbourhood.order_by_path(n_sensors, *edges, n_nearest)


def plain_paths(n_sensors: int, edges: tuple[np.ndarray, np.ndarray, np.ndarray]) -> np.ndarray:
    return naive.order_of_neighbours(None, None, edges, np.zeros((1, n_sensors)))


def edges_of(*edges: tuple[int, int, float]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    a, b, weight = zip(*edges, strict=True)
    return np.array(a), np.array(b), np.array(weight, dtype=float)


@pytest.mark.parametrize("geometry", ["lonlat", "xy"])
@pytest.mark.parametrize("n_sensors", [1, 2, 7, 40])
def test_positions_are_ordered_by_great_circle_or_plain_distance(geometry: str, n_sensors: int) -> None:
    random = np.random.RandomState(n_sensors)
    wide = np.array([360.0, 170.0]) if geometry == "lonlat" else np.array([9.0, 9.0])
    positions = (random.uniform(size=(n_sensors, 2)) - 0.5) * wide
    plain = plain_order(positions, geometry)
    for n_nearest in {1, min(3, n_sensors), n_sensors}:
        fast = neighbourhood.order_by_position(positions, geometry, n_nearest)
        assert fast.tolist() == plain[:, :n_nearest].tolist()


@pytest.mark.parametrize("geometry", ["lonlat", "xy"])
def test_sensors_around_the_date_line_and_the_pole_are_near_on_the_globe_only(geometry: str) -> None:
    positions = np.array([[179.0, 0.0], [170.0, 0.0], [-179.0, 0.0], [0.0, 89.0], [180.0, 89.0], [0.0, 60.0]])
    assert (
        neighbourhood.order_by_position(positions, geometry, 6).tolist()
        == plain_order(positions, geometry).tolist()
    )


@pytest.mark.parametrize("n_nearest", [1, 2, 4, 5, 9, 36])
@pytest.mark.parametrize(
    ("geometry", "corner", "spacing"),
    [("xy", (0, 0), (0.1, 0.3)), ("xy", (4e5, 5.7e6), (100, 100)), ("lonlat", (7.6, 52), (0.01, 0.01))],
)
def test_on_a_grid_ties_go_to_the_sensor_that_stands_first_also_at_the_last_place(
    geometry: str, corner: tuple[float, float], spacing: tuple[float, float], n_nearest: int
) -> None:
    grid = np.array([[x * spacing[0], y * spacing[1]] for x in range(6) for y in range(6)]) + corner
    fast = neighbourhood.order_by_position(grid, geometry, n_nearest)
    assert fast.tolist() == plain_order(grid, geometry)[:, :n_nearest].tolist()


@pytest.mark.parametrize("geometry", ["lonlat", "xy"])
@pytest.mark.parametrize("n_nearest", [1, 5, 60])
def test_many_sensors_at_one_place_are_each_their_own_nearest(geometry: str, n_nearest: int) -> None:
    positions = np.full((60, 2), 7.5)
    positions[50:] += 0.1
    fast = neighbourhood.order_by_position(positions, geometry, n_nearest)
    assert fast.tolist() == plain_order(positions, geometry)[:, :n_nearest].tolist()


@pytest.mark.parametrize("seed", range(4))
def test_an_adjacency_is_ordered_by_its_shortest_paths(seed: int) -> None:
    random = np.random.RandomState(seed)
    pairs = sorted({(min(a, b), max(a, b)) for a, b in random.randint(0, 30, (40, 2)) if a != b})
    weights = random.randint(1, 4, len(pairs)) if seed % 2 else random.uniform(0.5, 3, len(pairs))
    edges = edges_of(*((b, a, w) if w > 1.5 else (a, b, w) for (a, b), w in zip(pairs, weights, strict=True)))
    plain = plain_paths(30, edges)
    for n_nearest in (1, 4, 30):
        assert by_path(30, edges, n_nearest).tolist() == plain[:, :n_nearest].tolist()


def test_the_unreachable_come_last_in_the_order_of_the_panel() -> None:
    edges = edges_of((4, 3, 1.0), (3, 0, 1.0), (1, 2, 1.0))
    assert by_path(6, edges, 6).tolist() == plain_paths(6, edges).tolist()
    assert by_path(6, edges, 6)[4].tolist() == [4, 3, 0, 1, 2, 5]
    assert by_path(6, edges, 6)[5].tolist() == [5, 0, 1, 2, 3, 4]


def test_sensors_at_distance_zero_tie_however_many_edges_lie_between() -> None:
    edges = edges_of((5, 4, 0.0), (4, 3, 0.0), (3, 2, 0.0), (2, 1, 1.0), (1, 0, 0.0))
    assert by_path(6, edges, 6).tolist() == plain_paths(6, edges).tolist()
    assert by_path(6, edges, 3)[5].tolist() == [5, 2, 3]


def test_paths_that_differ_by_rounding_only_are_ties_also_at_the_last_place() -> None:
    edges = edges_of((0, 2, 0.1), (2, 3, 0.2), (3, 1, 0.3), (0, 4, 0.3), (0, 5, 0.6))
    # from 0: 1 lies 0.1 + 0.2 + 0.3 away, a hair more than 5; 3 a hair more than 4
    for n_nearest in range(1, 7):
        assert by_path(6, edges, n_nearest)[0].tolist() == [0, 2, 3, 4, 1, 5][:n_nearest]
        assert by_path(6, edges, n_nearest).tolist() == plain_paths(6, edges)[:, :n_nearest].tolist()


@pytest.mark.parametrize("small", panels.small_panels(6), ids=lambda small: f"seed{small.seed}")
def test_without_places_the_most_correlated_are_the_nearest(small: panels.SmallPanel) -> None:
    offset = small.values + 1e6  # a large level must not drown the correlation
    plain = naive.order_of_neighbours(None, None, None, small.values)
    for values in (small.values, offset):
        for n_nearest in (1, 2, small.n_sensors):
            fast = neighbourhood.order_by_correlation(values, n_nearest)
            assert fast.tolist() == plain[:, :n_nearest].tolist()


def test_a_correlation_is_that_of_the_common_ticks() -> None:
    small = panels.small_panel(1, 120, 5, holes=0.4)
    fast = neighbourhood.correlation(small.values)
    for i in range(5):
        for j in range(5):
            plain = naive.correlation(small.values[:, i], small.values[:, j])
            assert fast[i, j] == pytest.approx(plain, abs=1e-9)


def test_constant_absent_and_never_meeting_sensors_come_last() -> None:
    values = np.random.RandomState(0).standard_normal((40, 6))
    values[:, 1] = 0.1
    values[:, 2] = np.nan
    values[:20, 3] = np.nan
    values[20:, 5] = np.nan
    values[:, 4] = -values[:, 0]  # as unlike as can be, but something is known
    fast = neighbourhood.order_by_correlation(values, 6)
    assert fast.tolist() == naive.order_of_neighbours(None, None, None, values).tolist()
    assert fast[0, -2:].tolist() == [1, 2]


def test_twins_tie_and_the_first_of_them_wins_also_at_the_last_place() -> None:
    values = np.repeat(np.random.RandomState(0).standard_normal((50, 1)), 8, axis=1)
    values[:, 1::2] *= 3.7  # the same up to scale: correlations of one, up to rounding
    for n_nearest in (1, 3, 8):
        fast = neighbourhood.order_by_correlation(values, n_nearest)
        assert fast.tolist() == naive.order_of_neighbours(None, None, None, values)[:, :n_nearest].tolist()


def test_sensors_without_readings_move_behind_all_others_but_stay_first_of_their_own() -> None:
    order = np.array([[0, 1, 2, 3], [1, 0, 3, 2], [2, 3, 1, 0], [3, 2, 0, 1]])
    moved = neighbourhood.put_last(order, np.array([False, True, False, True]))
    assert moved.tolist() == [[0, 2, 1, 3], [1, 0, 2, 3], [2, 0, 3, 1], [3, 2, 0, 1]]
    assert neighbourhood.put_last(order, np.zeros(4, dtype=bool)).tolist() == order.tolist()
