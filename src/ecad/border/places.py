"""positions and edges, in any form -> (K, 2) coordinates and undirected edges, in the panel's order of sensors."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import EcadError, PanelError
from .arrays import Edges, FloatArray, IntArray
from .cells import read_numbers
from .names import label_of, some_of
from .options import STRICT, Options
from .sources import Table, open_source

_COORDINATES = {
    "lonlat": (("lon", "longitude", "lng", "long"), ("lat", "latitude")),
    "xy": (("x",), ("y",)),
}


def read_positions(
    source: Any, sensors: tuple[str, ...], options: Options, geometry: str | None
) -> tuple[FloatArray, str, int]:
    """Coordinates, their geometry, and how many positions belong to no sensor."""
    places, found = _read_places(source, sensors, options, geometry)
    chosen = geometry or found or "xy"
    if missing := [name for name in sensors if name not in places]:
        raise PanelError(
            f"{len(missing)} of {len(sensors)} sensors have no position: {some_of(missing)}; add them to positions, "
            "or leave them out with panel.drop(...) or sensors=."
        )
    positions = np.array([places[name] for name in sensors], dtype=np.float64).reshape(-1, 2)
    _check_positions(positions, sensors, chosen)
    return positions, chosen, len(places.keys() - set(sensors))


def _check_positions(positions: FloatArray, sensors: tuple[str, ...], geometry: str) -> None:
    unknown = ~np.isfinite(positions).all(axis=1)
    if unknown.any():
        names = [sensors[k] for k in np.flatnonzero(unknown)]
        raise PanelError(
            f"These sensors have an incomplete position: {some_of(names)}; fill it in, or leave them "
            "out with sensors=."
        )
    if geometry != "lonlat":
        return
    lon, lat = positions.T
    outside = (np.abs(lat) > 90) | (lon < -180) | (lon > 360)
    if outside.any():
        k = int(np.argmax(outside))
        raise PanelError(
            f"Sensor {sensors[k]!r} has lon {lon[k]!s}, lat {lat[k]!s}; needed is lat in [-90, 90] and lon in [-180, "
            "360]. Are the two swapped? For metres use columns x and y."
        )


def _read_places(
    source: Any, sensors: tuple[str, ...], options: Options, geometry: str | None
) -> tuple[dict[str, tuple[float, float]], str | None]:
    """Name -> (lon, lat) or (x, y), and which of the two, when the source says."""
    if isinstance(source, Mapping) and _is_pairs(source):
        names = [label_of(name) for name in source]
        if set(names) & set(sensors) or not _coordinate_columns(names, geometry):
            return _pairs(zip(names, source.values(), strict=True)), None
    opened = open_source(source)
    if isinstance(opened, np.ndarray):
        if opened.shape != (len(sensors), 2):
            raise PanelError(
                f"Positions have the shape {opened.shape}; needed is ({len(sensors)}, 2), one row a "
                "sensor, or a frame."
            )
        return _pairs(zip(sensors, opened, strict=True)), None
    columns = _coordinate_columns(opened.frame.columns, geometry)
    if columns is None:
        raise PanelError(
            f"Positions have the columns {some_of(opened.frame.columns)}; needed are 'lon' and 'lat' (or 'longitude' "
            "and 'latitude') or 'x' and 'y'."
        )
    kind, east, north = columns
    names = _place_names(opened, sensors, options.sensor, {east, north})
    pairs = zip(*(_coordinates(opened, at, names, at, options) for at in (east, north)), strict=True)
    return _pairs(zip(names, pairs, strict=True)), kind


def _is_pairs(source: Mapping[Any, Any]) -> bool:
    return all(
        isinstance(pair, (tuple, list, np.ndarray)) and len(pair) == 2 and not any(map(np.iterable, pair))
        for pair in source.values()
    )


def _pairs(pairs: Iterable[tuple[str, Any]]) -> dict[str, tuple[float, float]]:
    places: dict[str, tuple[float, float]] = {}
    for name, pair in pairs:
        try:
            one, two = (math.nan if part is None else float(part) for part in pair)
        except (TypeError, ValueError):
            raise PanelError(
                f"The position of sensor {name!r} is {pair!s}; needed are two numbers."
            ) from None
        known = places.setdefault(name, (one, two))
        if known != (one, two) and not (math.isnan(one) or math.isnan(two)):
            raise PanelError(
                f"Sensor {name!r} has two positions, {known} and {(one, two)}; keep one of them."
            )
    return places


def _coordinate_columns(names: Sequence[str], geometry: str | None) -> tuple[str, str, str] | None:
    lower = {name.lower(): name for name in names}
    for kind, (easts, norths) in _COORDINATES.items():
        east = next((lower[name] for name in easts if name in lower), None)
        north = next((lower[name] for name in norths if name in lower), None)
        if east is not None and north is not None and geometry in (None, kind):
            return kind, east, north
    return None


def _place_names(table: Table, sensors: tuple[str, ...], sensor: str, coordinates: set[str]) -> list[str]:
    """The sensor of each row: a column `sensor`, else the index, else the first column, whichever knows the panel."""
    frame = table.frame
    columns = [name for name in frame.columns if name not in coordinates]
    candidates = [frame[name] for name in columns if name == sensor]
    candidates += [] if table.index is None else [table.index]
    candidates += [frame[name] for name in columns if name != sensor][:1]
    named = [
        [label_of(cell).strip() if table.text else label_of(cell) for cell in series.to_list()]
        for series in candidates
    ]
    if not named:
        if len(frame) == len(sensors):
            return list(sensors)
        raise PanelError("Positions name no sensors; give a column 'sensor', or index the frame by sensor.")
    if sensor in columns:
        return named[0]
    wanted = set(sensors)
    return max(named, key=lambda names: len(wanted & set(names)))


def _coordinates(table: Table, column: str, names: list[str], what: str, options: Options) -> FloatArray:
    return _numbers(table.frame[column], lambda row: f"sensor {names[row]!r} ({what})", options)


def _numbers(series: Any, where: Callable[[int], str], options: Options) -> FloatArray:
    """Numbers as they are mostly written, or else as the readings are."""
    try:
        return read_numbers(series, where, STRICT, None)[0]
    except PanelError:
        if options.decimal == "." and options.thousands is None:
            raise
        how = replace(STRICT, decimal=options.decimal, thousands=options.thousands)
        return read_numbers(series, where, how, None)[0]


def read_adjacency(
    source: Any, sensors: tuple[str, ...], known: frozenset[str], options: Options
) -> tuple[Edges, int]:
    """Edges among the sensors, and how many went from one to itself; those to other `known` sensors are left out."""
    if isinstance(source, Mapping) and source and all(isinstance(pair, tuple) for pair in source):
        source = [(*pair, weight) for pair, weight in source.items()]
    matrix = _as_matrix(source, sensors, options)
    edges = _edges_of_matrix(matrix, sensors) if matrix is not None else _read_edges(source, options)
    place = {name: k for k, name in enumerate(sensors)}
    if unknown := sorted({name for a, b, _ in edges for name in (a, b)} - place.keys() - known):
        raise PanelError(
            f"Adjacency names sensors that the panel does not have: {some_of(unknown)}; "
            f"drop their edges, or correct the names. The panel has {some_of(sensors)}."
        )
    kept: dict[tuple[int, int], float] = {}
    loops = 0
    for a, b, weight in edges:
        if a not in place or b not in place:
            continue
        if a == b:
            loops += 1
            continue
        if not (math.isfinite(weight) and weight >= 0):
            raise PanelError(
                f"The edge {a!r} - {b!r} has the weight {weight}; a weight is a distance: 0 or more."
            )
        pair = (min(place[a], place[b]), max(place[a], place[b]))
        if not math.isclose(kept.setdefault(pair, weight), weight, rel_tol=1e-9):
            raise PanelError(
                f"The edge {a!r} - {b!r} has two weights, {kept[pair]} and {weight}; edges have no "
                "direction: keep one."
            )
    pairs = sorted(kept)
    adjacency = (
        np.array([a for a, _ in pairs], dtype=np.int64),
        np.array([b for _, b in pairs], dtype=np.int64),
        np.array([kept[pair] for pair in pairs], dtype=np.float64),
    )
    return adjacency, loops


def _as_matrix(source: Any, sensors: tuple[str, ...], options: Options) -> FloatArray | None:
    """The K x K matrix, in the panel's order; None when the source lists edges."""
    if _is_table(source):
        return _named_matrix(open_source(source), sensors, options)
    try:
        array = np.asarray(source.toarray() if hasattr(source, "toarray") else source)
        if array.ndim == 2 and array.shape[0] == array.shape[1] and array.dtype.kind in "biuf":
            if len(array) == len(sensors):
                return array.astype(np.float64)
            if len(array) > 3 or isinstance(source, np.ndarray):
                raise PanelError(
                    f"The adjacency matrix has the shape {array.shape} for {len(sensors)} sensors; give "
                    f"({len(sensors)}, {len(sensors)}) in the panel's order, or a list of edges."
                )
    except (ValueError, TypeError) as error:
        if isinstance(error, EcadError):
            raise
    return None


