"""a column of times -> Stamps: microseconds on a clock, or tick numbers; and where a source keeps its times."""

from __future__ import annotations

import datetime as dt
import re
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np

from ..errors import PanelError, SettingError
from .arrays import BoolArray, FloatArray, IntArray
from .cells import factorised, floats_of, is_empty, pandas_series, parse_texts, read_numbers, texts_of
from .clock import UNITS, show_time, stated_step, tzinfo_of, zone_name
from .names import some_of
from .options import LENIENT, Options
from .scalars import MEANS_MISSING, is_absent
from .sources import Table

NOT_A_TIME = np.iinfo(np.int64).min
_TIME_NAMES = ("time", "timestamp", "datetime", "date_time", "date")
_OFFSET = re.compile(r"[T ]\d{2}[\d:.,]*\s*(Z|[+-]\d{2}(?::?\d{2})?)$", re.IGNORECASE)
_ISO = re.compile(r"\d{4}")
_EARLIEST, _LATEST = (
    int(np.datetime64(text, "us").astype(np.int64)) for text in ("1678-01-01", "2262-01-01")
)
_LARGEST_TICK = 2**53


@dataclass(frozen=True)
class Stamps:
    """Times as int64: microseconds since 1970 or tick numbers, NOT_A_TIME where there is none."""

    ticks: IntArray
    clock: bool
    zone: str | None = None  # of aware times, which are then in UTC
    rows: bool = False  # the source has no times: these are row numbers

    def show(self, row: int) -> str:
        tick = int(self.ticks[row])
        if tick == NOT_A_TIME:
            return f"data row {row + 1} (no time)"
        return show_time(np.datetime64(tick, "us") if self.clock else tick, self.zone)


def frame_stamps(table: Table, options: Options, taken: frozenset[str]) -> tuple[str | None, Stamps]:
    """The name of the column of times (None for the index and for row numbers) and its times."""
    columns = [name for name in table.frame.columns if name not in taken]
    if options.time in columns:
        name = options.time
    elif options.time is not None and _index_name(table) != options.time:
        raise PanelError(
            f"There is no column {options.time!r} for time=; the data has {some_of(table.frame.columns)}."
        )
    else:
        place = "index" if options.time is not None else _place_of_times(table, columns, options, bool(taken))
        if place == "index":
            return None, read_stamps(table.index, options)
        if place == "rows":
            return None, Stamps(np.arange(len(table.frame), dtype=np.int64), clock=False, rows=True)
        name = columns[0] if place == "first" else _usual_column(columns)
    return name, read_stamps(table.frame[name], options)


def _index_name(table: Table) -> str | None:
    return None if table.index is None else table.index.name


def _usual_column(columns: list[str]) -> str | None:
    return next((name for usual in _TIME_NAMES for name in columns if name.lower() == usual), None)


def _place_of_times(table: Table, columns: list[str], options: Options, long: bool) -> str:
    """Where the times are: "index", a column with a "usual" name, the "first" column, or nowhere: "rows"."""
    beside = long or len(columns) > 1  # the only column of wide data is a sensor
    index = _content(table.index)
    if index == "time" or (index != "nothing" and (_index_name(table) or "").lower() in _TIME_NAMES):
        return "index"
    if beside and _usual_column(columns) is not None:
        return "usual"
    first = _content(table.frame[columns[0]]) if columns else "nothing"
    if first == "time":
        return "first"
    if index == "text":
        return "index"
    if first == "text":
        return "first"
    if index == "whole":
        return "index"
    if first in ("whole", "number") and beside and (long or _counts(table.frame[columns[0]], options)):
        return "first"
    if long:
        raise PanelError(f"Long data needs a column of times; say time=, one of {some_of(columns)}.")
    return "rows"


