"""a path, frame, mapping or array -> a Table with text names, or an array: opened, and not yet understood."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..errors import EcadError, PanelError
from .names import refuse_twice, some_of

_READERS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".feather": "feather",
    ".arrow": "feather",
    ".ipc": "feather",
}
_PACKED = (".gz", ".bz2", ".zst", ".lz4")
_INDEX = "__index_level_0__"  # what Parquet calls an index without a name


class Table(NamedTuple):
    """An opened source: a frame with text names, and its index apart."""

    frame: Any  # narwhals.DataFrame with text names
    index: Any  # narwhals.Series, or None where the frame has no index worth reading
    kind: str  # "pandas" | "polars" | "pyarrow"
    text: bool  # read from text: every cell is a text
    row_numbers: bool = False  # the index was a column without a name, as a frame's index becomes in a file


def open_source(source: Any) -> Table | npt.NDArray[Any]:
    """Whatever the caller has -> a table when it has columns, else an array."""
    if isinstance(source, (str, os.PathLike)):
        return _open_arrow(read_table(source), "pandas", text=file_format(source) == "csv")
    if isinstance(source, Mapping):
        return _open_pandas(_frame_of_mapping(source))
    if isinstance(source, (list, tuple)) and source and all(isinstance(row, Mapping) for row in source):
        import pandas as pd

        return _open_pandas(pd.DataFrame.from_records(list(source)))
    if isinstance(source, np.ndarray) and source.dtype.names:
        import pandas as pd

        return _open_pandas(pd.DataFrame(source))
    table = None if isinstance(source, (np.ndarray, list, tuple)) else _frame_table(source)
    return _array(source) if table is None else table


def file_format(path: str | os.PathLike[str]) -> str:
    """The format that a path's ending names: "csv" (packed or not), "parquet" or "feather"."""
    suffixes = Path(path).suffixes
    if suffixes and suffixes[-1].lower() in _PACKED:
        suffixes = suffixes[:-1]
    suffix = suffixes[-1].lower() if suffixes else ""
    if suffix in (".csv", ".tsv", ".txt"):
        return "csv"
    if suffix not in _READERS:
        raise PanelError(
            f"The file {os.fspath(path)!r} has the ending {suffix!r}; needed is csv, tsv, txt (also .gz), parquet or "
            "feather. Rename it, or read it yourself and give the frame."
        )
    return _READERS[suffix]


def read_table(path: str | os.PathLike[str]) -> Any:
    """A file -> Arrow table. CSV cells stay text, so that no reader guesses what '007' or '1,5' is."""
    import pyarrow as pa

    kind = file_format(path)
    if not Path(path).is_file():
        raise PanelError(
            f"There is no file {os.fspath(path)!r}; give the path of an existing csv, parquet or feather."
        )
    try:
        if kind == "csv":
            return _read_csv(path)
        if kind == "parquet":
            import pyarrow.parquet

            return pyarrow.parquet.read_table(path)
        import pyarrow.feather

        return pyarrow.feather.read_table(path)
    except EcadError:
        raise
    except (OSError, EOFError, ValueError, pa.ArrowException) as error:
        reason = str(error).split("\n")[0][:200]
        raise PanelError(
            f"The file {os.fspath(path)!r} cannot be read as {kind}: {reason}. Write it again."
        ) from error


def _read_csv(path: str | os.PathLike[str]) -> Any:
    import pyarrow as pa
    import pyarrow.csv as pacsv

    with pa.input_stream(os.fspath(path), compression="detect") as stream:
        content = stream.read_buffer()
    head = re.match(rb"(?:\xef\xbb\xbf)?[\r\n]*([^\r\n]*)", content)
    if head is None or not head[1]:
        raise PanelError(f"The file {os.fspath(path)!r} is empty; give a header and at least one row.")
    try:
        header = head[1].decode("utf-8")
        separator = max(",;\t|", key=header.count)  # the first of equals
        names = [name.strip() for name in next(csv.reader([header], delimiter=separator))]
        _refuse_readings(names, path)
        refuse_twice([name for name in names if name], os.fspath(path))
        keys = [str(place) for place in range(len(names))]
        table = pacsv.read_csv(
            pa.BufferReader(content.slice(head.start(1))),
            read_options=pacsv.ReadOptions(column_names=keys, skip_rows=1),
            parse_options=pacsv.ParseOptions(delimiter=separator),
            convert_options=pacsv.ConvertOptions(
                column_types=dict.fromkeys(keys, pa.large_string()),
                null_values=[""],
                strings_can_be_null=True,
            ),
        )
    except (UnicodeDecodeError, pa.ArrowInvalid) as error:
        if isinstance(error, UnicodeDecodeError) or "UTF8" in str(error):
            raise PanelError(
                f"The file {os.fspath(path)!r} is not UTF-8 text; save it as UTF-8, or read it yourself and "
                "give the frame."
            ) from error
        raise
    # a separator at the end of each line makes a last column without name and cells
    named = [k for k, name in enumerate(names) if name or k == 0 or table.column(k).null_count < len(table)]
    return table.select(named).rename_columns([names[k] for k in named])


