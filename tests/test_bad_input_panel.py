"""Every kind of bad input has one outcome: an error that says where and what to do, or a counted repair."""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Callable
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from ecad.errors import EcadError, PanelError, SettingError
from ecad.panel import Panel, as_panel, read_panel

NaN = np.nan
HOURS = ["2025-01-01 00:00", "2025-01-01 01:00", "2025-01-01 02:00"]


def wide(time: Any = None, **sensors: Any) -> pd.DataFrame:
    return pd.DataFrame({"time": HOURS if time is None else time, **sensors})


def long(*rows: tuple[Any, Any, Any]) -> pd.DataFrame:
    return pd.DataFrame(list(rows), columns=["time", "sensor", "value"])


GOOD = wide(a=[1.0, 2.0, 3.0], b=[4.0, 5.0, 6.0])
GOOD_ROWS = [[1.0, 4.0], [2.0, 5.0], [3.0, 6.0]]
BERLIN = ZoneInfo("Europe/Berlin")
AUTUMN = "2025-10-26 02:00"  # shown twice in Berlin
SPRING = "2025-03-30 02:00"  # skipped in Berlin


class Refused(NamedTuple):
    """An input that is refused, and the words the error must have."""

    name: str
    source: Any
    options: dict[str, Any]
    error: type[EcadError]
    words: tuple[str, ...]


class Repaired(NamedTuple):
    """An input that is repaired: what is counted, and the values after it."""

    name: str
    source: Any
    options: dict[str, Any]
    repairs: dict[str, int]
    values: list[list[float]]