def _content(series: Any) -> str:
    """What a column holds: "time", "text", "whole" (numbers), "number", "nothing" or "other"."""
    import narwhals as nw

    if series is None or is_empty(series):
        return "nothing"
    dtype = series.dtype
    if dtype == nw.Date or _is_clock(series) or _is_period(series):
        return "time"
    if dtype.is_integer():
        return "whole"
    if dtype.is_numeric():
        return "number"
    if dtype in (nw.String, nw.Categorical, nw.Enum):
        values, found = parse_texts(texts_of(series), LENIENT, lambda row: "")
        if found["non-numeric"] or np.isnan(values).all():
            return "text"
        return "whole" if np.all(np.round(values) == values, where=~np.isnan(values)) else "number"
    if dtype == nw.Object:
        cells = [cell for cell in series.head(100).to_list() if not is_absent(cell)]
        if cells and all(isinstance(cell, dt.date) for cell in cells):
            return "time"
        return "text" if cells and all(isinstance(cell, (str, dt.date)) for cell in cells) else "other"
    return "other"


def _is_clock(series: Any) -> bool:
    """Whether a column holds moments; pandas is asked itself, since narwhals knows no zone with an underscore."""
    import narwhals as nw
    import pandas as pd

    native = series.to_native()
    return series.dtype == nw.Datetime or (
        isinstance(native, pd.Series) and pd.api.types.is_datetime64_any_dtype(native.dtype)
    )


def _is_period(series: Any) -> bool:
    import pandas as pd

    return isinstance(getattr(series.to_native(), "dtype", None), pd.PeriodDtype)


def _counts(series: Any, options: Options) -> bool:
    """Whether numbers in an unnamed first column look like times: counting by one, or since 1970, or told so."""
    if options.time_unit is not None:
        return True
    values, _ = read_numbers(series, lambda row: "", LENIENT, None)
    if not np.isfinite(values).all() or not np.all(values == np.round(values)):
        return False
    differences = np.diff(np.unique(values))
    distinct = len(differences) == len(values) - 1 > 0
    return bool(distinct and (values.min() >= 1e8 or np.median(differences) == 1))


def array_stamps(n_times: int, options: Options) -> Stamps:
    """The times of an array: given, counted from `start`, or its row numbers."""
    if options.time is not None:
        if isinstance(options.time, str) or options.start is not None:
            raise SettingError(
                "An array has no columns: give time= as the times themselves, or start= and step=."
            )
        stamps = read_stamps(_series_of(options.time), options)
        if len(stamps.ticks) != n_times:
            raise PanelError(
                f"time= has {len(stamps.ticks)} times for the {n_times} rows of the array; give one a row."
            )
        return stamps
    rows = np.arange(n_times, dtype=np.int64)
    if options.start is None:
        if options.step is not None and not isinstance(options.step, (int, np.integer, np.timedelta64)):
            raise SettingError(
                f"An array has no times: step={options.step!r} needs start=, the time of its first row."
            )
        return Stamps(rows, clock=False, rows=True)
    if isinstance(options.start, (int, np.integer)):
        return Stamps(int(options.start) + rows * (stated_step(options.step, clock=False) or 1), clock=False)
    step = stated_step(options.step, clock=True)
    if step is None:
        raise SettingError(f"start={options.start!r} needs step=, such as step='1h'.")
    # the steps are counted in UTC, so the first time is put there before they are added
    first = read_stamps(_series_of([options.start]), options)
    if not first.clock or first.ticks[0] == NOT_A_TIME:
        raise SettingError(f"start={options.start!r} is no time; give one such as '2025-01-01 00:00'.")
    zone = first.zone or options.zone
    tick = int(first.ticks[0]) if first.zone else one_time(options.start, True, options.zone)
    return Stamps(tick + rows * step, clock=True, zone=zone)


def _series_of(cells: Any) -> Any:
    import narwhals as nw
    import pandas as pd

    if isinstance(cells, pd.Index):
        cells = pd.Series(cells)
    series = nw.from_native(cells, allow_series=True, pass_through=True)
    if isinstance(series, nw.Series):
        return series
    array = np.asarray(cells)
    if array.ndim != 1:
        raise SettingError(f"time= has the shape {array.shape}; give one time a row.")
    if array.dtype.kind not in "biufM":
        array = np.array(list(cells), dtype=object)
    try:
        return nw.from_native(pd.Series(array), series_only=True)
    except (ValueError, TypeError) as error:
        raise PanelError(f"time= cannot be read as times ({error}).") from error


