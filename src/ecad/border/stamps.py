"""a column of times -> Stamps: microseconds on a clock, or tick numbers."""

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
from .cells import factorised, floats_of, is_empty, pandas_series, parse_texts
from .clock import UNITS, show_time, tzinfo_of, zone_name
from .options import LENIENT, Options
from .scalars import MEANS_MISSING, is_absent

NOT_A_TIME = np.iinfo(np.int64).min
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


def is_clock(series: Any) -> bool:
    """Whether a column holds moments; pandas is asked itself, since narwhals knows no zone with an underscore."""
    import narwhals as nw
    import pandas as pd

    native = series.to_native()
    return series.dtype == nw.Datetime or (
        isinstance(native, pd.Series) and pd.api.types.is_datetime64_any_dtype(native.dtype)
    )


def is_period(series: Any) -> bool:
    """Whether a column holds periods of pandas, which begin at a moment."""
    import pandas as pd

    return isinstance(getattr(series.to_native(), "dtype", None), pd.PeriodDtype)


def read_stamps(series: Any, options: Options) -> Stamps:
    """A column of times, of any kind -> microseconds since 1970, or tick numbers."""
    import narwhals as nw
    import pandas as pd

    if is_empty(series):
        return Stamps(np.full(len(series), NOT_A_TIME), clock=True)
    if series.dtype == nw.Date:
        series = series.cast(nw.Datetime("us"))
    if is_period(series):
        return _stamps_of_index(pd.DatetimeIndex(pandas_series(series).dt.to_timestamp()), int)
    if is_clock(series):
        return _stamps_of_index(pd.DatetimeIndex(pandas_series(series)), int)
    if series.dtype.is_numeric():
        return _stamps_of_numbers(floats_of(series), int, options)
    if series.dtype in (nw.Duration, nw.Boolean, nw.Time, nw.Binary, nw.List, nw.Struct, nw.Array):
        raise PanelError(
            f"The times hold {type(series.dtype).__name__.lower()} such as {series[0]}; needed are dates with times, "
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
            f"Data row {row_of(place) + 1} has the time {index[place]}, outside the years 1678 to 2261; correct it."
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
            f"Data row {row_of(place) + 1} has the time {numbers[place]:.15g}, which with time_unit={unit!r} is "
            "outside the years 1678 to 2261; correct the unit."
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
            f"{row_of(zones[other]) + 1} has {cells[zones[other]]} with one ({other}); give all or none a zone."
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
            f"Some times have no zone ({offsets[None]!r}) and some have one ({other!r}); give all or none a zone."
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
