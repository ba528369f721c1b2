"""The border for data: every door to a panel, what a panel does, and how one continues another."""

from __future__ import annotations

import datetime as dt
import pickle
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from ecad.continuation import continue_after
from ecad.errors import EcadError, EcadWarning, PanelError
from ecad.io import read_frame, write_frame
from ecad.panel import (
    Panel,
    as_panel,
    make_frame,
    read_panel,
    show_time,
    step_text,
    ticks_per_day,
    week_seconds,
)

NaN = np.nan
VALUES = np.array([[1.0, 2.0], [NaN, 4.0], [5.0, NaN]])
TIMES = pd.date_range("2025-01-06", periods=3, freq="h", unit="us")
WIDE = pd.DataFrame({"time": TIMES, "a": VALUES[:, 0], "b": VALUES[:, 1]})
LONG = WIDE.melt("time", var_name="sensor", value_name="value")
HOUR = np.timedelta64(3_600_000_000, "us")


def hourly(n_times: int = 48, n_sensors: int = 3, **fields: Any) -> Panel:
    times = np.datetime64("2025-01-06", "us") + HOUR * np.arange(n_times)
    values = np.arange(float(n_times * n_sensors)).reshape(n_times, n_sensors)
    return Panel(values, tuple("abcdefgh"[:n_sensors]), times, HOUR, **fields)


def assert_is_the_panel(panel: Panel, kind: str = "pandas") -> None:
    np.testing.assert_array_equal(panel.values, VALUES)
    assert panel.sensors == ("a", "b")
    np.testing.assert_array_equal(panel.times, TIMES.to_numpy())
    assert panel.times.dtype == "datetime64[us]"
    assert panel.step == HOUR and panel.step.dtype == "timedelta64[us]"
    assert panel.time_zone is None and panel.positions is None and panel.adjacency is None
    assert panel.repairs == {}
    assert panel.frame == kind


# -- the doors in ------------------------------------------------------------------------------------------

FRAMES: dict[str, tuple[Any, str]] = {
    "wide pandas": (WIDE, "pandas"),
    "wide pandas with the time in the index": (WIDE.set_index("time"), "pandas"),
    "wide pandas with the time in an index without name": (WIDE.set_index("time").rename_axis(None), "pandas"),
    "wide pandas with texts in the index": (WIDE.set_index(TIMES.astype(str)).drop(columns="time"), "pandas"),
    "wide pandas with periods in the index": (WIDE.set_index(TIMES.to_period("h"))[["a", "b"]], "pandas"),
    "wide pandas with periods in a column": (WIDE.assign(time=TIMES.to_period("h")), "pandas"),
    "wide pandas with the time in the first column": (WIDE.rename(columns={"time": "when"}), "pandas"),
    "wide pandas with texts in the first column": (WIDE.rename(columns={"time": ""}).astype({"": str}), "pandas"),
    "wide pandas with time objects": (WIDE.assign(time=WIDE["time"].astype(object)), "pandas"),
    "wide pandas with nanoseconds": (WIDE.astype({"time": "datetime64[ns]"}), "pandas"),
    "wide pandas on Arrow": (WIDE.convert_dtypes(dtype_backend="pyarrow"), "pandas"),
    "wide polars": (pl.from_pandas(WIDE), "polars"),
    "wide polars, lazy": (pl.from_pandas(WIDE).lazy(), "polars"),
    "wide polars with texts": (pl.from_pandas(WIDE.astype({"time": str})), "polars"),
    "wide Arrow": (pa.Table.from_pandas(WIDE), "pyarrow"),
    "wide Arrow with a stored index": (pa.Table.from_pandas(WIDE.set_index("time")), "pyarrow"),
    "wide Arrow with a stored index without name":
        (pa.Table.from_pandas(WIDE.set_index("time").rename_axis(None)), "pyarrow"),
    "Arrow record batch": (pa.RecordBatch.from_pandas(WIDE), "pyarrow"),
    "narwhals": (nw.from_native(pl.from_pandas(WIDE)), "polars"),
    "dict of columns": ({"time": TIMES, "a": [1.0, None, 5.0], "b": VALUES[:, 1]}, "pandas"),
    "dict of polars columns": ({"time": pl.Series(TIMES), "a": VALUES[:, 0], "b": VALUES[:, 1]}, "pandas"),
    "records": ([dict(row) for _, row in WIDE.iterrows()], "pandas"),
    "structured array": (WIDE.to_records(index=False), "pandas"),
    "long pandas": (LONG, "pandas"),
    "long pandas with the time in the index": (LONG.set_index("time"), "pandas"),
    "long pandas indexed by both": (LONG.set_index(["time", "sensor"]), "pandas"),
    "long series indexed by both": (LONG.set_index(["time", "sensor"])["value"], "pandas"),
    "long series with an index without names":
        (LONG.set_index(["time", "sensor"])["value"].rename_axis([None, None]), "pandas"),
    "long pandas with categories": (LONG.astype({"sensor": "category"}), "pandas"),
    "long pandas with other columns": (LONG.assign(unit="mm", alarm=False), "pandas"),
    "long polars": (pl.from_pandas(LONG), "polars"),
    "long polars with categories": (pl.from_pandas(LONG).cast({"sensor": pl.Categorical}), "polars"),
    "long Arrow": (pa.Table.from_pandas(LONG), "pyarrow"),
}  # fmt: skip