def read_stamps(series: Any, options: Options) -> Stamps:
    """A column of times, of any kind -> microseconds since 1970, or tick numbers."""
    import narwhals as nw
    import pandas as pd

    if is_empty(series):
        return Stamps(np.full(len(series), NOT_A_TIME), clock=True)
    if series.dtype == nw.Date:
        series = series.cast(nw.Datetime("us"))
    if _is_period(series):
        return _stamps_of_index(pd.DatetimeIndex(pandas_series(series).dt.to_timestamp()), int)
    if _is_clock(series):
        return _stamps_of_index(pd.DatetimeIndex(pandas_series(series)), int)
    if series.dtype.is_numeric():
        return _stamps_of_numbers(floats_of(series), int, options)
    if series.dtype in (nw.Duration, nw.Boolean, nw.Time, nw.Binary, nw.List, nw.Struct, nw.Array):
        raise PanelError(
            f"The times hold {type(series.dtype).__name__.lower()} such as {series[0]}; needed are dates "
            "with times, "
            "or tick numbers."
        )
    codes, unique = factorised(series, "times")  # times repeat in long data: each is read once
    stamps = _stamps_of_cells(unique, lambda place: int(np.argmax(codes == place)), options)
    return replace(stamps, ticks=np.append(stamps.ticks, NOT_A_TIME)[codes])


def _stamps_of_index(index: Any, row_of: Callable[[int], int]) -> Stamps:
    import pandas as pd

    try:
        ticks = index.as_unit("us").asi8
    except (pd.errors.OutOfBoundsDatetime, OverflowError):
        ticks = np.full(len(index), _LATEST)
    if ((ticks != NOT_A_TIME) & ((ticks < _EARLIEST) | (ticks >= _LATEST))).any():
        outside = ~index.isna() & ~((index.year >= 1678) & (index.year <= 2261))
        place = int(np.argmax(outside))
        raise PanelError(
            f"Data row {row_of(place) + 1} has the time {index[place]}, outside the years 1678 to 2261; "
            "correct it."
        )
    zone = None if index.tz is None else zone_name(index.tz)
    return Stamps(np.array(ticks, dtype=np.int64), clock=True, zone=zone)


def _stamps_of_numbers(numbers: FloatArray, row_of: Callable[[int], int], options: Options) -> Stamps:
    known = ~np.isnan(numbers)
    if options.time_format is not None:
        cells = [f"{number:.0f}" if ok else None for number, ok in zip(numbers, known, strict=True)]
        return _stamps_of_cells(cells, row_of, options)
    if options.time_unit is not None:
        return _stamps_since_1970(numbers, known, row_of, options.time_unit)
    wrong = known & ((numbers != np.round(numbers)) | ~(np.abs(numbers) < _LARGEST_TICK))
    if wrong.any():
        place = int(np.argmax(wrong))
        remedy = "say time_unit='s' for seconds since 1970, or another unit."
        if ((numbers[known] > 20_000) & (numbers[known] < 80_000)).all():  # 1954 to 2119
            remedy = (
                "if it is a spreadsheet's count of days, write dates instead, or subtract 25569 (1970-01-01) and say "
                "time_unit='D'."
            )
        raise PanelError(
            f"Data row {row_of(place) + 1} has the time {numbers[place]!s}, which is no tick number (whole, "
            f"below 2^53); {remedy}"
        )
    ticks = _whole(numbers, known)
    if _look_like_dates(ticks[known]):
        raise PanelError(
            f"The times are whole numbers such as {int(ticks[known][0])}, which look like dates; "
            f"say time_format='%Y%m%d', or give dates."
        )
    return Stamps(ticks, clock=False)


