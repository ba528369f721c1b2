"""positions -> order (sensor, nearest first): who counts as whose neighbour.

Great-circle distance for longitude and latitude, Euclidean for plain coordinates, path length for an adjacency,
and correlation of the training readings when nothing is known. A sensor is its own nearest neighbour; ties go to the
sensor that stands first in the panel.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

SPARE = 20  # stand-ins kept in reach of each neighbourhood


def order_by_position(positions: Array, geometry: str, n_nearest: int) -> Array:
    """(K, n_nearest) by distance."""
    n_sensors = len(positions)
    if geometry == "lonlat":
        from sklearn.neighbors import BallTree

        tree = BallTree(np.radians(positions[:, ::-1]), metric="haversine")
    else:
        from sklearn.neighbors import KDTree

        tree = KDTree(positions)
    points = tree.get_arrays()[0]
    distance, index = tree.query(points, k=n_nearest)
    unit = float(tree.query(points[:1], k=n_sensors)[0].max())
    order = _self_first(index, distance, unit)
    # more sensors than were asked for may stand as near as the last of them: then all of those are put in order
    reach = distance[:, -1] + 1e-12 * unit
    for k in np.flatnonzero(tree.query_radius(points, reach, count_only=True) > n_nearest):
        index, distance = tree.query_radius(points[k : k + 1], reach[k], return_distance=True)
        order[k] = _self_first(index[0][None], distance[0][None], unit, np.array([k]))[0, :n_nearest]
    return order


def order_by_path(n_sensors: int, a: Array, b: Array, weight: Array, n_nearest: int) -> Array:
    """(K, n_nearest) by the shortest path over undirected edges; the unreachable come last."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import dijkstra

    # an edge of length zero must not read as no edge
    ends = (a.astype(np.int32), b.astype(np.int32))  # of which older releases of scipy ask the paths
    graph = csr_array((np.maximum(weight, 1e-300), ends), shape=(n_sensors, n_sensors))
    order = np.empty((n_sensors, n_nearest), dtype=np.int64)
    # a slice of sources at a time: K x K never stands in memory at once
    for start in range(0, n_sensors, 512):
        sources = np.arange(start, min(start + 512, n_sensors))
        distance = dijkstra(graph, directed=False, indices=sources)
        everybody = np.broadcast_to(np.arange(n_sensors), distance.shape)
        order[sources] = _self_first(everybody, distance, own=sources)[:, :n_nearest]
    return order


def order_by_correlation(values: Array, n_nearest: int) -> Array:
    """(K, n_nearest) by the pairwise-complete correlation of readings (time, sensor), largest first."""
    likeness = correlation(values)
    everybody = np.broadcast_to(np.arange(len(likeness)), likeness.shape)
    return _self_first(everybody, -likeness)[:, :n_nearest]


def correlation(values: Array) -> Array:
    """Pairwise-complete correlation (K, K); -2 where two sensors have fewer than three common ticks or no variance."""
    seen = (~np.isnan(values)).astype(np.float64)
    x = np.where(seen > 0, values, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        x = x - np.divide(x.sum(axis=0), seen.sum(axis=0)) * seen  # centring keeps the sums of squares exact
        n = seen.T @ seen
        sum_i, sum_ii, sum_ij = x.T @ seen, (x * x).T @ seen, x.T @ x
        covariance = sum_ij / n - (sum_i / n) * (sum_i.T / n)
        variance = sum_ii / n - (sum_i / n) ** 2
        out = covariance / np.sqrt(variance * variance.T)
    small = 1e-12 * np.fmax(np.diag(variance), 1e-300)
    varies = (variance > small[:, None]) & (small < variance.T)
    dead = (n < 3) | ~varies | ~np.isfinite(out)
    return np.where(dead, -2.0, out)


def _self_first(index: Array, distance: Array, unit: float | None = None, own: Array | None = None) -> Array:
    own = np.arange(len(index)) if own is None else own
    # distances that differ by rounding only (of the network's extent) are ties: the sensor that stands first wins
    finite = np.isfinite(distance)
    unit = max(float(np.abs(distance[finite]).max(initial=0.0)) if unit is None else unit, 1e-300)
    reach = np.where(finite, np.round(np.where(finite, distance, 0.0) / unit, 12), np.inf)
    reach[index == own[:, None]] = -np.inf
    order = np.lexsort((index, reach), axis=1)
    return np.take_along_axis(index, order, axis=1).astype(np.int64)


def put_last(order: Array, unknown: Array) -> Array:
    """Move sensors about which nothing is known (K,) bool behind all others, except from their own first place."""
    late = unknown[order]
    late[:, 0] = False
    return np.take_along_axis(order, np.argsort(late, axis=1, kind="stable"), axis=1)
