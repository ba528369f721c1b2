"""readings -> Panel: whatever the caller has becomes one (time, sensor) array with its holes marked.

This is the only border for data. Behind it times increase by one step, sensor names are unique, and a value is a finite
float64 or NaN (not observed). What had to be repaired on the way is counted in `Panel.repairs`; what could only be
guessed is a `PanelError` that names sensor, time and remedy. Here are the panel itself and the doors that make one; the
rooms that a source passes through on its way are in `border`.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, SupportsIndex, cast

import numpy as np
import numpy.typing as npt

from ._checks import one_of
from .border.arrays import BoolArray, Edges, FloatArray, IntArray, Step
from .border.cells import clean
from .border.clock import (
    local_times,
    show_time,
    step_text,
    step_ticks,
    ticks_per_day,
    tzinfo_of,
    week_seconds,
)
from .border.frames import make_frame
from .border.given import count_unsorted, from_array, from_table, without_empty_rows
from .border.grid import MOST_CELLS, beside_tick, fill_grid, find_grid
from .border.names import names_of, refuse_twice, some_of
from .border.options import Options
from .border.places import induced, read_adjacency, read_positions
from .border.sources import file_format, open_source, read_table
from .border.stamps import Stamps, one_time
from .border.utc import on_utc
from .errors import PanelError

__all__ = [
    "MOST_CELLS",
    "REPAIRS",
    "Panel",
    "as_panel",
    "beside_tick",
    "file_format",
    "make_frame",
    "read_panel",
    "read_table",
    "reorder",
    "show_time",
    "step_text",
    "step_ticks",
    "ticks_per_day",
    "tzinfo_of",
    "week_seconds",
]

REPAIRS = {
    "row numbers": "columns without a name that count the rows were left out",
    "empty rows": "rows without time and without readings were left out",
    "unsorted times": "rows came earlier than the row before and were sorted",
    "missing values": "readings equal to a stated missing value became missing",
    "infinite": "infinite readings became missing",
    "non-numeric": "cells that are no numbers became missing",
    "ambiguous hours": "times in the hour that the clock shows twice were taken as the first of the two",
    "skipped hours": "empty rows in the hour that the clock skips were left out",
    "snapped times": "times beside their tick were moved onto it",
    "duplicates": "readings given more than once for one sensor and time became one",
    "missing ticks": "ticks without a row became rows of missing readings",
    "dead sensors": "sensors have no reading at all",
    "absent sensors": "sensors of the fitted panel are absent and count as missing",
    "unknown positions": "positions belong to no sensor of the panel and were left out",
    "self edges": "edges from a sensor to itself were left out",
}


# -- the panel ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class Panel:
    """Readings of K sensors at T equally spaced times, NaN where nothing was observed.

    The arrays are read-only. `times` are datetime64[us], in UTC when `time_zone` is set and on the caller's own clock
    otherwise, or int64 tick numbers when there is no clock.
    """

    values: FloatArray  # (T, K)
    sensors: tuple[str, ...]
    times: npt.NDArray[Any]  # (T,)
    step: Step  # timedelta64[us], or a number of ticks
    positions: FloatArray | None = None  # (K, 2): lon, lat in degrees or x, y
    geometry: str | None = None  # "lonlat" | "xy"
    adjacency: Edges | None = None  # a_index, b_index, weight (a distance), undirected
    time_zone: str | None = None  # IANA name or fixed offset like "+01:00"
    repairs: dict[str, int] = field(default_factory=dict)
    frame: str = "pandas"  # kind of frame to give back

    def __post_init__(self) -> None:
        times = np.asarray(self.times)
        times = times.astype(np.int64 if times.dtype.kind in "iu" else "datetime64[us]", copy=False)
        step = self.step
        if times.dtype.kind == "M" and isinstance(step, (np.timedelta64, dt.timedelta)):
            step = np.timedelta64(step, "us")
        values = np.ascontiguousarray(self.values, dtype=np.float64)
        if values.shape != (len(times), len(self.sensors)):
            raise PanelError(
                f"Values have the shape {values.shape} for {len(times)} times and {len(self.sensors)} sensors; give "
                "one row a time and one column a sensor."
            )
        fixed: dict[str, Any] = {
            "values": _read_only(values),
            "times": _read_only(times),
            "step": step,
            "sensors": tuple(self.sensors),
        }
        if self.positions is not None:
            fixed["positions"] = _read_only(np.ascontiguousarray(self.positions, dtype=np.float64))
        if self.adjacency is not None:
            kinds = (np.int64, np.int64, np.float64)
            edges = zip(self.adjacency, kinds, strict=True)
            fixed["adjacency"] = tuple(_read_only(np.asarray(part, dtype=kind)) for part, kind in edges)
        for name, value in fixed.items():
            object.__setattr__(self, name, value)

    @property
    def n_times(self) -> int:
        return len(self.times)

    @property
    def n_sensors(self) -> int:
        return len(self.sensors)

    @property
    def has_clock(self) -> bool:
        return self.times.dtype.kind == "M"

    @property
    def last_time(self) -> np.datetime64 | int:
        return _time(self.times, -1)

    @cached_property
    def observed(self) -> BoolArray:
        return _read_only(~np.isnan(self.values))

    @property
    def ticks_per_day(self) -> int | None:
        return ticks_per_day(self.step)

    @property
    def day(self) -> float | None:
        """How many ticks a day has, also where that is no whole number; None without a clock."""
        return np.timedelta64(1, "D") / self.step if isinstance(self.step, np.timedelta64) else None

    @cached_property
    def week_seconds(self) -> IntArray | None:
        """Seconds since Monday 00:00 on the local clock; None without a clock."""
        return _read_only(week_seconds(self.times, self.time_zone)) if self.has_clock else None

    @property
    def local_times(self) -> npt.NDArray[Any]:
        """Times on the wall clock of the panel's zone; without a zone or a clock, the times as they are."""
        return local_times(self.times, self.time_zone) if self.has_clock else self.times

    def __getitem__(self, ticks: Any) -> Panel:
        if not isinstance(ticks, slice) or ticks.step not in (None, 1):
            raise PanelError(
                f"Panel[{ticks!r}] is not a run of times; give a slice without a step, like panel[24:48]."
            )
        part = slice(*ticks.indices(self.n_times)[:2])
        if part.start >= part.stop:
            raise PanelError(
                f"Panel[{_slice_text(ticks)}] holds none of the panel's {self.n_times} times; give a slice that does."
            )
        return replace(self, values=self.values[part], times=self.times[part])

    def between(self, start: Any = None, stop: Any = None) -> Panel:
        """The times from `start` on and before `stop`, as in a slice; None leaves that side open."""
        first = 0 if start is None else int(np.searchsorted(self.times, self.moment(start)))
        last = self.n_times if stop is None else int(np.searchsorted(self.times, self.moment(stop)))
        if first >= last:
            span = " and ".join(
                f"{word} {moment}"
                for word, moment in (("from", start), ("before", stop))
                if moment is not None
            )
            raise PanelError(
                f"No time of the panel lies {span}; it goes from {self._show(0)} to {self._show(-1)}."
            )
        return self[first:last]

    def split(self, at: Any) -> tuple[Panel, Panel]:
        """The panel before and from `at`: a fraction of the times (0 < at < 1), or a time."""
        if isinstance(at, (float, np.floating)):
            if not 0 < at < 1:
                raise PanelError(
                    f"{at} is no share of the times to split at: give one between 0 and 1, or a time."
                )
            cut = math.floor(round(float(at) * self.n_times, 9))
        else:
            cut = int(np.searchsorted(self.times, self.moment(at)))
        if not 0 < cut < self.n_times:
            raise PanelError(
                f"Split({at}) leaves one side without times; "
                f"choose a point inside {self._show(0)} to {self._show(-1)} ({self.n_times} times)."
            )
        return self[:cut], self[cut:]

    def select(self, sensors: str | Iterable[Any]) -> Panel:
        """The panel of these sensors only, in this order."""
        wanted = names_of(sensors)
        column = {name: k for k, name in enumerate(self.sensors)}
        if unknown := [name for name in wanted if name not in column]:
            raise PanelError(f"The panel has no sensor {some_of(unknown)}; it has {some_of(self.sensors)}.")
        if not wanted:
            raise PanelError("No sensor is left in the panel; keep at least one.")
        refuse_twice(wanted, "select")
        index = np.array([column[name] for name in wanted], dtype=np.int64)
        return replace(
            self,
            values=self.values[:, index],
            sensors=wanted,
            positions=None if self.positions is None else self.positions[index],
            adjacency=None if self.adjacency is None else induced(self.adjacency, index, self.n_sensors),
        )

    def drop(self, sensors: str | Iterable[Any]) -> Panel:
        """The panel without these sensors."""
        gone = set(names_of(sensors))
        if unknown := [name for name in gone if name not in self.sensors]:
            raise PanelError(
                f"The panel has no sensor {some_of(sorted(unknown))}; it has {some_of(self.sensors)}."
            )
        return self.select([name for name in self.sensors if name not in gone])

    def with_values(self, values: npt.ArrayLike) -> Panel:
        """The same times and sensors with other values, NaN or finite."""
        array = np.array(values, dtype=np.float64)
        if np.isinf(array).any():
            raise PanelError("With_values was given infinite values; use NaN for what is not observed.")
        return replace(self, values=array)

    def describe(self) -> str:
        """What the panel holds, and each repair that was made, in sentences."""
        clock = self.time_zone or ("own clock, no time zone" if self.has_clock else "tick numbers, no clock")
        known = {"lonlat": "positions: lon, lat", "xy": "positions: x, y"}.get(
            self.geometry or "", "no positions"
        )
        edges = "" if self.adjacency is None else f", adjacency: {len(self.adjacency[0]):,} edges"
        head = (
            f"{self.n_times:,} times x {self.n_sensors:,} sensors, {float(self.observed.mean()):.1%} "
            "observed\n"
            f"{self._show(0)} to {self._show(-1)}, one tick each {step_text(self.step)} "
            f"({clock})\n{known}{edges}"
        )
        stated = [f"\n{REPAIRS.get(name, name)}: {count:,}" for name, count in self.repairs.items() if count]
        return head + ("".join(stated) or "\nnothing had to be repaired")

    def __repr__(self) -> str:
        span = f"{self._show(0)} to {self._show(-1)}" if self.n_times else "no times"
        return f"Panel({self.n_times} times x {self.n_sensors} sensors, {span}, step {step_text(self.step)})"

    def to_frame(self, shape: Literal["wide", "long"] = "wide") -> Any:
        """The readings in the caller's kind of frame: `time` and a column a sensor, or `time, sensor, value`."""
        if shape == "wide":
            if "time" in self.sensors:
                raise PanelError(
                    "A sensor is called 'time', as the column of times is; use to_frame('long')."
                )
            columns = np.asfortranarray(self.values)
            wide: dict[str, Any] = {"time": self.times}
            wide.update((name, columns[:, k]) for k, name in enumerate(self.sensors))
            return make_frame(wide, self.frame, self.time_zone)
        one_of("shape", shape, ("wide", "long"))
        return self.long_frame({"value": self.values.ravel()})

    def long_frame(self, columns: Mapping[str, Any]) -> Any:
        """One row for each (time, sensor), beside it these columns of as many cells, in the caller's kind of frame.

        A column is an array, or numbers and the words that they stand for.
        """
        long: dict[str, Any] = {
            "time": np.repeat(self.times, self.n_sensors),
            "sensor": (np.tile(np.arange(self.n_sensors), self.n_times), self.sensors),
            **columns,
        }
        return make_frame(long, self.frame, self.time_zone)

    def snapped(self, moment: Any) -> Any:
        """A time as the tick of this panel's grid that it lies on or a little beside; any other time as it is."""
        ticks = int(np.asarray(moment).astype(np.int64))
        tick = beside_tick(
            ticks, int(np.asarray(self.last_time).astype(np.int64)), step_ticks(self.step), self.has_clock
        )
        return moment if tick is None else np.datetime64(tick, "us") if self.has_clock else tick

    def _show(self, t: int) -> str:
        return show_time(_time(self.times, t), self.time_zone)

    def moment(self, moment: Any) -> Any:
        """A time as people give it -> one of this panel's kind, on its clock."""
        tick = one_time(moment, self.has_clock, self.time_zone)
        return np.datetime64(tick, "us") if self.has_clock else tick