def _stamps_since_1970(
    numbers: FloatArray, known: BoolArray, row_of: Callable[[int], int], unit: str
) -> Stamps:
    with np.errstate(over="ignore"):
        micro = np.round(numbers * UNITS[unit])
    outside = known & ~((micro >= _EARLIEST) & (micro < _LATEST))
    if outside.any():
        place = int(np.argmax(outside))
        raise PanelError(
            f"Data row {row_of(place) + 1} has the time {numbers[place]:.15g}, which with "
            f"time_unit={unit!r} is "
            f"outside the years 1678 to 2261; correct the unit."
        )
    return Stamps(_whole(micro, known), clock=True, zone="UTC")


def _whole(numbers: FloatArray, known: BoolArray) -> IntArray:
    ticks = np.full(len(numbers), NOT_A_TIME, dtype=np.int64)
    ticks[known] = numbers[known].astype(np.int64)
    return ticks


def _look_like_dates(ticks: IntArray) -> bool:
    month, day = ticks // 100 % 100, ticks % 100
    sane = (ticks >= 19000101) & (ticks <= 22001231) & (month >= 1) & (month <= 12) & (day >= 1) & (day <= 31)
    return bool(len(ticks) and sane.all())


def _stamps_of_cells(cells: list[Any], row_of: Callable[[int], int], options: Options) -> Stamps:
    """Distinct times as texts or Python objects -> stamps in the same order; `row_of` is where each first stands."""
    import pandas as pd
    import pyarrow as pa

    zone = _common_zone(cells, row_of, options)
    if zone is not None:  # aware Python datetimes
        moments = pd.DatetimeIndex(pd.to_datetime(cells, utc=True, errors="coerce"))
        return replace(_stamps_of_index(moments, row_of), zone=zone)
    texts = [_time_text(cell) for cell in cells]
    if options.time_format is None:
        column = pa.array(texts, pa.large_string())
        numbers, found = parse_texts(column, LENIENT, lambda place: "")
        if not found["non-numeric"] and not np.isnan(numbers).all():
            return _stamps_of_numbers(numbers, row_of, replace(options, time_format=None))
    return _stamps_of_texts(texts, row_of, options)


def _stamps_of_texts(texts: list[str | None], row_of: Callable[[int], int], options: Options) -> Stamps:
    import pandas as pd

    written = options.time_format
    wrong = np.array(
        [text is not None and written is None and not _ISO.match(text) for text in texts], dtype=bool
    )
    if not wrong.any():
        column = pd.Series(texts, dtype=object)
        try:
            read = pd.to_datetime(column, errors="coerce", utc=True, format=written or "ISO8601")
        except ValueError as error:
            raise SettingError(f"time_format={written!r} is no format of times ({error}).") from error
        wrong = read.isna().to_numpy() & ~column.isna().to_numpy()
    if wrong.any():
        _refuse_time(texts, int(np.argmax(wrong)), row_of, options)
    zone = _text_zone([text for text in texts if text is not None], options)
    return replace(_stamps_of_index(pd.DatetimeIndex(read), row_of), zone=zone)


def _time_text(cell: Any) -> str | None:
    if is_absent(cell):
        return None
    text = cell.isoformat() if isinstance(cell, dt.date) else str(cell).strip()
    return None if text.lower() in MEANS_MISSING else text.encode("utf-8", "replace").decode("utf-8")


