"""Episodes: what touches is one, against plain loops; and the sentences people read."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from ecad.episodes import Episode, describe, find

Points = list[tuple[int, int]]


def find_by_loop(alarms: np.ndarray, neighbours: np.ndarray, gap: int) -> list[Points]:
    """Grow each episode alarm by alarm."""
    waiting = [(int(t), int(k)) for t, k in zip(*np.nonzero(alarms))]
    episodes = []
    while waiting:
        episode, edge = [], [waiting.pop(0)]
        while edge:
            here = edge.pop()
            episode.append(here)
            touching = [point for point in waiting if touch(here, point, neighbours, gap)]
            waiting = [point for point in waiting if point not in touching]
            edge += touching
        episodes.append(sorted(episode))
    return sorted(episodes)


def touch(a: tuple[int, int], b: tuple[int, int], neighbours: np.ndarray, gap: int) -> bool:
    near = a[1] == b[1] or b[1] in neighbours[a[1]] or a[1] in neighbours[b[1]]
    return near and abs(a[0] - b[0]) <= gap


def points(episodes: list[tuple[np.ndarray, np.ndarray]]) -> list[Points]:
    return [[(int(t), int(k)) for t, k in zip(*episode)] for episode in episodes]


def alone(n: int) -> np.ndarray:
    return np.arange(n)[:, None]


# -- find ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(40))
def test_find_agrees_with_plain_loops(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n_times, n_sensors = int(rng.integers(1, 40)), int(rng.integers(1, 9))
    alarms = rng.random((n_times, n_sensors)) < rng.choice([0.03, 0.1, 0.4])
    others = rng.integers(0, n_sensors, (n_sensors, int(rng.integers(0, 4))))
    neighbours = np.column_stack([np.arange(n_sensors), others])
    for gap in (0, 1, 2, 5):
        assert points(find(alarms, neighbours, gap)) == find_by_loop(alarms, neighbours, gap)


def test_no_alarm_is_no_episode() -> None:
    assert find(np.zeros((5, 3), dtype=bool), alone(3)) == []
    assert find(np.zeros((0, 3), dtype=bool), alone(3)) == []


def test_alarms_of_a_sensor_further_apart_than_the_gap_are_two_episodes() -> None:
    alarms = np.zeros((8, 1), dtype=bool)
    alarms[[0, 2, 5]] = True
    assert points(find(alarms, alone(1), gap=2)) == [[(0, 0), (2, 0)], [(5, 0)]]
    assert len(find(alarms, alone(1), gap=3)) == 1


def test_being_a_neighbour_in_either_s_list_is_enough() -> None:
    alarms = np.ones((1, 2), dtype=bool)
    one_sided = np.array([[0, 0], [1, 0]])
    assert len(find(alarms, one_sided)) == 1
    assert len(find(alarms, alone(2))) == 2


def test_an_episode_travels_along_neighbours() -> None:
    alarms = np.eye(6, dtype=bool)
    ring = np.column_stack([np.arange(6), (np.arange(6) + 1) % 6])
    assert points(find(alarms, ring, gap=1)) == [[(k, k) for k in range(6)]]


def test_episodes_are_ordered_by_their_start() -> None:
    alarms = np.random.default_rng(0).random((300, 30)) < 0.02
    starts = [episode[0] for episode in points(find(alarms, alone(30)))]
    assert len(starts) > 50 and starts == sorted(starts)


def test_memory_grows_with_the_alarms_and_not_with_the_network() -> None:
    code = (
        "import resource, json, numpy as np\n"
        "from ecad.episodes import find\n"
        "alarms = np.zeros((500, 20_000), dtype=bool); alarms[::7, ::50] = True\n"
        "near = (np.arange(20_000)[:, None] + np.arange(5)) % 20_000\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "n = len(find(alarms, near))\n"
        "print(json.dumps([n, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before]))"
    )
    n, grown = json.loads(
        subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout
    )
    unit = 1 if sys.platform == "darwin" else 1024
    assert n == 400 * 72
    assert grown * unit < 200e6  # 20,000 x 20,000 distances would be 3.2 GB


# -- describe --------------------------------------------------------------------------------------------------------

TIMES = np.datetime64("2026-03-03T05:00", "us") + np.timedelta64(1, "h") * np.arange(8)
SENSORS = ("S06", "S07", "S08")


@pytest.fixture
def arrays() -> dict[str, np.ndarray]:
    """Two neighbours that read low, and later a third sensor that reads high, alone."""
    alarms = np.zeros((8, 3), dtype=bool)
    alarms[2:5, 1] = alarms[3, 0] = alarms[7, 2] = True
    values, expected = np.full((8, 3), 400.0), np.full((8, 3), 410.0)
    values[alarms] = [250, 200, 120, 300, 900]
    p = np.where(alarms, 0.004, 0.5)
    strength = np.where(alarms, 5.5, 0.7)
    p[3, 1], strength[3, 1] = 0.0004, 9.0
    values[3] = [200, 120, 400]
    neighbours = np.array([[0, 1], [1, 0], [2, 2]])
    return {
        "alarms": alarms, "values": values, "expected": expected,
        "p_values": p, "strength": strength, "neighbours": neighbours,
    }  # fmt: skip


def test_describe_tells_where_when_and_how_much(arrays: dict[str, np.ndarray]) -> None:
    low, high = describe(**arrays, times=TIMES, sensors=SENSORS)
    assert low.sensors == ("S06", "S07")
    assert (low.start, low.end) == (TIMES[2], TIMES[4])
    assert (low.n_alarms, low.min_p, low.peak_strength) == (4, 0.0004, 9.0)
    assert low.peak == (TIMES[3], "S07")
    assert (low.observed, low.expected) == (120.0, 410.0)
    assert (low.direction, high.direction) == ("low", "high")
    assert high.sensors == ("S08",)


def test_an_episode_with_both_directions_is_mixed(arrays: dict[str, np.ndarray]) -> None:
    arrays["values"][4, 1] = 700.0
    mixed = describe(**arrays, times=TIMES, sensors=SENSORS)[0]
    assert mixed.direction == "mixed"
    assert "both higher and lower than expected" in mixed.sentence()


def test_alarms_without_p_and_strength_are_still_episodes(arrays: dict[str, np.ndarray]) -> None:
    arrays["p_values"][:], arrays["strength"][:] = np.nan, np.nan
    first = describe(**arrays, times=TIMES, sensors=SENSORS)[0]
    assert np.isnan(first.min_p) and "(p" not in first.sentence()
    assert first.peak == (TIMES[2], "S07")


def test_episodes_of_a_panel_without_a_clock_are_told_in_ticks(arrays: dict[str, np.ndarray]) -> None:
    low, high = describe(**arrays, times=np.arange(100, 108), sensors=SENSORS)
    assert low.sentence().startswith("S07 and 1 neighbour read lower than expected from tick 102 to 104: ")
    assert high.sentence() == "S08 read higher than expected at tick 107: 900 instead of 410 (p = 0.004)"


# -- sentences -------------------------------------------------------------------------------------------------------

EPISODE = Episode(
    sensors=("S05", "S06", "S07"),
    start=np.datetime64("2026-03-03T07:00", "us"),
    end=np.datetime64("2026-03-03T09:00", "us"),
    n_alarms=5,
    min_p=0.0004,
    peak=(np.datetime64("2026-03-03T08:00", "us"), "S07"),
    peak_strength=9.0,
    direction="low",
    observed=120.0,
    expected=410.2,
)


def test_the_sentence_says_who_what_when_and_how_sure() -> None:
    assert EPISODE.sentence() == (
        "S07 and 2 neighbours read lower than expected from Tue 3 Mar 2026 07:00 to 09:00: "
        "120 instead of 410 at the peak (p = 0.0004)"
    )


def test_a_single_alarm_needs_no_range_and_no_peak() -> None:
    one = replace(EPISODE, sensors=("S07",), end=EPISODE.start, n_alarms=1, direction="high", min_p=0.0123)
    expected = "S07 read higher than expected at Tue 3 Mar 2026 07:00: 120 instead of 410 (p = 0.012)"
    assert one.sentence() == expected


def test_another_day_is_named() -> None:
    long = replace(EPISODE, end=np.datetime64("2026-03-04T01:30:15", "us"))
    assert "from Tue 3 Mar 2026 07:00 to Wed 4 Mar 01:30:15" in long.sentence()
    longer = replace(EPISODE, end=np.datetime64("2027-01-01T00:00", "us"))
    assert "from Tue 3 Mar 2026 07:00 to Fri 1 Jan 2027 00:00" in longer.sentence()


@pytest.mark.parametrize(
    ("zone", "told"),
    [
        ("Europe/Berlin", "Tue 3 Mar 2026 08:00 to 10:00"),
        ("-08:30", "Mon 2 Mar 2026 22:30 to Tue 3 Mar 00:30"),
    ],
)
def test_the_sentence_is_told_in_local_time(zone: str, told: str) -> None:
    assert told in replace(EPISODE, time_zone=zone).sentence()


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (0.0, "0"),
        (0.01234, "0.0123"),
        (63.52, "63.5"),
        (-4.0, "-4"),
        (12345.6, "12,346"),
        (np.nan, "unknown"),
    ],
)
def test_numbers_are_told_with_the_digits_that_matter(value: float, told: str) -> None:
    assert f": {told} instead of 410" in replace(EPISODE, observed=value).sentence()
