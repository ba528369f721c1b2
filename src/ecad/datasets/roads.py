"""seed, sizes -> a city of roads: places, edges and a clock, no readings yet; who is near whom along the roads."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array

from ..errors import SettingError
from ..panel import Panel

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Edges = tuple[Integers, Integers, Floats]

_CENTRE = (10.0, 50.0)  # degrees; no such city
_KM_PER_DEGREE = 111.2
_UNITS = {"s": 1, "min": 60, "h": 3600, "D": 86400, "d": 86400}


def network(rng: np.random.Generator, n_sensors: int, n_times: int, step: str, start: str) -> Panel:
    """Roads, names and a clock; no readings yet."""
    tick = _parse_step(step)
    try:
        first = np.datetime64(start, "us")
    except ValueError as error:
        raise SettingError(f"start={start!r} is not a date or time: give it like '2025-01-06'") from error
    points = _places(rng, n_sensors)
    width = max(2, len(str(n_sensors)))
    return Panel(
        values=np.full((n_times, n_sensors), np.nan),
        sensors=tuple(f"S{k:0{width}d}" for k in range(1, n_sensors + 1)),
        times=first + tick * np.arange(n_times),
        step=tick,
        positions=_to_degrees(points),
        geometry="lonlat",
        adjacency=_roads(points),
        time_zone=None,
        repairs={},
        frame="pandas",
    )


def _places(rng: np.random.Generator, n: int) -> Floats:
    """(n, 2) kilometres from the centre: even without being a grid, and denser in the middle."""
    rank = np.arange(n) + 0.5
    radius = 0.9 * np.sqrt(n) * (rank / n) ** 0.6
    angle = rank * np.pi * (3.0 - np.sqrt(5.0)) + rng.uniform(0.0, 2.0 * np.pi)
    points = np.column_stack([1.25 * radius * np.cos(angle), radius * np.sin(angle)])
    return np.asarray(points + rng.uniform(-0.45, 0.45, points.shape))


def _to_degrees(points: Floats) -> Floats:
    lon, lat = _CENTRE
    east = points[:, 0] / (_KM_PER_DEGREE * np.cos(np.radians(lat)))
    return np.round(np.column_stack([lon + east, lat + points[:, 1] / _KM_PER_DEGREE]), 6)


def _roads(points: Floats) -> Edges:
    """The Gabriel graph: two places are joined where no third lies between them (connected, and no road crosses)."""
    n = len(points)
    if n < 4:
        a, b = np.arange(n - 1), np.arange(1, n)
    else:
        a, b = _gabriel_edges(points)
    return a, b, np.round(np.linalg.norm(points[a] - points[b], axis=1), 3)


def _gabriel_edges(points: Floats) -> tuple[Integers, Integers]:
    from scipy.spatial import Delaunay

    triangles = Delaunay(points).simplices.astype(np.int64)
    corners = np.concatenate([triangles[:, order] for order in ([0, 1, 2], [1, 2, 0], [2, 0, 1])])
    pairs = np.sort(corners[:, :2], axis=1)
    third = points[corners[:, 2]]
    between = np.einsum("ij,ij->i", points[corners[:, 0]] - third, points[corners[:, 1]] - third) < 0.0
    edges, which = np.unique(pairs, axis=0, return_inverse=True)
    kept = edges[np.bincount(which.ravel(), weights=between, minlength=len(edges)) == 0]
    return kept[:, 0], kept[:, 1]


def graph(edges: Edges, n: int) -> csr_array:
    """Symmetric (n, n) matrix of road lengths."""
    a, b, length = edges
    both = coo_array((np.tile(length, 2), (np.concatenate([a, b]), np.concatenate([b, a]))), shape=(n, n))
    return csr_array(both)


class Around:
    """sensor -> itself and its nearest: along the roads where they are known, else as the crow flies."""

    def __init__(self, panel: Panel) -> None:
        from scipy.spatial import KDTree

        self.roads = None if panel.adjacency is None else graph(panel.adjacency, panel.n_sensors)
        self.tree = None if panel.positions is None else KDTree(panel.positions)
        self.positions = panel.positions

    def of(self, sensor: int, n: int) -> Integers:
        if self.roads is None:
            assert self.tree is not None and self.positions is not None
            nearest = np.atleast_1d(self.tree.query(self.positions[sensor], k=min(n, self.tree.n))[1])
            return np.sort(nearest).astype(np.int64)
        return self._along_roads(sensor, n, self.roads)

    @staticmethod
    def _along_roads(sensor: int, n: int, roads: csr_array) -> Integers:
        distance, done = {sensor: 0.0}, set[int]()
        while len(done) < n and len(done) < len(distance):
            here = min(distance.keys() - done, key=lambda k: (distance[k], k))
            done.add(here)
            reach = slice(roads.indptr[here], roads.indptr[here + 1])
            for k, length in zip(roads.indices[reach].tolist(), roads.data[reach].tolist(), strict=True):
                distance[k] = min(distance.get(k, np.inf), distance[here] + length)
        return np.array(sorted(done), dtype=np.int64)


def _parse_step(step: str) -> np.timedelta64:
    match = re.fullmatch(r"\s*(\d*)\s*(s|min|h|D|d)\s*", step)
    if match is None or match[1] == "0":
        raise SettingError(f"step={step!r} is not a time step: give it like '5min', '1h' or '1D'")
    return np.timedelta64(int(match[1] or 1) * _UNITS[match[2]] * 1_000_000, "us")


def seconds_of(step: np.timedelta64 | int) -> float:
    """A step in seconds; of ticks without a clock, their number."""
    return float(step / np.timedelta64(1, "s")) if isinstance(step, np.timedelta64) else float(step)