def _refuse_readings(names: list[str], path: str | os.PathLike[str]) -> None:
    """A number may be the name of a sensor; a date, or the same number twice, is none."""
    dates = [name for name in names if re.match(r"\d{4}-\d\d?-\d\d?|\d\d?[./]\d\d?[./]\d{2}", name)]
    numbers = [name for name in names if re.fullmatch(r"[-+]?\d+([.,]\d+)?", name)]
    twice = [name for name in numbers if numbers.count(name) > 1]
    if (dates and len(dates) + len(numbers) == len(names)) or twice:
        raise PanelError(
            f"The first row of the file {os.fspath(path)!r} holds readings ({some_of((dates + twice)[:2])}) and no "
            "names: write a header above it."
        )


def _frame_of_mapping(source: Mapping[Any, Any]) -> Any:
    import pandas as pd

    try:
        return pd.DataFrame({name: _column(cells) for name, cells in source.items()})
    except (ValueError, TypeError) as error:
        raise PanelError(
            f"The dict of columns cannot become a table ({error}); give each key a list of the same length."
        ) from error


def _column(cells: Any) -> Any:
    return cells.to_numpy() if hasattr(cells, "to_numpy") and not hasattr(cells, "index") else cells


def _frame_table(source: Any) -> Table | None:
    """A frame of any kind narwhals knows; None when the source is no frame."""
    import narwhals as nw

    source = nw.to_native(source, pass_through=True)
    if nw.dependencies.is_pandas_series(source):
        source = source.to_frame("value" if source.name is None else source.name)
        levels = [name is not None for name in source.index.names]
        if len(levels) == 2 and not any(levels):
            source.index.names = ["time", "sensor"]
    if nw.dependencies.is_pandas_dataframe(source):
        return _open_pandas(source)
    if nw.dependencies.is_pyarrow_table(source):
        return _open_arrow(source, "pyarrow")
    frame = nw.from_native(source, pass_through=True)
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()
    if isinstance(frame, nw.DataFrame):
        if frame.implementation.is_pandas_like():
            return _open_pandas(frame.to_pandas())
        if not frame.implementation.is_polars():
            return _open_arrow(frame.to_arrow(), "pyarrow")
        return _with_stored_index(frame, _INDEX, "polars", text=False)
    if hasattr(source, "__arrow_c_stream__") and not hasattr(source, "dtype") and not hasattr(source, "type"):
        import pyarrow as pa

        return _open_arrow(pa.table(source), "pyarrow")
    return None


def _open_pandas(source: Any) -> Table:
    import narwhals as nw
    import pandas as pd

    index = source.index
    if isinstance(index, pd.MultiIndex):
        source = source.reset_index()
        index = source.index
    frame = source.copy(deep=False)
    frame.columns = refuse_twice([str(name) for name in source.columns], "The frame")
    frame.index = pd.RangeIndex(len(frame))
    counting = (
        isinstance(index, pd.RangeIndex) and index.start == 0 and index.step == 1 and index.name is None
    )
    series = None
    if not counting:
        if isinstance(index, pd.PeriodIndex):
            index = index.to_timestamp()
        name = None if index.name is None else str(index.name)
        series = nw.from_native(pd.Series(index, name=name), series_only=True)
    return Table(nw.from_native(frame, eager_only=True), series, "pandas", text=False)


def _open_arrow(table: Any, kind: str, text: bool = False) -> Table:
    import narwhals as nw

    refuse_twice(table.column_names, "The table")
    table, index = _stored_index(table)
    return _with_stored_index(nw.from_native(table, eager_only=True), index, kind, text)


def _stored_index(table: Any) -> tuple[Any, str]:
    """The table with the index that pandas stored in it as a column, and the name of that column."""
    try:
        stored = (table.schema.pandas_metadata or {}).get("index_columns", [])
    except ValueError:  # no JSON: not written by pandas
        stored = []
    if len(stored) != 1:
        return table, _INDEX
    if isinstance(stored[0], str):
        return table, stored[0]
    span = range(*(int(stored[0].get(end, 1)) for end in ("start", "stop", "step")))
    name = stored[0].get("name") or _INDEX
    plain = name == _INDEX and span.start == 0 and span.step == 1
    if plain or len(span) != len(table) or name in table.column_names:
        return table, _INDEX
    return table.append_column(name, [np.array(span)]), name


def _with_stored_index(frame: Any, name: str, kind: str, text: bool) -> Table:
    if name not in frame.columns:
        return Table(frame, None, kind, text)
    index = frame[name]
    return Table(frame.drop(name), index.alias("") if name == _INDEX else index, kind, text)


def _array(source: Any) -> npt.NDArray[Any]:
    if isinstance(source, np.ma.MaskedArray):
        source = np.ma.filled(source.astype(np.float64), np.nan)
    try:
        array = np.asarray(source)
    except (ValueError, TypeError) as error:
        raise PanelError(
            f"The {type(source).__name__} cannot become an array of one shape ({error}); give each time the "
            "same sensors."
        ) from error
    if array.ndim not in (1, 2):
        raise PanelError(
            f"The data is of type {type(source).__name__} and shape {array.shape}; needed is a path, a frame, or an "
            "array (times, sensors)."
        )
    return array
