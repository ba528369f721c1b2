"""Whatever comes to the border, a panel or an error of ours leaves it; and what leaves it may come back."""

from __future__ import annotations

import datetime as dt
import decimal
import os
import warnings
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from ecad.continuation import continue_after
from ecad.errors import EcadError
from ecad.io import write_frame
from ecad.panel import Panel, as_panel, read_panel

# a longer search: ECAD_FUZZ_EXAMPLES=2000
MANY = settings(
    max_examples=int(os.environ.get("ECAD_FUZZ_EXAMPLES", "60")),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

ZONES = ["UTC", "Europe/Berlin", "Asia/Kolkata", "America/New_York", "+05:30"]
BERLIN = ZoneInfo("Europe/Berlin")


def is_a_panel(panel: Panel) -> bool:
    """The promises that inner rooms rely on."""
    ticks = panel.times.astype(np.int64)
    step = np.asarray(panel.step).astype(np.int64)
    assert panel.values.shape == (len(panel.times), len(panel.sensors))
    assert panel.values.dtype == np.float64
    assert panel.values.flags.c_contiguous and not panel.values.flags.writeable
    assert panel.n_times > 0 and panel.n_sensors > 0
    assert not np.isinf(panel.values).any()
    assert (np.diff(ticks) == step).all()
    assert len(set(panel.sensors)) == panel.n_sensors
    assert all(isinstance(name, str) for name in panel.sensors)
    assert all(count > 0 for count in panel.repairs.values())
    assert panel.describe()
    seconds = panel.week_seconds
    assert (seconds is not None) == panel.has_clock
    assert seconds is None or ((seconds >= 0) & (seconds < 7 * 86_400)).all()
    return True


def read_or_refuse(source: Any, **options: Any) -> Panel | None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            panel = read_panel(source, **options)
        except EcadError:
            return None
    assert is_a_panel(panel)
    return panel


# -- what may be found in a cell ---------------------------------------------------------------------------

moments = st.datetimes(dt.datetime(2025, 3, 29), dt.datetime(2025, 3, 31)) | st.datetimes()
aware = st.builds(lambda moment: moment.replace(tzinfo=BERLIN), moments) | st.builds(
    lambda moment: moment.replace(tzinfo=dt.UTC), moments
)
numbers = st.floats() | st.integers(-10, 10) | st.integers()
scraps = st.sampled_from(
    ["", "NA", "nan", "1,5", "1.234,5", "1,234", "abc", " 7 ", "+3", "1e400", "-inf", "2025-01-01", "now", "True", "٣",
     "2025-03-30 02:30", "2025-03-30T02:30:00+02:00", "20250101", "24:00", "1_000", "0x1f", "\x00", "−5", "#N/A"]
)  # fmt: skip
oddities = st.sampled_from(
    [None, pd.NA, pd.NaT, b"1", [1], {"a": 1}, (1, 2), 1j, dt.timedelta(1), dt.time(1), object]
)
cells = numbers | st.booleans() | st.decimals() | scraps | st.text(max_size=4) | moments | aware | oddities
ticks = st.integers(0, 12)
hours = ticks.map(lambda n: dt.datetime(2025, 3, 30) + dt.timedelta(hours=n))
times = (
    st.sampled_from(["hours", "ticks", "texts", "anything"])
    .map({"hours": hours, "ticks": ticks, "texts": hours.map(str), "anything": cells}.__getitem__)
    .flatmap(
        lambda kind: st.lists(kind | st.just(None) if kind is not cells else kind, min_size=0, max_size=12)
    )
)
columns = st.sampled_from(
    [numbers, numbers | st.none(), st.booleans(), scraps | numbers, cells, st.decimals(), moments]
)
names = st.sampled_from(["a", "b", "1", "time", "date", "sensor", "value", "x", ""]) | st.text(max_size=3)
options = st.fixed_dictionaries(
    {},
    optional={
        "layout": st.sampled_from(["auto", "wide", "long"]),
        "step": st.sampled_from(["1h", "30min", 1, 2, "1D", dt.timedelta(hours=1), "0h", "x", -1]),
        "time_zone": st.sampled_from([*ZONES, "Nowhere"]),
        "duplicates": st.sampled_from(["error", "first", "last", "mean"]),
        "non_numeric": st.sampled_from(["error", "missing"]),
        "missing_values": st.sampled_from([-9999, 0, "abc", [1, "NA"], None, [None]]),
        "decimal": st.sampled_from([".", ","]),
        "thousands": st.sampled_from([None, ",", "."]),
        "time_unit": st.sampled_from([None, "s", "ms", "D"]),
        "time_format": st.sampled_from([None, "%d.%m.%Y", "%Y-%m-%d %H:%M:%S", "%Q"]),
        "sensors": st.sampled_from([["a"], ["a", "b"], [], ["zz"], None]),
    },
)


@st.composite
def messy_columns(draw: st.DrawFn) -> dict[str, list[Any]]:
    stamps = draw(times)
    table: dict[str, list[Any]] = {draw(st.sampled_from(["time", "date", "t"])): stamps}
    for _ in range(draw(st.integers(0, 3))):
        kind = draw(columns)
        table[draw(names)] = draw(st.lists(kind, min_size=len(stamps), max_size=len(stamps)))
    return {name: cells[: len(stamps)] for name, cells in table.items()}


@st.composite
def messy_long(draw: st.DrawFn) -> dict[str, list[Any]]:
    stamps = draw(times)
    n = len(stamps)
    sensors = draw(st.lists(st.sampled_from(["a", "b", "7", 7, 7.0, None]) | cells, min_size=n, max_size=n))
    values = draw(st.lists(draw(columns), min_size=n, max_size=n))
    return {"time": stamps, "sensor": sensors, "value": values}


def pandas_frame(table: dict[str, list[Any]], typed: bool) -> pd.DataFrame:
    columns = {name: pd.Series(list_of_cells(cells), dtype=object) for name, cells in table.items()}
    frame = pd.DataFrame(columns)
    return frame.infer_objects() if typed else frame


def list_of_cells(cells: list[Any]) -> np.ndarray[Any, Any]:
    array = np.empty(len(cells), dtype=object)
    for place, cell in enumerate(cells):
        array[place] = cell
    return array


def polars_frame(table: dict[str, list[Any]]) -> pl.DataFrame:
    columns = []
    for name, cells in table.items():
        try:
            columns.append(pl.Series(name, cells, strict=False))
        except BaseException:  # what polars itself cannot hold
            columns.append(pl.Series(name, [str(cell) for cell in cells]))
    return pl.DataFrame(columns)


# -- nothing but a panel or an error of ours ---------------------------------------------------------------


@MANY
@given(messy_columns(), options, st.booleans())
def test_any_wide_pandas_frame_is_read_or_refused(
    table: dict[str, list[Any]], chosen: dict[str, Any], typed: bool
) -> None:
    read_or_refuse(pandas_frame(table, typed), **chosen)


@MANY
@given(messy_columns(), options)
def test_any_pandas_index_is_read_or_refused(table: dict[str, list[Any]], chosen: dict[str, Any]) -> None:
    frame = pandas_frame(table, typed=True)
    read_or_refuse(frame.set_index(frame.columns[0]), **chosen)


@MANY
@given(messy_columns(), options)
def test_any_wide_polars_frame_is_read_or_refused(
    table: dict[str, list[Any]], chosen: dict[str, Any]
) -> None:
    read_or_refuse(polars_frame(table), **chosen)


@MANY
@given(messy_long(), options, st.booleans())
def test_any_long_pandas_frame_is_read_or_refused(
    table: dict[str, list[Any]], chosen: dict[str, Any], typed: bool
) -> None:
    read_or_refuse(pandas_frame(table, typed), **chosen)


@MANY
@given(messy_long(), options)
def test_any_long_polars_frame_is_read_or_refused(
    table: dict[str, list[Any]], chosen: dict[str, Any]
) -> None:
    read_or_refuse(polars_frame(table), **chosen)


@MANY
@given(messy_columns(), options)
def test_any_dict_of_columns_is_read_or_refused(table: dict[str, list[Any]], chosen: dict[str, Any]) -> None:
    read_or_refuse(table, **chosen)


@MANY
@given(
    npst.arrays(
        st.sampled_from(["f8", "f4", "i8", "u1", "bool", "c8", "U3", "S3", "M8[s]", "m8[s]", "M8[D]"]),
        npst.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
    )
    | st.recursive(cells, lambda inner: st.lists(inner, max_size=4), max_leaves=12),
    options,
    st.none() | st.sampled_from(["2025-03-30", dt.datetime(2025, 1, 1, tzinfo=BERLIN), 5, "x", 2.5]),
)
def test_any_array_or_list_is_read_or_refused(array: Any, chosen: dict[str, Any], start: Any) -> None:
    assume(not isinstance(array, str))
    read_or_refuse(array, start=start, **chosen)


@MANY
@given(st.text("0123456789,;\n\t ab-.:T\"'é", max_size=60) | st.binary(max_size=40), options)
def test_any_text_file_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, text: Any, chosen: dict[str, Any]
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.csv"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    read_or_refuse(path, **chosen)


@MANY
@given(
    st.dictionaries(st.sampled_from(["0", "1", 0, 1, "z"]), st.tuples(cells, cells) | cells)
    | messy_columns()
    | st.lists(st.tuples(cells, cells))
    | npst.arrays("f8", npst.array_shapes(max_dims=2, max_side=3))
    | cells,
    st.lists(st.tuples(st.sampled_from(["0", "1", 1, "z"]), st.sampled_from(["0", "1"]), cells) | cells)
    | messy_columns()
    | npst.arrays("f8", npst.array_shapes(max_dims=2, max_side=3))
    | cells,
    st.sampled_from([None, "lonlat", "xy"]),
)
def test_any_positions_and_adjacency_are_read_or_refused(
    positions: Any, adjacency: Any, geometry: Any
) -> None:
    assume(not isinstance(positions, str) and not isinstance(adjacency, str))
    data = np.arange(6.0).reshape(3, 2)
    for panel in (
        read_or_refuse(data, positions=positions, geometry=geometry),
        read_or_refuse(data, adjacency=adjacency),
    ):
        if panel is not None and panel.positions is not None:
            assert np.isfinite(panel.positions).all()
        if panel is not None and panel.adjacency is not None:
            assert (panel.adjacency[0] < panel.adjacency[1]).all()
            assert (panel.adjacency[2] >= 0).all()


# -- what goes out may come in -----------------------------------------------------------------------------

clean_names = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1, max_size=5
).filter(lambda name: name not in ("time", "sensor", "value"))