@pytest.mark.parametrize(("source", "kind"), FRAMES.values(), ids=FRAMES)
def test_every_kind_of_frame_is_the_same_panel(source: Any, kind: str) -> None:
    assert_is_the_panel(read_panel(source), kind)


@pytest.mark.parametrize("frame", [WIDE, LONG], ids=["wide", "long"])
@pytest.mark.parametrize(
    "name", ["p.csv", "p.csv.gz", "p.tsv", "p.txt.bz2", "p.parquet", "p.pq", "p.feather", "p.arrow"]
)
def test_every_kind_of_file_is_the_same_panel(tmp_path: Path, name: str, frame: pd.DataFrame) -> None:
    write_frame(frame, tmp_path / name)
    assert_is_the_panel(read_panel(tmp_path / name))
    assert_is_the_panel(read_panel(str(tmp_path / name)))
    assert_is_the_panel(as_panel(tmp_path / name))


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_a_frame_on_file_comes_back_as_it_was(tmp_path: Path, kind: Any) -> None:
    frame = make_frame({"time": TIMES.to_numpy(), "sensor": np.array(["7", "07", "x"]), "value": [1.5, NaN, 2.0],
                        "alarm": [True, False, True], "n": [1, 2, 3]}, kind)  # fmt: skip
    for name in ("f.csv", "f.csv.gz", "f.parquet", "f.feather"):
        write_frame(frame, tmp_path / name)
        again = read_frame(tmp_path / name)
        assert again["sensor"].tolist() == ["7", "07", "x"]
        assert again["alarm"].tolist() == [True, False, True]
        assert again["n"].tolist() == [1, 2, 3]
        assert again["time"].tolist() == TIMES.tolist()
        np.testing.assert_array_equal(again["value"], [1.5, NaN, 2.0])
    rows = (tmp_path / "f.csv").read_text().replace('"', "").splitlines()
    assert rows[:2] == ["time,sensor,value,alarm,n", "2025-01-06 00:00:00,7,1.5,true,1"]
    assert rows[2] == "2025-01-06 01:00:00,07,,false,2"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["f.csv", "f.csv.gz", "f.feather", "f.parquet"]


def test_what_is_no_frame_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(PanelError, match="no frame"):
        write_frame([1, 2], tmp_path / "f.csv")
    with pytest.raises(PanelError, match="cannot be written"):
        write_frame(WIDE, tmp_path / "none" / "f.csv")


