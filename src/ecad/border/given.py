"""a table or an array -> Given: its readings, times and sensors, one entry a row, before anything is on a grid."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from ..errors import PanelError, SettingError
from .arrays import BoolArray, FloatArray, IntArray
from .cells import Where, factorised, numbers_of_objects, read_numbers
from .names import label_of, names_of, natural_order, refuse_twice, some_of
from .options import LENIENT, Options
from .sources import Table
from .stamps import NOT_A_TIME, Stamps
from .timeline import array_stamps, frame_stamps

# the second is what pandas calls such a column when it reads it again
_NAMELESS = re.compile(r"|Unnamed: \d+")


@dataclass(frozen=True)
class Given:
    """A source taken apart, one entry a row, before anything is put on a grid."""

    values: FloatArray  # (rows, K) when wide, (rows,) when long
    stamps: Stamps
    sensors: tuple[str, ...]
    codes: IntArray | None  # sensor of each row when long
    kind: str
    counted: Counter[str] = field(default_factory=Counter)  # repairs of single cells
    excluded: frozenset[str] = frozenset()  # sensors of the source that were not selected

    def kept(self, rows: BoolArray) -> Given:
        if rows.all():
            return self
        codes = None if self.codes is None else self.codes[rows]
        stamps = replace(self.stamps, ticks=self.stamps.ticks[rows])
        return replace(self, values=self.values[rows], stamps=stamps, codes=codes)

    def has_reading(self) -> BoolArray:
        observed = ~np.isnan(self.values)
        return observed if self.codes is not None else np.asarray(observed.any(axis=1))

    def first_reading(self, row: int) -> str:
        if self.codes is not None:
            return self.sensors[int(self.codes[row])]
        return self.sensors[int(np.argmax(~np.isnan(self.values[row])))]


class Earlier(Protocol):
    """What new data continues: all that the border asks of an earlier panel."""

    @property
    def sensors(self) -> tuple[str, ...]: ...

    @property
    def last_time(self) -> np.datetime64 | int: ...

    @property
    def has_clock(self) -> bool: ...

    @property
    def time_zone(self) -> str | None: ...

    @property
    def frame(self) -> str: ...


def from_array(array: npt.NDArray[Any], options: Options, like: Earlier | None) -> Given:
    """An array (times, sensors) taken apart; with `like`, its columns are the sensors of it."""
    array = array.reshape(len(array), -1) if array.size else array.reshape(len(array), 0)
    n_times, n_sensors = array.shape
    if not n_times:
        raise PanelError("The array has no rows; give at least one time.")
    if like is not None:
        names = like.sensors
    elif options.sensors is not None:
        names = names_of(options.sensors)
        refuse_twice(names, "sensors=")
    else:
        names = tuple(str(k) for k in range(n_sensors))
    if len(names) != n_sensors:
        raise PanelError(
            f"The array has {n_sensors} columns for {len(names)} sensors ({some_of(names)}); "
            f"give one column a sensor: shape ({n_times}, {len(names)})."
        )
    stamps = array_stamps(n_times, options)
    if array.dtype.kind in "biuf":
        return Given(
            np.array(array, dtype=np.float64, order="C"),
            stamps,
            names,
            None,
            "pandas" if like is None else like.frame,
        )
    values = np.empty(array.shape)
    counted: Counter[str] = Counter()
    for k, name in enumerate(names):
        values[:, k], found = numbers_of_objects(array[:, k].astype(object), _at(name, stamps), options)
        counted += found
    return Given(values, stamps, names, None, "pandas" if like is None else like.frame, counted)


def _at(sensor: str, stamps: Stamps) -> Where:
    return lambda row: f"sensor {sensor!r} at {stamps.show(row)}"


def from_table(table: Table, options: Options) -> Given:
    """A table taken apart, wide or long."""
    if options.start is not None:
        raise SettingError("start= is for arrays; a frame has its own times.")
    if not len(table.frame):
        raise PanelError("The data has no rows; give at least two times, or one and its step.")
    if options.time is not None and not isinstance(options.time, str):
        raise SettingError(
            f"time={options.time!r} must be the name of a column when the data is a frame or a path."
        )
    table = _row_numbers_apart(table, options)
    if _is_long(table, options):
        return _from_long(table, options)
    return _from_wide(table, options)


def _row_numbers_apart(table: Table, options: Options) -> Table:
    """A column without a name that counts 0, 1, 2, ... is the index of a frame that was written to a file."""
    asked = () if options.sensors is None else names_of(options.sensors)
    nameless = [name for name in table.frame.columns if _NAMELESS.fullmatch(name) and name not in asked]
    if table.index is not None or not nameless or len(table.frame.columns) == 1:
        return table
    numbers, _ = read_numbers(table.frame[nameless[0]], lambda row: "", LENIENT, None)
    if not (len(numbers) > 1 and np.isfinite(numbers).all() and np.all(np.diff(numbers) == 1)):
        return table
    index = table.frame[nameless[0]]
    return table._replace(frame=table.frame.drop(nameless[0]), index=index, row_numbers=True)


def _is_long(table: Table, options: Options) -> bool:
    names = set(table.frame.columns)
    usual = (options.sensor, options.value) == ("sensor", "value")
    absent = [name for name in (options.sensor, options.value) if name not in names]
    if not absent:
        return options.layout != "wide"
    if options.layout == "wide" or (options.layout == "auto" and usual and "sensor" in absent):
        return False
    raise PanelError(
        f"Long data needs the columns {options.sensor!r} and {options.value!r}, but the data has "
        f"{some_of(sorted(names))}; say sensor= and value=, or layout='wide' for one column a sensor."
    )


def _from_wide(table: Table, options: Options) -> Given:
    name, stamps = frame_stamps(table, options, frozenset())
    every = tuple(column for column in table.frame.columns if column != name)
    if "" in every and options.sensors is None:
        raise PanelError(
            f"Column {table.frame.columns.index('') + 1} of the data has no name: name the sensor that it is, or leave "
            "it out with sensors=."
        )
    names = every
    if options.sensors is not None:
        names = names_of(options.sensors)
        refuse_twice(names, "sensors=")
        if unknown := [sensor for sensor in names if sensor not in every]:
            raise PanelError(
                f"sensors= names {some_of(unknown)}, but the data has {some_of(every)}; name its columns."
            )
    values = np.empty((len(names), len(table.frame)))
    counted = _left_out(table, name)
    for k, sensor in enumerate(names):
        values[k], found = read_numbers(table.frame[sensor], _at(sensor, stamps), options, sensor)
        counted += found
    return Given(
        np.ascontiguousarray(values.T),
        stamps,
        names,
        None,
        table.kind,
        counted,
        frozenset(every) - frozenset(names),
    )


def _left_out(table: Table, time: str | None) -> Counter[str]:
    """Row numbers are left out where something else is the time."""
    return Counter({"row numbers": 1} if table.row_numbers and time is not None else {})


def _from_long(table: Table, options: Options) -> Given:
    frame = table.frame
    name, stamps = frame_stamps(table, options, frozenset({options.sensor, options.value}))
    codes, every = _sensor_codes(frame[options.sensor], table.text)

    def where(row: int) -> str:
        who = repr(every[int(codes[row])]) if codes[row] >= 0 else "without a name"
        return f"sensor {who} at {stamps.show(row)}"

    cells, counted = read_numbers(frame[options.value], where, options, None)
    counted += _left_out(table, name)
    values = cells.copy()  # the column may be the caller's own memory
    nameless = codes < 0
    if nameless.any():
        lost = nameless & ~(np.isnan(values) & (stamps.ticks == NOT_A_TIME))
        if lost.any():
            row = int(np.argmax(lost))
            raise PanelError(
                f"Data row {row + 1} (time {stamps.show(row)}) names no sensor; fill the column {options.sensor!r} "
                "or drop the row."
            )
        codes = np.where(nameless, 0, codes)
    given = Given(values, stamps, every, codes, table.kind, counted)
    return given if options.sensors is None else _long_selection(given, names_of(options.sensors))


def _long_selection(given: Given, names: tuple[str, ...]) -> Given:
    refuse_twice(names, "sensors=")
    place = {name: k for k, name in enumerate(given.sensors)}
    if unknown := [name for name in names if name not in place]:
        raise PanelError(
            f"sensors= names {some_of(unknown)}, but the data has {some_of(given.sensors)}; name those."
        )
    new = np.full(len(given.sensors), -1, dtype=np.int64)
    new[[place[name] for name in names]] = np.arange(len(names))
    assert given.codes is not None
    codes = new[given.codes]
    given = replace(given, codes=codes, sensors=names, excluded=frozenset(given.sensors) - frozenset(names))
    return given.kept(codes >= 0)


def _sensor_codes(labels: Any, text: bool) -> tuple[IntArray, tuple[str, ...]]:
    """Each row's place among the sorted names: sorted, because the order of rows says nothing."""
    codes, unique = factorised(labels, "sensors")
    names = [label_of(name) for name in unique]
    names = [name.strip() for name in names] if text else names
    ordered = sorted(set(names), key=natural_order)
    place = {name: k for k, name in enumerate(ordered)}
    new = np.array([place[name] for name in names] + [-1], dtype=np.int64)  # code -1, no name, is the last
    return new[codes], tuple(ordered)