@st.composite
def panels(draw: st.DrawFn, named: st.SearchStrategy[str] = clean_names) -> Panel:
    n_times = draw(st.integers(2, 20))
    sensors = tuple(draw(st.lists(named, min_size=1, max_size=4, unique=True)))
    finite = st.floats(allow_infinity=False)
    values = draw(npst.arrays("f8", (n_times, len(sensors)), elements=finite))
    if draw(st.booleans()):
        first = draw(st.integers(-1000, 1000))
        return Panel(values, sensors, np.arange(first, first + n_times), 1)
    step = np.timedelta64(draw(st.sampled_from([1, 60, 900, 3600, 86_400, 5400])), "s").astype("m8[us]")
    first = np.datetime64(draw(st.datetimes(dt.datetime(1950, 1, 1), dt.datetime(2150, 1, 1))), "s").astype(
        "M8[us]"
    )
    zone = draw(st.none() | st.sampled_from(ZONES))
    return Panel(values, sensors, first + step * np.arange(n_times), step, time_zone=zone)


def assert_same(one: Panel, other: Panel, zone: bool = True) -> None:
    assert set(one.sensors) == set(other.sensors)
    np.testing.assert_array_equal(one.times, other.times)
    np.testing.assert_array_equal(one.values, other.select(one.sensors).values)
    assert one.step == other.step
    assert not zone or one.time_zone == other.time_zone