REFUSED = [
    # cells
    Refused("times as a spreadsheet counts them", {"time": [45658.0, 45658.0417, 45658.0833], "a": [1, 2, 3]}, {},
            PanelError, ("45658.0417", "subtract 25569", "time_unit='D'")),
    Refused("a text among readings", wide(a=["1", "abc", "3"]), {}, PanelError,
            ("'a'", "2025-01-01 01:00:00", "'abc'", "non_numeric='missing'")),
    Refused("a text among readings of long data", long((HOURS[0], "s1", "1"), (HOURS[1], "s2", "?")), {},
            PanelError,
            ("'s2'", "2025-01-01 01:00:00", "'?'", "non_numeric='missing'")),
    Refused("a text among objects", wide(a=[1.0, "n.d.", None]), {}, PanelError,
            ("'a'", "2025-01-01 01:00:00", "'n.d.'", "non_numeric='missing'")),
    Refused("a decimal comma", wide(a=["1,5", "2,5", "3,5"]), {}, PanelError,
            ("'a'", "2025-01-01 00:00:00", "'1,5'", "decimal=','")),
    Refused("a thousands sign", wide(a=["1,234.5", "2", "3"]), {}, PanelError,
            ("'a'", "'1,234.5'", "thousands=','")),
    Refused("decimal comma and thousands point", wide(a=["1.234,5", "2", "3"]), {}, PanelError,
            ("'1.234,5'", "decimal=','", "thousands='.'")),
    Refused("a comma that may be either sign", wide(a=["1,234", "2", "3"]), {}, PanelError,
            ("'1,234'", "decimal=','", "thousands=','")),
    Refused("a point where the comma is the decimal sign", wide(a=["1.5", "2", "3"]), {"decimal": ","},
            PanelError,
            ("'1.5'", "decimal='.'")),
    Refused("a column of names", wide(a=[1, 2, 3], station=["north", "north", "south"]), {}, PanelError,
            ("'station'", "'north'", "sensors=", "sensor='station'")),
    Refused("a column of times as a sensor", wide(a=[1, 2, 3], seen=pd.to_datetime(HOURS)), {}, PanelError,
            ("'seen'", "2025-01-01 00:00:00", "not a number")),
    Refused("complex numbers", np.array([[1 + 2j], [3 + 0j]]), {}, PanelError,
            ("'0'", "tick 0", "not a number")),
    Refused("lists as cells", wide(a=[[1], [2], [3]]), {}, PanelError,
            ("'a'", "2025-01-01 00:00:00", "not a number")),
    Refused("no cell that is a number", wide(a=["x", "y", "z"]), {"non_numeric": "missing"}, PanelError,
            ("No cell", "3 others", "at least one reading")),
    # readings given twice
    Refused("two readings of one sensor and time",
            long((HOURS[0], "a", 1), (HOURS[0], "a", 2), (HOURS[1], "a", 3)), {},
            PanelError, ("'a'", "2025-01-01 00:00:00", "1.0 and 2.0", "duplicates='first'")),
    Refused("two rows of one time", wide([HOURS[0], HOURS[1], HOURS[1]], a=[1, 2, 3]), {}, PanelError,
            ("'a'", "2025-01-01 01:00:00", "2.0 and 3.0", "duplicates=")),
    Refused("the hour shown twice on a clock without zone",
            wide(["2025-10-26 01:00", AUTUMN, AUTUMN, "2025-10-26 03:00"], a=[1, 2, 3, 4]), {}, PanelError,
            ("'a'", "2025-10-26 02:00:00", "time_zone=", "UTC", "duplicates=")),
    Refused("two columns of one name", pd.DataFrame([[1, 2.0, 3.0], [2, 2.0, 3.0]],
            columns=["time", "a", "a"]), {},
            PanelError, ("'a'", "more than once")),
    Refused("a sensor without a name", pd.DataFrame([[HOURS[0], 2.0], [HOURS[1], 3.5]], columns=["time", ""]), {},
            PanelError, ("Column 2", "no name", "sensors=")),
    Refused("two columns of one name as text", pd.DataFrame([[1, 2.0, 3.0]], columns=["time", 1, "1"]), {},
            PanelError, ("'1'", "more than once")),
    Refused("two Arrow columns of one name",
            pa.table([[1, 2], [3.0, 4.0], [5.0, 6.0]], names=["time", "b", "b"]), {},
            PanelError, ("'b'", "more than once")),
    # times
    Refused("times with and without zone", wide([HOURS[0], "2025-01-01T01:00Z", HOURS[2]], a=[1, 2, 3]), {},
            PanelError,
            (HOURS[0], "2025-01-01T01:00Z", "all or none")),
    Refused("time objects with and without zone",
            wide([dt.datetime(2025, 1, 1), dt.datetime(2025, 1, 1, 1, tzinfo=dt.UTC), None], a=[1, 2, NaN]), {},
            PanelError, ("row 1", "row 2", "UTC", "all or none")),
    Refused("times of two offsets", wide(["2025-03-30T01:00+01:00", "2025-03-30T03:00+02:00", None],
            a=[1, 2, NaN]), {},
            PanelError, ("+01:00", "+02:00", "time_zone=")),
    Refused("time objects of two zones",
            wide([dt.datetime(2025, 1, 1, tzinfo=BERLIN), dt.datetime(2025, 1, 1, 5, tzinfo=dt.UTC), None],
                 a=[1, 2, NaN]), {}, PanelError, ("Europe/Berlin", "UTC", "row 1", "row 2", "time_zone=")),
    Refused("a time that is none", wide([HOURS[0], "yesterday", HOURS[2]], a=[1, 2, 3]), {}, PanelError,
            ("row 2", "'yesterday'", "time_format=")),
    Refused("the word now as a time", wide([HOURS[0], "now", HOURS[2]], a=[1, 2, 3]), {}, PanelError,
            ("row 2", "'now'", "time_format=")),
    Refused("a time with the day first", wide(["13/01/2025 00:00", "13/01/2025 01:00", None], a=[1, 2, NaN]),
            {},
            PanelError, ("row 1", "'13/01/2025 00:00'", "time_format=", "%d/%m/%Y %H:%M")),
    Refused("a time that does not fit time_format", wide(["13.01.2025", "14/01/2025", None], a=[1, 2, NaN]),
            {"time_format": "%d.%m.%Y"}, PanelError, ("row 2", "'14/01/2025'", "%d.%m.%Y")),
    Refused("a reading without time", wide([HOURS[0], None, HOURS[2]], a=[1, 2, 3]), {}, PanelError,
            ("row 2", "'a'", "no time", "drop the row")),
    Refused("a reading without sensor", long((HOURS[0], "a", 1), (HOURS[1], None, 2)), {}, PanelError,
            ("row 2", "2025-01-01 01:00:00", "names no sensor")),
    Refused("a time off the grid", wide([HOURS[0], HOURS[1], "2025-01-01 02:00", "2025-01-01 02:30"],
            a=[1, 2, 3, 4]), {},
            PanelError, ("2025-01-01 02:30:00", "1h", "step='30min'")),
    Refused("a time off the stated step", wide(a=[1, 2, 3]), {"step": "2h"}, PanelError,
            ("2025-01-01 01:00:00", "stated step 2h", "step='1h'")),
    Refused("one row", wide(HOURS[:1], a=[1]), {}, PanelError,
            ("only one time", "2025-01-01 00:00:00", "step='1h'")),
    Refused("no rows", wide([], a=[]), {}, PanelError, ("no rows",)),
    Refused("an array without rows", np.empty((0, 3)), {}, PanelError, ("no rows",)),
    Refused("no sensor columns", pl.DataFrame({"time": HOURS}), {"time": "time"}, PanelError,
            ("no sensor column",)),
    Refused("a year beyond all clocks", wide([dt.datetime(9999, 1, 1), dt.datetime(9999, 1, 2), None],
            a=[1, 2, NaN]),
            {}, PanelError, ("row 1", "9999", "1678 to 2261")),
    Refused("a year that overflows", wide(np.array(["900000-01-01"] * 3, "datetime64[s]"), a=[1, 2, 3]), {},
            PanelError,
            ("row 1", "900000", "1678 to 2261",)),
    Refused("seconds since 1970 without unit", wide([1735689600, 1735693200, 1735696800], a=[1, 2, 3]), {},
            PanelError,
            ("3600 apart", "time_unit='s'", "step=3600")),
    Refused("seconds since 1970 in the wrong unit", wide([1735689600.0, 1735693200.0, NaN], a=[1, 2, NaN]),
            {"time_unit": "D"}, PanelError, ("row 1", "1735689600", "correct the unit")),
    Refused("dates as whole numbers", wide([20250131, 20250201, 20250202], a=[1, 2, 3]), {}, PanelError,
            ("20250131", "time_format='%Y%m%d'")),
    Refused("tick numbers with fractions", wide([0.5, 1.5, 2.5], a=[1, 2, 3]), {}, PanelError,
            ("row 1", "0.5", "time_unit=")),
    Refused("tick numbers with a zone", wide([0, 1, 2], a=[1, 2, 3]), {"time_zone": "UTC"}, SettingError,
            ("tick numbers", "time_unit=")),
    Refused("durations as times", wide(pd.to_timedelta([0, 1, 2], "h"), a=[1, 2, 3]), {}, PanelError,
            ("duration",)),
    Refused("truth values as times", wide([True, False, True], a=[1, 2, 3]), {}, PanelError, ("boolean",)),
    Refused("gaps that make a huge panel",
            wide(["2025-01-01 00:00:00", "2025-01-01 00:00:01", "2025-06-01"], a=[1, 2, 3]),
            {}, PanelError, ("inferred step 1s", "3 given times", "step='1h'")),
    Refused("a stated step that makes a huge panel",
            wide(["2025-01-01", "2025-06-01", "2025-07-01"], a=[1, 2, 3]),
            {"step": "10ms"}, PanelError, ("stated step 10ms", "cells")),
    Refused("tick numbers far apart", wide([0, 1, 2 * 10**9], a=[1, 2, 3]), {}, PanelError, ("time_unit='s'",)),
    Refused("a reading in the skipped hour",
            wide(["2025-03-30 01:00", SPRING, "2025-03-30 03:00"], a=[1, 2, 3]),
            {"time_zone": "Europe/Berlin"}, PanelError, ("'a'", "2025-03-30 02:00:00", "skips", "'+01:00'")),
    Refused("the hour shown twice in no order",
            wide(["2025-10-26 02:30", AUTUMN, "2025-10-26 02:30", AUTUMN], a=[1, 2, 3, 4]),
            {"time_zone": "Europe/Berlin"}, PanelError, ("2025-10-26 02:", "twice", "UTC")),
    # layout and options
    Refused("long data without values", long((HOURS[0], "a", 1)).drop(columns="value"), {"layout": "long"},
            PanelError,
            ("'sensor' and 'value'", "value=")),
    Refused("long data under another name", long((HOURS[0], "a", 1)), {"value": "reading"}, PanelError,
            ("'reading'", "value=")),
    Refused("a column of times that is not there", GOOD, {"time": "when"}, PanelError,
            ("'when'", "'time', 'a', 'b'")),
    Refused("a sensor that is not there", GOOD, {"sensors": ["a", "c"]}, PanelError, ("'c'", "'a', 'b'")),
    Refused("a sensor chosen twice", GOOD, {"sensors": ["a", "a"]}, PanelError, ("'a'", "more than once")),
    Refused("names for fewer columns", np.zeros((3, 2)), {"sensors": ["a"]}, PanelError,
            ("2 columns", "1 sensors")),
    Refused("an array of three axes", np.zeros((2, 2, 2)), {}, PanelError, ("(2, 2, 2)", "(times, sensors)")),
    Refused("lists of different lengths", [[1, 2], [3]], {}, PanelError, ("one shape",)),
    Refused("something else", object(), {}, PanelError, ("object", "a frame")),
    Refused("columns of different lengths", {"time": HOURS, "a": [1]}, {}, PanelError, ("same length",)),
    Refused("times for other rows", np.zeros((2, 1)), {"time": HOURS}, PanelError, ("3 times", "2 rows")),
    Refused("a start without step", np.zeros((2, 1)), {"start": "2025-01-01"}, SettingError, ("step='1h'",)),
    Refused("a step without start", np.zeros((2, 1)), {"step": "1h"}, SettingError, ("start=",)),
    Refused("a start for a frame", GOOD, {"start": "2025-01-01"}, SettingError, ("for arrays",)),
    Refused("a step without unit", GOOD, {"step": 3600}, SettingError, ("no unit", "'1h'")),
    Refused("a step of no fixed length", GOOD, {"step": "1 month"}, SettingError, ("'1 month'", "'1D'")),
    Refused("a step of nothing", GOOD, {"step": "0h"}, SettingError, ("longer than nothing",)),
    Refused("a step of time for ticks", wide([0, 1, 2], a=[1, 2, 3]), {"step": "1h"}, PanelError,
            ("tick numbers", "time_unit=")),
    Refused("an unknown zone", GOOD, {"time_zone": "Berlin"}, SettingError, ("'Berlin'", "'Europe/Berlin'")),
    Refused("an unknown rule", GOOD, {"duplicates": "maybe"}, SettingError, ("'maybe'", "'mean'")),
    Refused("one sign for two things", GOOD, {"decimal": ",", "thousands": ","}, SettingError, ("differ",)),
    # positions
    Refused("sensors without position", GOOD, {"positions": {"a": (0, 0)}}, PanelError,
            ("1 of 2", "'b'", "drop")),
    Refused("many sensors without position", np.zeros((2, 9)), {"positions": {"0": (0, 0)}}, PanelError,
            ("8 of 9", "'1', '2', '3', '4', '5' and 3 more")),
    Refused("a latitude beyond the pole", GOOD,
            {"positions": pd.DataFrame({"lon": [51.9, 7], "lat": [97, 51]}, index=["a", "b"])},
            PanelError, ("'a'", "lat 97.0", "[-90, 90]", "swapped")),
    Refused("a longitude beyond the globe", GOOD,
            {"positions": {"a": (400, 0), "b": (0, 0)}, "geometry": "lonlat"},
            PanelError, ("'a'", "400.0", "[-180, 360]")),
    Refused("an incomplete position", GOOD, {"positions": {"a": (0, NaN), "b": (0, 0)}}, PanelError,
            ("'a'", "incomplete")),
    Refused("a position that is a text", GOOD,
            {"positions": {"sensor": ["a", "b"], "x": ["0", "far"], "y": [0, 1]}},
            PanelError, ("'b'", "'far'")),
    Refused("two positions of one sensor", GOOD,
            {"positions": {"sensor": ["a", "a", "b"], "x": [0, 1, 2], "y": [0, 0, 0]}},
            PanelError, ("'a'", "two positions")),
    Refused("positions without coordinates", GOOD,
            {"positions": pd.DataFrame({"sensor": ["a", "b"], "east": [0, 1]})},
            PanelError, ("'east'", "'lon' and 'lat'")),
    Refused("positions of another shape", GOOD, {"positions": np.zeros((3, 2))}, PanelError,
            ("(3, 2)", "(2, 2)")),
    # adjacency
    Refused("edges of unknown sensors", GOOD, {"adjacency": [("a", "b"), ("a", "z")]}, PanelError,
            ("'z'", "drop their edges")),
    Refused("an edge of negative length", GOOD, {"adjacency": [("a", "b", -1)]}, PanelError,
            ("'a' - 'b'", "-1.0", "0 or more")),
    Refused("two lengths of one edge", GOOD, {"adjacency": [("a", "b", 1), ("b", "a", 2)]}, PanelError,
            ("two weights", "no direction")),
    Refused("a matrix of another size", GOOD, {"adjacency": np.ones((4, 4))}, PanelError, ("(4, 4)", "(2, 2)")),
    Refused("edges that are none", GOOD, {"adjacency": ["ab"]}, PanelError, ("edges", "(a, b, weight)")),
]  # fmt: skip