def _is_table(source: Any) -> bool:
    """Whether edges come as a path or a frame; asked of the type, since a lazy frame would start working."""
    return isinstance(source, (str, os.PathLike, Mapping)) or hasattr(type(source), "columns")


def _named_matrix(
    table: Table | npt.NDArray[Any], sensors: tuple[str, ...], options: Options
) -> FloatArray | None:
    if isinstance(table, np.ndarray) or not set(sensors) <= set(table.frame.columns):
        return None
    others = [name for name in table.frame.columns if name not in sensors]
    rows = table.index if table.index is not None else (table.frame[others[0]] if others else None)
    names = list(sensors) if rows is None else [label_of(cell) for cell in rows.to_list()]
    if len(names) != len(table.frame) or not set(sensors) <= set(names):
        return None  # sensors may be called a and b, as the ends of edges are
    order = [names.index(name) for name in sensors]
    columns = [_coordinates(table, name, names, f"the adjacency to {name!r}", options) for name in sensors]
    return np.stack(columns, axis=1)[order]


def _edges_of_matrix(matrix: FloatArray, sensors: tuple[str, ...]) -> list[tuple[str, str, float]]:
    """Nonzero finite cells are edges; 0, NaN and infinity are none. One direction alone counts for both."""
    weights = np.where(np.isfinite(matrix), matrix, 0.0)
    rows, columns = np.nonzero(weights)
    names = sensors
    return [(names[a], names[b], float(weights[a, b])) for a, b in zip(rows, columns, strict=True)]