def in_kind(panel: Panel, kind: str) -> Panel:
    fields = {name: getattr(panel, name) for name in ("values", "sensors", "times", "step", "time_zone")}
    return Panel(**fields, frame=kind)


@MANY
@given(panels(), st.sampled_from(["pandas", "polars", "pyarrow"]), st.sampled_from(["wide", "long"]))
def test_a_frame_that_was_given_back_is_read_as_the_same_panel(panel: Panel, kind: str, shape: Any) -> None:
    frame = in_kind(panel, kind).to_frame(shape)
    assert type(frame).__module__.split(".")[0] == kind
    again = read_panel(frame, layout=shape)
    assert again.frame == kind
    # polars knows fixed offsets by another name only
    assert_same(panel, again, zone=not (kind == "polars" and panel.time_zone == "+05:30"))


@MANY
@given(panels())
def test_long_and_wide_frames_of_all_kinds_hold_the_same(panel: Panel) -> None:
    wide = in_kind(read_panel(panel.to_frame("long")), "polars").to_frame("wide")
    assert_same(panel, in_kind(read_panel(wide, layout="wide"), "pyarrow"), zone=panel.time_zone != "+05:30")


@MANY
@given(
    panels(st.text("abcXYZ09_. -", min_size=1, max_size=4).filter(lambda name: name == name.strip() != "")),
    st.data(),
)
def test_a_file_that_was_written_is_read_as_the_same_panel(
    tmp_path_factory: pytest.TempPathFactory, panel: Panel, data: st.DataObject
) -> None:
    ending = data.draw(st.sampled_from(["csv", "csv.gz", "parquet", "feather", "tsv"]))
    shape: Any = data.draw(st.sampled_from(["wide", "long"]))
    path = Path(tmp_path_factory.getbasetemp()) / f"panel.{ending}"
    write_frame(panel.to_frame(shape), path)
    # a csv is in UTC: the zone is said where it is read
    assert_same(panel, read_panel(path, layout=shape, time_zone=panel.time_zone))