REPAIRED = [
    Repaired("nothing to repair", GOOD, {}, {}, GOOD_ROWS),
    Repaired("row numbers beside the times", pd.DataFrame({"": [0, 1, 2], "time": HOURS, "a": [7, 8, 9]}), {},
             {"row numbers": 1}, [[7], [8], [9]]),
    Repaired("row numbers read again by pandas",
             pd.DataFrame({"Unnamed: 0": [40, 41, 42], "when": HOURS, "a": [7, 8, 9]}), {},
             {"row numbers": 1}, [[7], [8], [9]]),
    Repaired("row numbers of long data",
             pd.DataFrame({"": ["1", "2", "3"], "time": HOURS, "sensor": "a", "value": [7, 8, 9]}), {},
             {"row numbers": 1}, [[7], [8], [9]]),
    Repaired("row numbers that are the times", pd.DataFrame({"": [5, 6, 7], "a": [7, 8, 9], "b": [1, 2, 3]}), {},
             {}, [[7, 1], [8, 2], [9, 3]]),
    Repaired("row numbers that are asked for",
             pd.DataFrame({"Unnamed: 0": [5, 6, 7], "time": HOURS, "a": [7, 8, 9]}), {"sensors": ["Unnamed: 0"]},
             {}, [[5], [6], [7]]),
    Repaired("infinite readings", wide(a=[1, np.inf, -np.inf]), {}, {"infinite": 2}, [[1], [NaN], [NaN]]),
    Repaired("a sentinel", wide(a=[1, -9999, 3]), {"missing_values": -9999}, {"missing values": 1},
             [[1], [NaN], [3]]),
    Repaired("a sentinel in float32", wide(a=np.array([1, -99.99, 3], np.float32)),
             {"missing_values": [-99.99]},
             {"missing values": 1}, [[1], [NaN], [3]]),
    Repaired("a sentinel that is a text", wide(a=["1", "err", "3"]), {"missing_values": "err"}, {"missing values": 1},
             [[1], [NaN], [3]]),
    Repaired("texts counted as missing", wide(a=["1", "abc", "3"]), {"non_numeric": "missing"},
             {"non-numeric": 1},
             [[1], [NaN], [3]]),
    Repaired("words for missing", wide(a=["", "NA", "nan"], b=["null", " 2 ", "None"]), {}, {"dead sensors": 1},
             [[NaN, NaN], [NaN, 2], [NaN, NaN]]),
    Repaired("unsorted times", wide(HOURS[::-1], a=[3, 2, 1]), {}, {"unsorted times": 2}, [[1], [2], [3]]),
    Repaired("rows stacked by sensor are sorted", long(*((h, s, 1) for s in "ab" for h in HOURS)), {}, {},
             [[1, 1]] * 3),
    Repaired("missing ticks", wide([*HOURS[:2], "2025-01-01 04:00"], a=[1, 2, 5]), {}, {"missing ticks": 2},
             [[1], [2], [NaN], [NaN], [5]]),
    Repaired("equal readings given twice", long((HOURS[0], "a", 1), (HOURS[0], "a", 1), (HOURS[1], "a", 2)), {},
             {"duplicates": 1}, [[1], [2]]),
    Repaired("a hole beside a reading is no duplicate",
             wide([HOURS[0], HOURS[1], HOURS[1]], a=[1, NaN, 3], b=[4, 5, NaN]),
             {}, {}, [[1, 4], [3, 5]]),
    Repaired("the first of two readings", wide([HOURS[0], HOURS[1], HOURS[1]], a=[1, 2, 3]),
             {"duplicates": "first"},
             {"duplicates": 1}, [[1], [2]]),
    Repaired("the last of two readings", wide([HOURS[0], HOURS[1], HOURS[1]], a=[1, 2, 3]),
             {"duplicates": "last"},
             {"duplicates": 1}, [[1], [3]]),
    Repaired("the mean of two readings", wide([HOURS[0], HOURS[1], HOURS[1]], a=[1, 2, 3]),
             {"duplicates": "mean"},
             {"duplicates": 1}, [[1], [2.5]]),
    Repaired("clocks that wander", wide(["2025-01-01 00:00:02", "2025-01-01 00:59:58", "2025-01-01 02:00:01"],
             a=[1, 2, 3]),
             {}, {"snapped times": 3}, [[1], [2], [3]]),
    Repaired("one clock that wanders once", wide([*HOURS[:2], "2025-01-01 02:00:09"], a=[1, 2, 3]), {},
             {"snapped times": 1}, [[1], [2], [3]]),
    Repaired("empty rows", wide([*HOURS[:2], None], a=[1, 2, NaN]), {}, {"empty rows": 1}, [[1], [2]]),
    Repaired("a dead sensor stays", wide(a=[1, 2, 3], b=[NaN] * 3), {}, {"dead sensors": 1},
             [[1, NaN], [2, NaN], [3, NaN]]),
    Repaired("a column of nothing is a dead sensor",
             pl.DataFrame({"time": HOURS, "a": [1, 2, 3], "b": [None] * 3}), {},
             {"dead sensors": 1}, [[1, NaN], [2, NaN], [3, NaN]]),
    Repaired("a constant sensor stays", wide(a=[7, 7, 7]), {}, {}, [[7], [7], [7]]),
    Repaired("truth values", wide(a=[True, False, True]), {}, {}, [[1], [0], [1]]),
    Repaired("truth values as texts", wide(a=["True", "false", ""]), {}, {}, [[1], [0], [NaN]]),
    Repaired("decimals", wide(a=[decimal.Decimal("1.5"), None, decimal.Decimal("NaN")]), {}, {},
             [[1.5], [NaN], [NaN]]),
    Repaired("Arrow decimals", pa.table({"time": HOURS, "a": pa.array([decimal.Decimal("1.5"), None, None])}),
             {}, {},
             [[1.5], [NaN], [NaN]]),
    Repaired("nullable whole numbers", wide(a=pd.array([1, None, 3], dtype="Int64")), {}, {},
             [[1], [NaN], [3]]),
    Repaired("categories", wide(a=pd.Categorical(["1", "2", None])), {}, {}, [[1], [2], [NaN]]),
    Repaired("masked cells", np.ma.array([[1.0], [2.0]], mask=[[False], [True]]), {}, {}, [[1], [NaN]]),
    Repaired("None among lists", [[1, None], [2, 3]], {}, {}, [[1, NaN], [2, 3]]),
    Repaired("texts in lists", [["1", "x"], ["2", "3"]], {"non_numeric": "missing"}, {"non-numeric": 1},
             [[1, NaN], [2, 3]]),
    Repaired("a stated decimal comma", wide(a=["1,5", "-2,5", "3"]), {"decimal": ","}, {},
             [[1.5], [-2.5], [3]]),
    Repaired("stated thousands", wide(a=["1.234,5", "2", "1.000.000"]), {"decimal": ",", "thousands": "."}, {},
             [[1234.5], [2], [1e6]]),
    Repaired("one row and its step", wide(HOURS[:1], a=[1]), {"step": "1h"}, {}, [[1]]),
    Repaired("seconds since 1970", wide([1735689600, 1735693200, 1735700400], a=[1, 2, 4]), {"time_unit": "s"},
             {"missing ticks": 1}, [[1], [2], [NaN], [4]]),
    Repaired("tick numbers with a gap", wide([5, 6, 8], a=[1, 2, 4]), {}, {"missing ticks": 1},
             [[1], [2], [NaN], [4]]),
    Repaired("the skipped hour is a hole on a clock without zone",
             wide(["2025-03-30 00:00", "2025-03-30 01:00", "2025-03-30 03:00"], a=[1, 2, 4]), {},
             {"missing ticks": 1},
             [[1], [2], [NaN], [4]]),
    Repaired("the skipped hour is no hour in its zone",
             wide(["2025-03-30 00:00", "2025-03-30 01:00", "2025-03-30 03:00"], a=[1, 2, 4]),
             {"time_zone": "Europe/Berlin"}, {}, [[1], [2], [4]]),
    Repaired("an empty row in the skipped hour",
             wide(["2025-03-30 01:00", SPRING, "2025-03-30 03:00"], a=[1, NaN, 3]),
             {"time_zone": "Europe/Berlin"}, {"skipped hours": 1}, [[1], [3]]),
    Repaired("a sentinel in the skipped hour",
             wide(["2025-03-30 01:00", SPRING, "2025-03-30 03:00"], a=[1, -9999, 3]),
             {"time_zone": "Europe/Berlin", "missing_values": -9999}, {"missing values": 1, "skipped hours": 1},
             [[1], [3]]),
    Repaired("the hour shown twice in its zone",
             wide(["2025-10-26 01:00", AUTUMN, AUTUMN, "2025-10-26 03:00"], a=[1, 2, 3, 4]),
             {"time_zone": "Europe/Berlin"}, {}, [[1], [2], [3], [4]]),
    Repaired("the hour shown twice given once",
             wide(["2025-10-26 01:00", AUTUMN, "2025-10-26 03:00"], a=[1, 2, 4]),
             {"time_zone": "Europe/Berlin", "step": "1h"}, {"ambiguous hours": 1, "missing ticks": 1},
             [[1], [2], [NaN], [4]]),
    Repaired("the hour shown twice in long data",
             long(*((h, s, v) for s in "ab" for v,
             h in enumerate(["2025-10-26 01:00", AUTUMN, AUTUMN, "2025-10-26 03:00"]))),
             {"time_zone": "Europe/Berlin"}, {}, [[0, 0], [1, 1], [2, 2], [3, 3]]),
    Repaired("two offsets with a stated zone",
             wide(["2025-03-30T01:00+01:00", "2025-03-30T03:00+02:00", None], a=[1, 2, NaN]),
             {"time_zone": "Europe/Berlin"}, {"empty rows": 1}, [[1], [2]]),
    Repaired("positions of unknown sensors", GOOD, {"positions": {"a": (0, 0), "b": (1, 1), "z": (2, 2)}},
             {"unknown positions": 1}, GOOD_ROWS),
    Repaired("edges from a sensor to itself", GOOD, {"adjacency": [("a", "a"), ("a", "b")]},
             {"self edges": 1}, GOOD_ROWS),
    Repaired("a column of nothing but texts may be left out", wide(a=[1, 2, 3], note=["x", "", "y"]),
             {"sensors": ["a"]}, {},
             [[1], [2], [3]]),
]  # fmt: skip


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.name)
def test_bad_input_is_refused_with_place_and_remedy(case: Refused) -> None:
    with pytest.raises(EcadError) as caught:
        read_panel(case.source, **case.options)
    assert type(caught.value) is case.error
    for word in case.words:
        assert word in str(caught.value)