# -- the doors ---------------------------------------------------------------------------------------------


def read_panel(
    source: Any,
    positions: Any = None,
    adjacency: Any = None,
    *,
    layout: Literal["auto", "wide", "long"] = "auto",
    time: Any = None,
    sensor: str = "sensor",
    value: str = "value",
    step: Any = None,
    time_zone: Any = None,
    sensors: Sequence[Any] | None = None,
    start: Any = None,
    duplicates: Literal["error", "first", "last", "mean"] = "error",
    non_numeric: Literal["error", "missing"] = "error",
    missing_values: Any = None,
    decimal: str = ".",
    thousands: str | None = None,
    time_unit: str | None = None,
    time_format: str | None = None,
    geometry: Literal["lonlat", "xy"] | None = None,
) -> Panel:
    """Read a path, frame or array into a panel.

    What you need:
    source: a path (csv, csv.gz, tsv, parquet, feather), a pandas, polars or Arrow frame, a dict of columns, records, or
        an array (times, sensors). Wide frames have one column a sensor, and their times in the index, in a column
        `time`, or in the first column; long ones have the columns `time`, `sensor`, `value`.
    positions: a frame or path with `lon, lat` (or `longitude, latitude`) or `x, y` by sensor, a dict name -> (x, y), or
        an array in the order of the sensors.
    adjacency: a frame, path or list of edges (a, b[, weight]), or a (K, K) matrix; a weight is a distance.

    What you may skip:
    layout, time, sensor, value: how the frame is laid out, where "auto" or the usual names do not fit. For an array,
        `time` may be the times themselves.
    step: "1h", a timedelta, or a number of ticks; inferred as the most common difference when not stated.
    time_zone: the zone of times that have none (they become UTC inside), or another zone for the calendar.
    sensors: for an array the names; otherwise the sensors to keep, in this order.
    start: the first time of an array, with `step`.
    duplicates: what to do with different readings of one sensor and time.
    non_numeric: "missing" counts cells that are no numbers as missing.
    missing_values: readings that mean "missing", such as -9999 or "-".
    decimal, thousands: how numbers are written in text.
    time_unit: unit of times that are numbers since 1970 ("s", "ms", ...); without it whole numbers are ticks.
    time_format: how times are written in text, when not as ISO 8601, such as "%d.%m.%Y %H:%M".
    geometry: what unlabelled positions are: "xy" (when not stated) or "lonlat".
    """
    options = Options(
        layout, time, sensor, value, step, time_zone, sensors, start, duplicates,
        non_numeric, missing_values, decimal, thousands, time_unit, time_format,
    )  # fmt: skip
    options.check()
    if geometry is not None:
        one_of("geometry", geometry, ("lonlat", "xy"))
    panel, known = _read(source, options, None)
    if positions is not None:
        panel = _with_positions(panel, positions, options, geometry)
    if adjacency is not None:
        panel = _with_adjacency(panel, adjacency, known, options)
    return panel


