"""a table or an array -> its times, wherever it keeps them: a column, its index, what was stated, or nowhere."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np

from ..errors import PanelError, SettingError
from .cells import is_empty, parse_texts, read_numbers, texts_of
from .clock import stated_step
from .names import some_of
from .options import LENIENT, Options
from .scalars import is_absent
from .sources import Table
from .stamps import NOT_A_TIME, Stamps, is_clock, is_period, one_time, read_stamps

_TIME_NAMES = ("time", "timestamp", "datetime", "date_time", "date")


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
    if dtype == nw.Date or is_clock(series) or is_period(series):
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