@pytest.mark.parametrize("case", REPAIRED, ids=lambda case: case.name)
def test_bad_input_is_repaired_and_counted(case: Repaired) -> None:
    panel = read_panel(case.source, **case.options)
    np.testing.assert_array_equal(panel.values, np.array(case.values, dtype=float))
    assert panel.repairs == case.repairs
    for name in case.repairs:
        assert str(case.repairs[name]) in panel.describe()


# -- files -------------------------------------------------------------------------------------------------

FILES = [
    ("a file that is not there", "none.csv", None, ("none.csv", "no file")),
    ("an unknown ending", "panel.xlsx", b"", (".xlsx", "parquet")),
    ("an empty file", "panel.csv", b"", ("panel.csv", "empty")),
    ("a file without a header", "panel.csv", b"2025-01-01,7.0,8\n2025-01-02,8.0,9\n",
     ("first row", "'2025-01-01'", "write a header")),
    ("a file of numbers without a header", "panel.csv", b"0,7.0,7.0\n1,8.0,9.0\n",
     ("first row", "'7.0'", "write a header")),
    ("a file with a header only", "panel.csv", b"time,a\n", ("no rows",)),
    ("a row with too many cells", "panel.csv", b"time,a\n2025-01-01,1,2\n",
     ("panel.csv", "Expected 2 columns, got 3")),
    ("text that is not UTF-8", "panel.csv", "time,a\n2025-01-01,ß\n".encode("latin-1"), ("panel.csv", "UTF-8")),
    ("a header that is not UTF-8", "panel.csv", "time,Straße\n2025-01-01,1\n".encode("latin-1"),
     ("panel.csv", "UTF-8")),
    ("two columns of one name", "panel.csv", b"time,a,a\n2025-01-01,1,2\n", ("'a'", "more than once")),
    ("a file that is no parquet", "panel.parquet", b"time,a\n", ("panel.parquet", "cannot be read")),
    ("a file that is no feather", "panel.feather", b"time,a\n", ("panel.feather", "cannot be read")),
    ("a file that is not packed", "panel.csv.gz", b"time,a\n", ("panel.csv.gz", "cannot be read")),
    ("a text in a file", "panel.csv", b"time,a\n2025-01-01,1\n2025-01-02,x\n",
     ("'a'", "2025-01-02 00:00:00", "'x'")),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "content", "words"), [case[1:] for case in FILES], ids=[case[0] for case in FILES]
)
def test_a_bad_file_is_refused_by_name(
    tmp_path: Any, name: str, content: bytes | None, words: tuple[str, ...]
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(PanelError) as caught:
        read_panel(tmp_path / name)
    for word in words:
        assert word in str(caught.value)


# -- later data --------------------------------------------------------------------------------------------

LATER: list[tuple[str, Callable[[Panel], Any], tuple[str, ...]]] = [
    ("a sensor the fitted data does not have", lambda _: wide(a=[1, 2, 3], c=[1, 2, 3]),
     ("'c'", "'a', 'b'", "leave it out")),
    ("an array of other width", lambda _: np.zeros((2, 3)), ("3 columns", "2 sensors", "(2, 2)")),
    ("tick numbers after a clock", lambda _: wide([3, 4, 5], a=[1, 2, 3]), ("tick numbers", "clock")),
    ("a zone after a clock without zone", lambda _: wide(["2025-01-02T00:00Z"] * 3, a=[1, 1, 1]),
     ("UTC", "without a zone")),
    ("times off the fitted grid", lambda _: wide(["2025-01-02 00:30"] * 3, a=[1, 1, 1]),
     ("2025-01-02 00:30:00", "1h")),
]  # fmt: skip


@pytest.mark.parametrize(("later", "words"), [case[1:] for case in LATER], ids=[case[0] for case in LATER])
def test_later_data_that_does_not_continue_is_refused(
    later: Callable[[Panel], Any], words: tuple[str, ...]
) -> None:
    fitted = read_panel(GOOD)
    with pytest.raises(PanelError) as caught:
        as_panel(later(fitted), like=fitted)
    for word in words:
        assert word in str(caught.value)


def test_a_clock_after_tick_numbers_is_refused() -> None:
    with pytest.raises(PanelError, match="tick numbers"):
        as_panel(GOOD, like=read_panel(np.zeros((3, 2)), sensors=["a", "b"]))