def as_panel(data: Any, like: Panel | None = None, **how: Any) -> Panel:
    """A panel from a panel, frame or array; with `like`, its sensors, step and grid, and for arrays the times after it.

    A frame may leave sensors of `like` out (their readings are missing, and counted), but brings no new ones. `how` it
    is to be read, as for `read_panel`.
    """
    if isinstance(data, Panel):
        return data
    if like is None:
        return read_panel(data, **how)
    options = Options(**{"step": like.step, "time_zone": like.time_zone, **how})
    options.check()
    panel, _ = _read(data, options, like)
    return replace(panel, positions=like.positions, geometry=like.geometry, adjacency=like.adjacency)


def reorder(
    values: FloatArray, given: Sequence[str], wanted: Sequence[str], what: str
) -> tuple[FloatArray, int]:
    """The columns in the wanted order, and how many of them are absent (NaN)."""
    if tuple(given) == tuple(wanted):
        return values, 0
    column = {name: k for k, name in enumerate(wanted)}
    if unknown := [name for name in given if name not in column]:
        raise PanelError(
            f"{what} has the sensor {some_of(unknown)}, which the fitted data does not have (it has "
            f"{some_of(wanted)}); leave it out with sensors=, or fit again."
        )
    ordered = np.full((len(values), len(wanted)), np.nan)
    ordered[:, [column[name] for name in given]] = values
    return ordered, len(wanted) - len(given)