def _read_edges(source: Any, options: Options) -> list[tuple[str, str, float]]:
    if not _is_table(source):
        return _listed_edges(source)
    table = open_source(source)
    if isinstance(table, np.ndarray) or len(table.frame.columns) < 2:
        raise PanelError("Adjacency needs the columns a, b and, when edges have lengths, weight.")
    columns = table.frame.columns
    ends = ("a", "b") if {"a", "b"} <= set(columns) else (columns[0], columns[1])
    a, b = ([label_of(cell) for cell in table.frame[end].to_list()] for end in ends)
    names = [name for name in columns if name not in ends]
    column = next(
        (name for name in names if name.lower() in ("weight", "distance")), names[0] if names else None
    )
    if column is None:
        return [(one, two, 1.0) for one, two in zip(a, b, strict=True)]
    weights = _numbers(
        table.frame[column], lambda row: f"the edge {a[row]!r} - {b[row]!r} ({column})", options
    )
    return [(one, two, float(weight)) for one, two, weight in zip(a, b, weights, strict=True)]


def _listed_edges(source: Any) -> list[tuple[str, str, float]]:
    edges: list[tuple[str, str, float]] = []
    try:
        for edge in source:
            if isinstance(edge, str):
                raise TypeError(f"{edge!r} is one name")
            a, b, *weight = edge
            edges.append((label_of(a), label_of(b), float(weight[0]) if weight else 1.0))
    except (TypeError, ValueError) as error:
        raise PanelError(
            f"Adjacency cannot be read as edges ({error}); give (a, b) or (a, b, weight) each, a frame, or a matrix."
        ) from error
    return edges


def induced(adjacency: Edges, index: IntArray, n_sensors: int) -> Edges:
    """The edges among the chosen sensors, with their new numbers."""
    new = np.full(n_sensors, -1, dtype=np.int64)
    new[index] = np.arange(len(index))
    a, b, weight = adjacency
    kept = (new[a] >= 0) & (new[b] >= 0)
    return new[a][kept], new[b][kept], weight[kept]