def without_empty_rows(given: Given, repairs: dict[str, int]) -> Given:
    """The rows that have a time; those without may hold no reading."""
    timeless = given.stamps.ticks == NOT_A_TIME
    if not len(timeless):
        raise PanelError("The data has no rows; give at least two times, or one and its step.")
    if not timeless.any():
        return given
    if (lost := timeless & given.has_reading()).any():
        row = int(np.argmax(lost))
        raise PanelError(
            f"Data row {row + 1} has a reading of sensor {given.first_reading(row)!r} but no time; "
            f"fill the time in or drop the row."
        )
    repairs["empty rows"] = int(timeless.sum())
    given = given.kept(~timeless)
    if not len(given.stamps.ticks):
        raise PanelError("The data has no row with a time; give at least two times, or one and its step.")
    return given


def count_unsorted(given: Given) -> int:
    """How many rows came earlier than the row before, of the same sensor when long."""
    ticks = given.stamps.ticks
    back = np.diff(ticks) < 0
    if given.codes is None or not back.any():
        return int(back.sum())
    order = np.argsort(given.codes.astype(_smallest(len(given.sensors))), kind="stable")
    same = np.diff(given.codes[order]) == 0  # stacked sensor by sensor is sorted too
    return int((same & (np.diff(ticks[order]) < 0)).sum())


def _smallest(n: int) -> type[np.signedinteger[Any]]:
    """The narrowest integer for codes below n: numpy sorts 16 bits by radix."""
    return np.int16 if n < 2**15 else np.int64