def _common_zone(cells: list[Any], row_of: Callable[[int], int], options: Options) -> str | None:
    """The one zone of aware datetime objects; None when they are naive or texts."""
    zones: dict[str | None, int] = {}
    for place, cell in enumerate(cells):
        if isinstance(cell, dt.datetime):
            zones.setdefault(None if cell.tzinfo is None else zone_name(cell.tzinfo), place)
        elif not is_absent(cell):
            zones.setdefault(None, place)
    if None in zones and len(zones) > 1:
        other = next(name for name in zones if name is not None)
        raise PanelError(
            f"Data row {row_of(zones[None]) + 1} has the time {cells[zones[None]]} without a zone and row "
            f"{row_of(zones[other]) + 1} has {cells[zones[other]]} with one ({other}); give all or none a "
            "zone."
        )
    if len(zones) > 1 and options.zone is None:
        one, two = list(zones)[:2]
        raise PanelError(
            f"The times are in two zones, {one} (data row {row_of(zones[one]) + 1}) and {two} (row "
            f"{row_of(zones[two]) + 1}); convert them to one, or say time_zone= for the calendar."
        )
    return options.zone if len(zones) > 1 else next(iter(zones), None)


def _text_zone(texts: list[str], options: Options) -> str | None:
    """The one offset written in the texts; None when none has one."""
    if not texts:
        return None
    if options.time_format is not None:
        return "UTC" if "%z" in options.time_format.lower() else None
    offsets: dict[str | None, str] = {}
    for text in texts:
        found = _OFFSET.search(text)
        offsets.setdefault(None if found is None else _offset_name(found.group(1)), text)
    if None in offsets and len(offsets) > 1:
        other = next(text for name, text in offsets.items() if name is not None)
        raise PanelError(
            f"Some times have no zone ({offsets[None]!r}) and some have one ({other!r}); give all or none a "
            "zone."
        )
    if len(offsets) > 1 and options.zone is None:
        one, two = list(offsets.values())[:2]
        raise PanelError(
            f"The times have two offsets, as in {one!r} and {two!r}; say time_zone=, such as "
            "'Europe/Berlin' (or 'UTC')."
        )
    return options.zone if len(offsets) > 1 else next(iter(offsets))


def _refuse_time(
    texts: list[str | None], place: int, row_of: Callable[[int], int], options: Options
) -> NoReturn:
    text = str(texts[place])
    if options.time_format is not None:
        remedy = f"time_format={options.time_format!r} does not fit it"
    else:
        example = _guessed_format(text) or "%d.%m.%Y %H:%M"
        remedy = f"write times as 2025-01-31 13:00, or say time_format=, such as {example!r}"
    raise PanelError(
        f"Data row {row_of(place) + 1} has the time {text!r}, which cannot be read as a time; {remedy}."
    )


def _guessed_format(text: str) -> str | None:
    from pandas.tseries.api import guess_datetime_format

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the day was not first after all
        return guess_datetime_format(text, dayfirst=True) if re.search(r"\d.*\d", text) else None


def _offset_name(text: str) -> str:
    if text.upper() == "Z":
        return "UTC"
    digits = text[1:].replace(":", "").ljust(4, "0")
    return "UTC" if digits == "0000" else f"{text[0]}{digits[:2]}:{digits[2:]}"


def one_time(moment: Any, clock: bool, zone: str | None) -> int:
    """One time given by a caller -> ticks: a naive one is on the panel's own clock."""
    import pandas as pd

    if not clock:
        if isinstance(moment, (int, np.integer)) and not isinstance(moment, bool):
            return int(moment)
        raise PanelError(
            f"The panel has tick numbers and no clock, so {moment!r} is no time of it; give a whole number."
        )
    if isinstance(moment, (int, float, np.number)) or (isinstance(moment, str) and not _ISO.match(moment)):
        raise PanelError(f"{moment!r} is no time; give one such as '2025-01-31 13:00'.")
    try:
        stamp = pd.Timestamp(moment)
    except (ValueError, TypeError) as error:
        raise PanelError(f"{moment!r} is no time; give one such as '2025-01-31 13:00'.") from error
    if stamp.tzinfo is not None and zone is None:
        raise PanelError(
            f"{moment!r} has a time zone, but the panel's clock has none; give a time without one."
        )
    if stamp.tzinfo is None and zone is not None:
        stamp = stamp.tz_localize(tzinfo_of(zone), ambiguous=True, nonexistent="shift_forward")
    return int(_stamps_of_index(pd.DatetimeIndex([stamp]), int).ticks[0])