# -- from a source to a panel ------------------------------------------------------------------------------


def _read(source: Any, options: Options, like: Panel | None) -> tuple[Panel, frozenset[str]]:
    """The panel without positions, and the names of sensors the source has beyond it."""
    opened = open_source(source)
    if isinstance(opened, np.ndarray):
        given = from_array(opened, options, like)
    else:
        given = from_table(opened, options)
    if not given.sensors:
        raise PanelError(
            "The data has no sensor column; give at least one column of readings beside the times."
        )
    repairs = dict(given.counted)
    clean(given.values, options, repairs)
    given = without_empty_rows(given, repairs)
    given = on_utc(given, options, like, repairs)
    if like is not None and given.stamps.rows:
        last = int(np.asarray(like.last_time).astype(np.int64))
        after = last + step_ticks(like.step) * (given.stamps.ticks + 1)
        given = replace(given, stamps=Stamps(after, like.has_clock, like.time_zone))
    repairs["unsorted times"] = count_unsorted(given)
    grid = find_grid(given, options, like, repairs)
    values = fill_grid(given, grid, options, repairs)
    sensors = given.sensors
    if like is not None:
        values, repairs["absent sensors"] = reorder(values, sensors, like.sensors, "The data")
        sensors = like.sensors
    dead = int((~(~np.isnan(values)).any(axis=0)).sum())
    repairs["dead sensors"] = dead - repairs.get("absent sensors", 0)
    if given.counted["non-numeric"] and dead == len(sensors):
        raise PanelError(
            f"No cell of the data is a number ({given.counted['non-numeric']:,} others were found); give at least one "
            "reading."
        )
    counted = {name: repairs[name] for name in REPAIRS if repairs.get(name)}
    panel = Panel(
        values,
        sensors,
        grid.times(),
        grid.timedelta(),
        time_zone=given.stamps.zone,
        repairs=counted,
        frame=given.kind,
    )
    return panel, given.excluded


def _with_positions(panel: Panel, source: Any, options: Options, geometry: str | None) -> Panel:
    positions, geometry, extra = read_positions(source, panel.sensors, options, geometry)
    repairs = panel.repairs | ({"unknown positions": extra} if extra else {})
    return replace(panel, positions=positions, geometry=geometry, repairs=repairs)


def _with_adjacency(panel: Panel, source: Any, known: frozenset[str], options: Options) -> Panel:
    adjacency, loops = read_adjacency(source, panel.sensors, known, options)
    repairs = panel.repairs | ({"self edges": loops} if loops else {})
    return replace(panel, adjacency=adjacency, repairs=repairs)


def _time(times: npt.NDArray[Any], t: SupportsIndex) -> np.datetime64 | int:
    return cast(np.datetime64, times[t]) if times.dtype.kind == "M" else int(times[t])


def _read_only(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    view = array.view()  # the caller's own array stays writeable
    view.flags.writeable = False
    return view


def _slice_text(part: slice) -> str:
    return f"{'' if part.start is None else part.start}:{'' if part.stop is None else part.stop}"