@MANY
@given(panels(), st.sampled_from(["wide", "long"]), st.data())
def test_the_order_of_rows_changes_nothing(panel: Panel, shape: Any, data: st.DataObject) -> None:
    frame = panel.to_frame(shape)
    frame = pd.concat([frame, frame.iloc[data.draw(st.lists(st.integers(0, len(frame) - 1), max_size=3))]])
    shuffled = frame.iloc[data.draw(st.permutations(range(len(frame))))]
    rule: Any = data.draw(st.sampled_from(["error", "mean"]))
    one, other = (read_panel(each, layout=shape, duplicates=rule) for each in (frame, shuffled))
    assert one.sensors == other.sensors
    assert_same(one, other)
    for panel in (one, other):
        panel.repairs.pop("unsorted times", None)
    assert one.repairs == other.repairs


@MANY
@given(panels(), st.data())
def test_dropped_empty_rows_come_back_as_missing_ticks(panel: Panel, data: st.DataObject) -> None:
    assume(panel.n_times > 3)
    gone = data.draw(st.sets(st.integers(1, panel.n_times - 2), max_size=2))
    values = panel.values.copy()
    values[list(gone)] = np.nan
    kept = [t for t in range(panel.n_times) if t not in gone]
    again = read_panel(panel.with_values(values).to_frame().iloc[kept], step=panel.step, layout="wide")
    assert_same(panel.with_values(values), again)
    assert again.repairs.get("missing ticks", 0) == len(gone)


@MANY
@given(panels(), st.data())
def test_what_was_split_continues(panel: Panel, data: st.DataObject) -> None:
    cut = data.draw(st.integers(1, panel.n_times - 1))
    gap = data.draw(st.integers(0, panel.n_times - 1 - cut))
    fitted, later = panel[:cut], panel[cut + gap :]
    order = data.draw(st.permutations(panel.sensors))
    for given_back in (later, as_panel(later.select(order).to_frame(), like=fitted)):
        values, times = continue_after(given_back, fitted)
        np.testing.assert_array_equal(times, panel.times[cut:])
        np.testing.assert_array_equal(values[gap:], later.values)
        assert np.isnan(values[:gap]).all()


@MANY
@given(panels(), st.integers(1, 5))
def test_an_array_continues_right_after(panel: Panel, n_times: int) -> None:
    later = as_panel(np.ones((n_times, panel.n_sensors)), like=panel)
    values, times = continue_after(later, panel)
    assert (values == 1).all()
    np.testing.assert_array_equal(np.diff(np.append(panel.times[-1:], times)), [panel.step] * n_times)


@MANY
@given(panels())
def test_pandas_polars_and_arrow_say_the_same(panel: Panel) -> None:
    assume(panel.time_zone != "+05:30")  # which polars does not know
    pandas = panel.to_frame("wide")
    table = pa.Table.from_pandas(pandas)
    stored = pa.Table.from_pandas(pandas.set_index("time"))
    for frame in (
        pandas,
        pl.from_pandas(pandas),
        table,
        pandas.set_index("time"),
        stored,
        pl.from_arrow(table).lazy(),
    ):
        assert_same(panel, read_panel(frame, layout="wide"))


def test_decimals_are_numbers() -> None:
    assert (
        read_panel({"time": [0, 1], "a": [decimal.Decimal("1.25"), decimal.Decimal("-inf")]}).values[0, 0]
        == 1.25
    )