def test_text_files_are_read_as_people_write_them(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text(
        "\ufeffTime; a ;b;\r\n06.01.2025 00:00;1,0;2;\r\n06.01.2025 01:00;;4,0;\r\n06.01.2025 02:00; 5 ;NA;\r\n"
    )
    assert_is_the_panel(read_panel(path, decimal=",", time_format="%d.%m.%Y %H:%M"))


def test_names_in_text_files_keep_their_zeros(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text("time,sensor,value\n2025-01-06,007,1\n2025-01-07,007,2\n2025-01-07,7,3\n")
    assert read_panel(path).sensors == ("007", "7")


def test_arrays_have_tick_numbers() -> None:
    for source in (
        VALUES,
        VALUES.astype(np.float32),
        VALUES.tolist(),
        pd.DataFrame(VALUES),
        pl.DataFrame(VALUES),
    ):
        panel = read_panel(source)
        np.testing.assert_array_equal(panel.values, VALUES)
        assert panel.times.tolist() == [0, 1, 2]
        assert (
            panel.step == 1
            and not panel.has_clock
            and panel.week_seconds is None
            and panel.ticks_per_day is None
        )
    assert read_panel(VALUES).sensors == ("0", "1")
    assert read_panel(VALUES, sensors=["b", "a"]).sensors == ("b", "a")


def test_one_sensor_may_be_flat() -> None:
    for source in (
        [1, 2, 3],
        np.arange(1, 4),
        pl.Series([1, 2, 3]),
        pd.Series([1, 2, 3]),
        pa.chunked_array([[1, 2, 3]]),
    ):
        np.testing.assert_array_equal(read_panel(source).values, [[1], [2], [3]])


def test_arrays_may_be_given_times() -> None:
    assert_is_the_panel(read_panel(VALUES, sensors=["a", "b"], start="2025-01-06", step="1h"))
    for times in (
        TIMES,
        TIMES.astype(str).tolist(),
        TIMES.to_numpy(),
        list(TIMES.to_pydatetime()),
        pl.Series(TIMES),
    ):
        assert_is_the_panel(read_panel(VALUES, sensors=["a", "b"], time=times))
    assert read_panel(VALUES, start=7).times.tolist() == [7, 8, 9]
    assert read_panel(VALUES, start=0, step=5).times.tolist() == [0, 5, 10]
    zoned = read_panel(VALUES, start="2025-03-30 01:00", step="1h", time_zone="Europe/Berlin")
    assert zoned.week_seconds is not None
    assert (zoned.week_seconds % 86_400 // 3600).tolist() == [1, 3, 4]


def test_the_array_of_the_caller_stays_his() -> None:
    array = VALUES.copy()
    array[0, 0] = np.inf
    panel = read_panel(array)
    assert np.isinf(array[0, 0]) and np.isnan(panel.values[0, 0])
    assert array.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        panel.values[0, 0] = 0
    own = Panel(array, ("a", "b"), np.arange(3), 1)
    assert array.flags.writeable and not own.values.flags.writeable and not own.times.flags.writeable


def test_the_frame_of_the_caller_stays_his() -> None:
    for shape in (LONG, WIDE):
        name = shape.columns[-1]
        frame = shape.fillna({name: np.inf})
        for source in (frame, pl.from_pandas(frame), pa.Table.from_pandas(frame)):
            panel = read_panel(source)
            assert panel.repairs["infinite"] >= 1
            assert np.isinf(nw.from_native(source, eager_only=True)[name].to_numpy()).any()
            assert not panel.values.flags.writeable


def test_a_first_column_of_counts_is_a_sensor_and_one_of_ticks_is_not() -> None:
    assert read_panel(pl.DataFrame({"x": [3, 7, 2], "y": [1, 1, 1]})).sensors == ("x", "y")
    assert read_panel(pl.DataFrame({"x": [0, 1, 2], "y": [1, 1, 1]})).sensors == ("y",)
    assert read_panel(pl.DataFrame({"x": [0, 1, 2]})).sensors == ("x",)


def test_columns_are_chosen_and_named() -> None:
    frame = WIDE.rename(columns={"time": "seen"}).assign(note="x")[["note", "seen", "b", "a"]]
    assert_is_the_panel(read_panel(frame, time="seen", sensors=["a", "b"]))
    renamed = LONG.rename(columns={"time": "when", "sensor": "station", "value": "reading"})
    assert_is_the_panel(read_panel(renamed, sensor="station", value="reading"))
    assert_is_the_panel(read_panel(renamed, sensor="station", value="reading", sensors=["a", "b"]))
    assert read_panel(LONG, sensors=["b"]).sensors == ("b",)
    assert read_panel(WIDE.rename(columns={"a": "sensor", "b": "value"}), layout="wide").sensors == (
        "sensor",
        "value",
    )
    assert read_panel(pd.DataFrame({"time": [0, 1], 248: [1, 2]})).sensors == ("248",)


def test_sensors_of_long_data_are_in_the_order_of_their_names() -> None:
    rows = [(t, s, 0.0) for s in ("b", 10, 9, "a") for t in (0, 1)]
    frame = pd.DataFrame(rows, columns=["time", "sensor", "value"])
    assert read_panel(frame).sensors == ("9", "10", "a", "b")
    numbers = frame.iloc[2:6].astype({"sensor": float})
    assert read_panel(numbers).sensors == ("9", "10")


# -- time --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("times", "step"),
    [
        (["2025-01-01 00:00", "2025-01-01 00:15", "2025-01-01 00:30"], "15min"),
        (["2025-01-01", "2025-01-02", "2025-01-04"], "1D"),
        (["2025-01-01T00:00:00.1", "2025-01-01T00:00:00.2", "2025-01-01T00:00:00.3"], "100ms"),
        (["2025-01-01 00:00", "2025-01-01 02:30", "2025-01-01 05:00"], "150min"),
        (
            ["2025-01-01 00:00:11", "2025-01-01 00:10:09", "2025-01-01 00:20:12", "2025-01-01 00:50:10"],
            "10min",
        ),
        (["2025-01-01 00:30", "2025-01-01 01:30", "2025-01-01 04:30"], "1h"),
    ],
)
def test_the_step_is_the_most_common_difference(times: list[str], step: str) -> None:
    panel = read_panel({"time": times, "a": range(len(times))})
    assert step_text(panel.step) == step
    assert read_panel({"time": times, "a": range(len(times))}, step=step).step == panel.step


@pytest.mark.parametrize(
    "step",
    [
        "1h",
        "60min",
        "h",
        dt.timedelta(hours=1),
        np.timedelta64(1, "h"),
        pd.Timedelta("1h"),
        pd.offsets.Hour(),
    ],
)
def test_a_step_may_be_stated_in_many_ways(step: Any) -> None:
    assert_is_the_panel(read_panel(WIDE, step=step))


def test_wandering_clocks_are_put_on_their_ticks() -> None:
    rng = np.random.default_rng(0)
    times = TIMES[0] + pd.to_timedelta(np.arange(200) * 3600 + rng.integers(-200, 200, 200), "s")
    panel = read_panel({"time": times, "a": np.arange(200)})
    assert panel.times[0] == TIMES[0] and panel.n_times == 200 and step_text(panel.step) == "1h"
    assert panel.repairs["snapped times"] > 190
    np.testing.assert_array_equal(panel.values[:, 0], np.arange(200))


def test_sensors_with_clocks_of_their_own_share_the_ticks() -> None:
    rng = np.random.default_rng(0)
    rows = [
        (TIMES[0] + pd.Timedelta(hours=t, seconds=int(rng.integers(60))), s, t)
        for s in "abc"
        for t in range(50)
    ]
    panel = read_panel(pd.DataFrame(rows, columns=["time", "sensor", "value"]))
    assert step_text(panel.step) == "1h" and panel.values.shape == (50, 3)
    assert not np.isnan(panel.values).any()


def test_a_slow_sensor_has_holes_between_its_readings() -> None:
    rows = [(TIMES[0] + pd.Timedelta(minutes=15 * t), "quick", t) for t in range(8)]
    rows += [(TIMES[0] + pd.Timedelta(hours=t), "slow", t) for t in range(2)]
    panel = read_panel(pd.DataFrame(rows, columns=["time", "sensor", "value"]))
    assert step_text(panel.step) == "15min"
    assert panel.observed.sum(axis=0).tolist() == [8, 2]


def test_aware_times_are_utc_inside_and_local_outside() -> None:
    local = pd.date_range("2025-03-30 00:00", periods=4, freq="h", tz="Europe/Berlin", unit="us")
    for frame in (
        pd.DataFrame({"time": local, "a": range(4)}),
        pl.from_pandas(pd.DataFrame({"time": local, "a": range(4)})),
        pa.table({"time": pa.array(local), "a": range(4)}),
        pd.DataFrame({"time": [stamp.to_pydatetime() for stamp in local], "a": range(4)}, dtype=object),
    ):
        panel = read_panel(frame)
        assert panel.time_zone == "Europe/Berlin"
        np.testing.assert_array_equal(panel.times, local.tz_convert("UTC").tz_localize(None).to_numpy())
        assert panel.week_seconds is not None
        assert (panel.week_seconds % 86_400 // 3600).tolist() == [0, 1, 3, 4]
        given_back = nw.from_native(panel.to_frame(), eager_only=True)
        assert given_back["time"].dtype == nw.Datetime("us", "Europe/Berlin")
        assert given_back["time"].to_list() == local.to_pydatetime().tolist()


def test_kinds_of_cells_that_arrow_does_not_have_may_name_sensors() -> None:
    frame = pl.DataFrame({"time": TIMES[:1].to_list(), "sensor": [2**70], "value": [1.0]})
    assert read_panel(frame, step="1h").sensors == (str(2**70),)


def test_an_infinite_column_without_a_name_is_no_row_number() -> None:
    with pytest.raises(PanelError, match="has no name"):
        read_panel({"time": TIMES[:2].to_list(), "": [np.inf, np.inf], "a": [1.0, 2.0]})


def test_positions_may_be_written_with_points_or_as_the_readings_are(tmp_path: Path) -> None:
    (tmp_path / "readings.csv").write_text("time;a;b\n2025-01-06 00:00;1,5;2\n2025-01-06 01:00;2,5;3\n")
    for n, places in enumerate(
        ("sensor;lon;lat\na;7,6;51,9\nb;7,7;52\n", "sensor,lon,lat\na,7.6,51.9\nb,7.7,52\n")
    ):
        (tmp_path / f"places{n}.csv").write_text(places)
        panel = read_panel(tmp_path / "readings.csv", tmp_path / f"places{n}.csv", decimal=",")
        assert panel.positions is not None and panel.positions.tolist() == [[7.6, 51.9], [7.7, 52.0]]
    (tmp_path / "edges.csv").write_text("a;b;weight\na;b;1,5\n")
    panel = read_panel(tmp_path / "readings.csv", adjacency=tmp_path / "edges.csv", decimal=",")
    assert panel.adjacency is not None and panel.adjacency[2].tolist() == [1.5]


@pytest.mark.parametrize("zone", ["America/New_York", "America/Port-au-Prince", "Etc/GMT+5", "EST5EDT"])
@pytest.mark.parametrize("kind", ["index", "first column", "long", "pandas by arrow", "polars", "pyarrow"])
def test_zones_of_any_spelling_are_known_wherever_the_times_stand(zone: str, kind: str) -> None:
    index = pd.date_range("2025-01-06", periods=60, freq="h", tz=zone)
    wide = pd.DataFrame({"a": np.arange(60.0), "b": 1.0}, index=index).drop(index=index[30:40])
    when = wide.reset_index(names="when")
    given: Any = {
        "index": lambda: wide,
        "first column": lambda: when,
        "long": lambda: when.melt(id_vars="when", var_name="sensor", value_name="value"),
        "pandas by arrow": lambda: when.astype({"when": f"timestamp[us, tz={zone}][pyarrow]"}),
        "polars": lambda: pl.from_pandas(when),
        "pyarrow": lambda: pa.Table.from_pandas(when, preserve_index=False),
    }[kind]()
    panel = read_panel(given)
    assert panel.time_zone == zone and panel.n_times == 60
    np.testing.assert_array_equal(panel.times, index.tz_convert(None).to_numpy())


@pytest.mark.parametrize(
    ("texts", "zone"),
    [
        (["2025-01-06T00:00Z", "2025-01-06T01:00Z", "2025-01-06T02:00Z"], "UTC"),
        (["2025-01-06 01:00+01:00", "2025-01-06 02:00+01:00", "2025-01-06 03:00+01:00"], "+01:00"),
        (["2025-01-05 18:30-0530", "2025-01-05 19:30-0530", "2025-01-05 20:30-0530"], "-05:30"),
    ],
)
def test_an_offset_in_the_text_is_the_zone(texts: list[str], zone: str) -> None:
    panel = read_panel({"time": texts, "a": [1, 2, 3]})
    assert panel.time_zone == zone
    np.testing.assert_array_equal(panel.times, TIMES.to_numpy())
    for kind in ("pandas", "polars", "pyarrow"):
        frame = Panel(
            panel.values, panel.sensors, panel.times, panel.step, time_zone=zone, frame=kind
        ).to_frame()
        np.testing.assert_array_equal(read_panel(frame).times, panel.times)


def test_a_zone_may_be_stated_as_name_offset_or_object() -> None:
    for zone in ("Europe/Berlin", ZoneInfo("Europe/Berlin")):
        assert read_panel(WIDE, time_zone=zone).time_zone == "Europe/Berlin"
    for offset in ("+01:00", dt.timezone(dt.timedelta(hours=1))):
        panel = read_panel(WIDE, time_zone=offset)
        assert panel.time_zone == "+01:00"
        assert panel.times[0] == np.datetime64("2025-01-05T23:00", "us")
    aware = WIDE.assign(time=TIMES.tz_localize("UTC"))
    calendar = read_panel(aware, time_zone="America/New_York")
    assert calendar.times[0] == TIMES[0].to_datetime64() and calendar.time_zone == "America/New_York"


def test_numbers_since_1970_are_times_when_the_unit_is_said() -> None:
    seconds = TIMES.to_numpy().astype("datetime64[s]").astype(np.int64)
    for unit, scale in (("s", 1), ("ms", 1000), ("us", 1_000_000), ("h", 1 / 3600)):
        panel = read_panel({"time": seconds * scale, "a": [1, 2, 3]}, time_unit=unit)
        np.testing.assert_array_equal(panel.times, TIMES.to_numpy())
        assert panel.time_zone == "UTC"
    zoned = read_panel({"time": seconds, "a": [1, 2, 3]}, time_unit="s", time_zone="Asia/Tokyo")
    assert zoned.time_zone == "Asia/Tokyo" and zoned.times[0] == TIMES[0].to_datetime64()


@pytest.mark.parametrize(
    "zone", [None, "UTC", "+05:30", "-03:00", "Europe/Berlin", "America/New_York", "Asia/Kolkata"]
)
def test_week_seconds_are_those_of_the_calendar(zone: str | None) -> None:
    times = np.datetime64("2024-12-30", "us") + np.timedelta64(4321, "s") * np.arange(8000)
    found = week_seconds(times, zone)
    assert found.dtype == np.int64
    tzinfo = {None: dt.UTC, "UTC": dt.UTC, "+05:30": dt.timezone(dt.timedelta(hours=5.5)),
              "-03:00": dt.timezone(dt.timedelta(hours=-3))}.get(zone) or ZoneInfo(str(zone))  # fmt: skip
    for t in range(0, 8000, 97):
        local = times[t].item().replace(tzinfo=dt.UTC).astimezone(tzinfo)
        expected = ((local.weekday() * 24 + local.hour) * 60 + local.minute) * 60 + local.second
        assert found[t] == expected
        assert week_seconds(times[t], zone) == expected
        assert week_seconds(times[t : t + 1], zone).shape == (1,)


def test_ticks_per_day_needs_a_step_that_divides_the_day() -> None:
    assert ticks_per_day(HOUR) == 24
    assert ticks_per_day(np.timedelta64(15, "m")) == 96
    assert ticks_per_day(np.timedelta64(1, "D")) == 1
    assert ticks_per_day(np.timedelta64(7, "h")) is None
    assert ticks_per_day(np.timedelta64(2, "D")) is None
    assert ticks_per_day(1) is None
    assert hourly().ticks_per_day == 24


def test_times_are_shown_on_the_local_clock() -> None:
    moment = np.datetime64("2025-07-01T12:00", "us")
    assert show_time(moment) == "2025-07-01 12:00:00"
    assert show_time(moment, "Europe/Berlin") == "2025-07-01 14:00:00+02:00"
    assert (
        show_time(np.datetime64("2025-07-01T12:00:00.5", "us"), "+01:00")
        == "2025-07-01 13:00:00.500000+01:00"
    )
    assert show_time(np.int64(7)) == "tick 7"


# -- positions and adjacency -------------------------------------------------------------------------------

PLACES = [[7.6, 51.9], [8.0, 52.0]]
POSITIONS: dict[str, Any] = {
    "a column of sensors": pd.DataFrame({"sensor": ["b", "a"], "lat": [52.0, 51.9], "lon": [8.0, 7.6]}),
    "an index of sensors": pd.DataFrame(
        {"longitude": [7.6, 8.0], "latitude": [51.9, 52.0]}, index=["a", "b"]
    ),
    "a first column of names": pd.DataFrame({"station": ["a", "b"], "Lon": [7.6, 8.0], "Lat": [51.9, 52.0]}),
    "polars": pl.DataFrame({"sensor": ["a", "b"], "long": [7.6, 8.0], "lat": [51.9, 52.0]}),
    "Arrow": pa.table({"sensor": ["a", "b"], "lng": [7.6, 8.0], "lat": [51.9, 52.0]}),
    "a dict of columns": {"sensor": ["a", "b"], "lon": ["7.6", "8.0"], "lat": [51.9, 52.0]},
    "records": [{"sensor": "a", "lon": 7.6, "lat": 51.9}, {"sensor": "b", "lon": 8.0, "lat": 52.0}],
    "rows in the order of the sensors": pd.DataFrame(PLACES, columns=["lon", "lat"]),
}


@pytest.mark.parametrize("positions", POSITIONS.values(), ids=POSITIONS)
def test_positions_come_in_many_shapes(positions: Any) -> None:
    panel = read_panel(WIDE, positions)
    assert panel.positions is not None
    assert panel.positions.tolist() == PLACES
    assert panel.geometry == "lonlat"


def test_positions_may_be_plain() -> None:
    for positions in ({"b": (8.0, 52.0), "a": [7.6, 51.9]}, np.array(PLACES), PLACES,
                      pd.DataFrame({"x": [7.6, 8.0], "y": [51.9, 52.0]}, index=["a", "b"])):  # fmt: skip
        panel = read_panel(WIDE, positions)
        assert panel.positions is not None and not panel.positions.flags.writeable
        assert panel.positions.tolist() == PLACES
        assert panel.geometry == "xy"
    assert read_panel(WIDE, np.array(PLACES), geometry="lonlat").geometry == "lonlat"


def test_positions_and_edges_may_be_on_file(tmp_path: Path) -> None:
    (tmp_path / "places.csv").write_text("sensor,lon,lat\n01,7.6,51.9\n1,8.0,52.0\n")
    (tmp_path / "edges.csv").write_text("a,b,km\n01,1,2.5\n")
    frame = WIDE.rename(columns={"a": "01", "b": "1"})
    panel = read_panel(frame, tmp_path / "places.csv", tmp_path / "edges.csv")
    assert panel.positions is not None and panel.positions.tolist() == PLACES
    assert panel.adjacency is not None and [part.tolist() for part in panel.adjacency] == [[0], [1], [2.5]]


EDGES: dict[str, Any] = {
    "a frame": pd.DataFrame({"a": ["c", "a"], "b": ["b", "b"], "weight": [3.0, 2.0]}),
    "a frame of other names": pl.DataFrame({"from": ["c", "a"], "to": ["b", "b"], "distance": [3, 2]}),
    "a list": [("b", "c", 3), ("b", "a", 2.0), ("a", "b", 2.0)],
    "a dict": {("b", "c"): 3, ("a", "b"): 2},
    "a matrix": np.array([[0, 2, 0], [2, 0, 3], [0, 3, 0]]),
    "one half of a matrix": [[NaN, 2, np.inf], [NaN, NaN, 3], [NaN, NaN, NaN]],
    "a named matrix": pd.DataFrame([[0, 3, 2], [3, 0, 0], [2, 0, 0]], index=list("bca"), columns=list("bca")),
    "a named polars matrix": pl.DataFrame(
        {"sensor": list("cba"), "a": [0, 2, 0], "b": [3, 0, 2], "c": [0, 3, 0]}
    ),
}


@pytest.mark.parametrize("edges", EDGES.values(), ids=EDGES)
def test_edges_come_in_many_shapes(edges: Any) -> None:
    panel = read_panel(hourly(5).to_frame(), adjacency=edges)
    assert panel.adjacency is not None
    assert [part.tolist() for part in panel.adjacency] == [[0, 1], [1, 2], [2.0, 3.0]]


def test_edges_without_weight_are_steps() -> None:
    panel = read_panel(WIDE, adjacency=pd.DataFrame({"a": ["a"], "b": ["b"]}))
    assert panel.adjacency is not None and panel.adjacency[2].tolist() == [1.0]


def test_edges_of_sensors_that_were_not_chosen_are_left_out() -> None:
    panel = read_panel(hourly(5).to_frame(), adjacency=[("a", "b"), ("b", "c")], sensors=["c", "b"])
    assert panel.adjacency is not None and [part.tolist() for part in panel.adjacency] == [[0], [1], [1.0]]


# -- what a panel does -------------------------------------------------------------------------------------


def test_a_panel_says_what_it_holds() -> None:
    panel = read_panel(WIDE, PLACES, [("a", "b")])
    assert (panel.n_times, panel.n_sensors, panel.has_clock) == (3, 2, True)
    assert panel.observed.tolist() == [[True, True], [False, True], [True, False]]
    assert panel.last_time == TIMES[-1].to_datetime64()
    assert panel.week_seconds is not None and panel.week_seconds.tolist() == [0, 3600, 7200]
    text = panel.describe()
    for word in (
        "3 times x 2 sensors",
        "66.7% observed",
        "2025-01-06 00:00:00",
        "1h",
        "x, y",
        "1 edges",
        "nothing had",
    ):
        assert word in text
    assert repr(panel) == "Panel(3 times x 2 sensors, 2025-01-06 00:00:00 to 2025-01-06 02:00:00, step 1h)"


def test_a_panel_is_cut_along_time() -> None:
    panel = hourly()
    assert panel[10:20].values.base is not None
    np.testing.assert_array_equal(panel[10:20].values, panel.values[10:20])
    np.testing.assert_array_equal(panel[-1:].times, panel.times[-1:])
    day = panel.between("2025-01-06 06:00", dt.datetime(2025, 1, 7))
    assert day.n_times == 18 and day.times[0] == np.datetime64("2025-01-06T06:00")
    assert panel.between(stop="2025-01-07").n_times == 24
    for at in (0.25, "2025-01-06 12:00", pd.Timestamp("2025-01-06 12:00"), np.datetime64("2025-01-06T12:00")):
        before, after = panel.split(at)
        assert (before.n_times, after.n_times) == (12, 36)
    ticks = read_panel(np.zeros((10, 1)))
    assert ticks.between(3, 5).times.tolist() == [3, 4]
    assert ticks.split(4)[1].times.tolist() == [4, 5, 6, 7, 8, 9]
    assert read_panel(np.zeros((100, 1))).split(0.29)[0].n_times == 29


def test_naive_times_are_on_the_clock_of_the_panel() -> None:
    panel = hourly(time_zone="Europe/Berlin")  # midnight UTC is one o'clock
    assert panel.between("2025-01-06 03:00").times[0] == np.datetime64("2025-01-06T02:00")
    assert panel.between("2025-01-06 03:00Z").times[0] == np.datetime64("2025-01-06T03:00")


@pytest.mark.parametrize(
    "cut",
    [
        lambda panel: panel[5],
        lambda panel: panel[::2],
        lambda panel: panel[5:5],
        lambda panel: panel[100:],
        lambda panel: panel.between("2026-01-01"),
        lambda panel: panel.between("now"),
        lambda panel: panel.between("2025-01-06T00:00Z"),
        lambda panel: panel.between(3),
        lambda panel: panel.split(1.0),
        lambda panel: panel.split(0.001),
        lambda panel: panel.split("2025-01-06"),
        lambda panel: panel.select(["a", "z"]),
        lambda panel: panel.select(["a", "a"]),
        lambda panel: panel.select([]),
        lambda panel: panel.drop(["z"]),
        lambda panel: panel.drop(["a", "b", "c"]),
        lambda panel: panel.with_values(np.zeros((2, 2))),
        lambda panel: panel.with_values(np.full((48, 3), np.inf)),
        lambda panel: panel.to_frame("square"),
        lambda panel: read_panel(np.zeros((3, 1))).between("2025-01-06"),
    ],
)
def test_a_cut_that_leaves_nothing_is_refused(cut: Any) -> None:
    with pytest.raises(EcadError):
        cut(hourly())


def test_sensors_are_chosen_with_their_places_and_edges() -> None:
    panel = read_panel(
        hourly(5, 4).to_frame(), [[0, 0], [1, 1], [2, 2], [3, 3]], [("a", "b"), ("b", "d", 7), ("c", "d")]
    )
    part = panel.select(["d", "b"])
    assert part.sensors == ("d", "b")
    np.testing.assert_array_equal(part.values, panel.values[:, [3, 1]])
    assert part.positions is not None and part.positions.tolist() == [[3, 3], [1, 1]]
    assert part.adjacency is not None and [each.tolist() for each in part.adjacency] == [[1], [0], [7.0]]
    assert panel.drop("a").sensors == ("b", "c", "d")
    assert panel.select("b").sensors == ("b",)


def test_other_values_have_the_same_times() -> None:
    panel = hourly()
    other = panel.with_values(-panel.values)
    assert other.sensors == panel.sensors and other.times is not None
    np.testing.assert_array_equal(other.values, -panel.values)


def test_a_panel_survives_pickling() -> None:
    again = pickle.loads(pickle.dumps(hourly(time_zone="UTC")))
    np.testing.assert_array_equal(again.values, hourly().values)
    assert again.time_zone == "UTC"


def test_a_sensor_called_time_needs_a_long_frame() -> None:
    panel = Panel(np.zeros((2, 1)), ("time",), np.arange(2), 1)
    with pytest.raises(PanelError, match="to_frame"):
        panel.to_frame()
    assert read_panel(panel.to_frame("long")).sensors == ("time",)


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_frames_are_given_back_in_the_kind_of_the_caller(kind: str) -> None:
    panel = Panel(VALUES, ("a", "b"), TIMES.to_numpy(), HOUR, frame=kind)
    wide, long = panel.to_frame(), panel.to_frame("long")
    assert type(wide).__module__.partition(".")[0] == kind
    wide, long = nw.from_native(wide, eager_only=True), nw.from_native(long, eager_only=True)
    assert wide.columns == ["time", "a", "b"] and wide.shape == (3, 3)
    assert long.columns == ["time", "sensor", "value"] and long.shape == (6, 3)
    assert long["sensor"].to_list() == ["a", "b"] * 3
    assert long["sensor"].dtype == nw.String
    np.testing.assert_array_equal(long["value"].to_numpy(), VALUES.ravel())
    if kind != "pandas":
        assert long["value"].null_count() == 2
    more = nw.from_native(
        panel.long_frame({"alarm": (VALUES > 3).ravel(), "status": VALUES.astype(str).ravel()}),
        eager_only=True,
    )
    assert more.columns == ["time", "sensor", "alarm", "status"]
    assert more["alarm"].dtype == nw.Boolean


# -- how one continues another -----------------------------------------------------------------------------


def test_a_panel_is_a_panel() -> None:
    panel = hourly()
    assert as_panel(panel) is panel
    assert as_panel(panel, like=panel[:5]) is panel
    assert as_panel(WIDE).sensors == ("a", "b")


def test_later_frames_take_the_order_of_the_fitted_sensors() -> None:
    panel = hourly()
    fitted, later = panel.split(0.5)
    for frame in (
        later.select(["c", "a", "b"]).to_frame(),
        later.to_frame("long"),
        later.to_frame().set_index("time"),
    ):
        again = as_panel(frame, like=fitted)
        assert again.sensors == fitted.sensors
        values, times = continue_after(again, fitted)
        np.testing.assert_array_equal(values, later.values)
        np.testing.assert_array_equal(times, later.times)


def test_absent_sensors_are_missing_and_counted() -> None:
    fitted, later = hourly().split(0.5)
    again = as_panel(later.drop("b").to_frame(), like=fitted)
    assert again.repairs == {"absent sensors": 1}
    assert np.isnan(again.values[:, 1]).all()
    with pytest.warns(EcadWarning, match="absent"):
        values, _ = continue_after(later.select(["c", "a"]), fitted)
    assert np.isnan(values[:, 1]).all()
    np.testing.assert_array_equal(values[:, [0, 2]], later.values[:, [0, 2]])


def test_later_data_keeps_what_the_fitted_panel_knows() -> None:
    fitted = read_panel(
        hourly(24).to_frame(), [[0, 0], [1, 1], [2, 2]], [("a", "b")], time_zone="Europe/Berlin"
    )
    later = as_panel(np.zeros((2, 3)), like=fitted)
    assert later.positions is not None and later.geometry == "xy" and later.adjacency is not None
    assert later.time_zone == "Europe/Berlin"
    assert later.times[0] == fitted.times[-1] + HOUR
    naive = as_panel(pd.DataFrame({"time": ["2025-01-07 00:00"], "a": [1], "b": [2], "c": [3]}), like=fitted)
    assert naive.times[0] == fitted.times[-1] + HOUR


def test_one_later_row_is_enough() -> None:
    fitted = hourly(24)
    for later in (np.ones((1, 3)), [[1, 1, 1]], pd.DataFrame({"time": ["2025-01-07"], "a": [1], "b": [1], "c": [1]}),
                  pd.DataFrame({"a": [1.5], "b": [1], "c": [1]})):  # fmt: skip
        assert as_panel(later, like=fitted).times.tolist() == [fitted.times[-1] + HOUR]


def test_later_clocks_that_wander_stay_on_the_fitted_grid() -> None:
    fitted = hourly(24)
    frame = pd.DataFrame({"time": ["2025-01-07 00:00:20", "2025-01-07 01:00:20"], "a": [1, 2]})
    later = as_panel(frame, like=fitted)
    assert later.times[0] == fitted.times[-1] + HOUR
    assert later.repairs["snapped times"] == 2


def test_a_gap_becomes_rows_of_missing_readings() -> None:
    panel = hourly()
    values, times = continue_after(panel[30:], panel[:24])
    assert values.shape == (24, 3)
    assert np.isnan(values[:6]).all()
    np.testing.assert_array_equal(values[6:], panel.values[30:])
    np.testing.assert_array_equal(times, panel.times[24:])
    ticks = read_panel(np.zeros((9, 1)))
    assert continue_after(ticks[5:], ticks[:2])[1].tolist() == [2, 3, 4, 5, 6, 7, 8]


@pytest.mark.parametrize(
    ("later", "words"),
    [
        (lambda panel: panel[23:], ["2025-01-06 23:00:00", "fitted data goes to"]),
        (lambda panel: panel[:24], ["2025-01-06 00:00:00", "between"]),
        (
            lambda panel: Panel(panel.values, panel.sensors, panel.times + HOUR * 24 + HOUR // 2, HOUR),
            ["00:30:00", "1h"],
        ),
        (
            lambda panel: Panel(panel.values, panel.sensors, panel.times + HOUR * 24, HOUR * 2),
            ["2h", "1h", "resample"],
        ),
        (
            lambda panel: Panel(panel.values, ("a", "b", "z"), panel.times + HOUR * 24, HOUR),
            ["'z'", "leave it out"],
        ),
        (
            lambda panel: Panel(panel.values, panel.sensors, panel.times + HOUR * 10**9, HOUR),
            ["too many to fill"],
        ),
        (lambda panel: Panel(panel.values, panel.sensors, np.arange(48) + 100, 1), ["clock", "tick numbers"]),
    ],
)
def test_what_does_not_continue_is_refused(later: Any, words: list[str]) -> None:
    panel = hourly()
    with pytest.raises(PanelError) as caught:
        continue_after(later(panel), panel[:24])
    for word in words:
        assert word in str(caught.value)


# -- real readings -----------------------------------------------------------------------------------------


def test_the_readings_of_the_paper_are_read(data_folder: Path) -> None:
    fitted = read_panel(data_folder / "pems10" / "train_0.5.parquet")
    later = read_panel(data_folder / "pems10" / "test_0.5.parquet")
    assert fitted.sensors == later.sensors and fitted.n_sensors == 10
    assert fitted.repairs == {"missing ticks": 1}  # the hour that the clock skips in spring
    assert later.repairs == {} and later.observed.all()
    assert continue_after(later, fitted)[0].shape == later.values.shape


def test_a_city_is_read_with_its_places(data_folder: Path) -> None:
    folder = data_folder / "muenster_kfz"
    panel = read_panel(folder / "flow_2015.parquet", folder / "sensors.csv")
    assert panel.values.shape == (8760, 654) and panel.geometry == "lonlat"
    assert round(float(panel.observed.mean()), 3) == 0.854
    zoned = read_panel(folder / "flow_2015.parquet", time_zone="Europe/Berlin")
    assert zoned.n_times == 8760 and zoned.repairs["skipped hours"] == 1 == zoned.repairs["ambiguous hours"]


def test_a_river_and_a_city_of_air_are_read(data_folder: Path) -> None:
    river = read_panel(data_folder / "lro_river" / "raw_2019.parquet")
    assert river.ticks_per_day == 96 and river.values.shape == (31_163, 30)
    air = data_folder / "beijing_air12"
    panel = read_panel(air / "pm25.parquet", air / "sensors.csv", time_zone="Asia/Shanghai")
    assert panel.geometry == "lonlat" and round(1 - float(panel.observed.mean()), 3) == 0.021


def test_a_year_of_a_city_is_the_same_wide_and_long() -> None:
    panel = read_panel(np.random.default_rng(0).normal(size=(8760, 654)), start="2025-01-01", step="1h")
    for shape in ("wide", "long"):
        again = read_panel(panel.to_frame(shape))  # type: ignore[arg-type]
        assert again.sensors == panel.sensors
        np.testing.assert_array_equal(again.values, panel.values)


def test_one_time_needs_no_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream asks at every tick, and a table costs it a hundred times as much."""
    monkeypatch.delattr(pd, "DatetimeIndex")
    moment = np.datetime64("2025-07-01T12:00", "us")  # a Tuesday
    for zone, hour in ((None, 12), ("UTC", 12), ("+01:00", 13), ("Europe/Berlin", 14)):
        assert week_seconds(moment, zone) == 86_400 + 3600 * hour
