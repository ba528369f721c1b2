"""files <-> frames: what travels between sessions and programs. (What a detector learned travels in `modelfile`.)

A panel is read by `panel.read_panel`, which is the border for data; what is written for others to read leaves here.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from .errors import PanelError
from .panel import Panel, file_format, read_table

# -- frames: csv (also packed), parquet, feather -----------------------------------------------------------


def read_frame(path: str | os.PathLike[str]) -> Any:
    """A csv, parquet or feather file -> pandas frame; csv columns that are all numbers or times become such."""
    import pyarrow as pa

    table = read_table(path)
    if file_format(path) == "csv":
        columns = [_typed(name, table.column(name)) for name in table.column_names]
        table = pa.table(columns, names=table.column_names)
    return table.to_pandas()


def write_frame(frame: Any, path: str | os.PathLike[str]) -> None:
    """A frame of any kind, or a panel, -> the csv, parquet or feather file that the path's ending names.

    In a csv missing readings are empty cells, and times that have a zone are written in UTC, ending in Z. The file
    appears only when it is complete.
    """
    kind = file_format(path)
    table = _arrow(frame)
    part = Path(path).with_name(f".part.{Path(path).name}")
    try:
        _write(table, part, kind)
        os.replace(part, path)
    except OSError as error:
        raise PanelError(f"the file {os.fspath(path)!r} cannot be written: {error}.") from error
    finally:
        part.unlink(missing_ok=True)


def _write(table: Any, path: Path, kind: str) -> None:
    import pyarrow as pa
    import pyarrow.csv as pacsv
    import pyarrow.feather
    import pyarrow.parquet

    if kind == "parquet":
        pyarrow.parquet.write_table(table, path)
    elif kind == "feather":
        pyarrow.feather.write_feather(table, str(path))
    else:
        plain = pa.table([_plain(column) for column in table.columns], names=table.column_names)
        with pa.output_stream(str(path), compression="detect") as stream:
            pacsv.write_csv(plain, stream, pacsv.WriteOptions(quoting_style="needed"))


def _arrow(frame: Any) -> Any:
    import narwhals as nw

    if isinstance(frame, Panel):
        frame = frame.to_frame()
    if nw.dependencies.is_pandas_dataframe(frame):
        import pandas as pd

        if not isinstance(frame.index, pd.RangeIndex):
            frame = frame.reset_index()
        frame = frame.rename(columns=str)
    native = nw.from_native(frame, pass_through=True)
    if isinstance(native, nw.LazyFrame):
        native = native.collect()
    if not isinstance(native, nw.DataFrame):
        raise PanelError(
            f"a {type(frame).__name__} is no frame; give a pandas, polars or Arrow frame, or a panel."
        )
    return native.to_arrow()


def _plain(column: Any) -> Any:
    """A column as people expect it in a csv: no 'nan', no '.000000' behind whole seconds."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_floating(column.type):
        return pc.if_else(pc.is_nan(column), None, column)
    if pa.types.is_dictionary(column.type):
        return column.cast(column.type.value_type)
    if pa.types.is_timestamp(column.type):
        try:
            return column.cast(pa.timestamp("s", column.type.tz))
        except pa.ArrowInvalid:
            return column
    return column


def _typed(name: str, column: Any) -> Any:
    """A column of texts as numbers, truth values or times, where every cell is one; a sensor's name stays a name."""
    import pyarrow as pa

    if name == "sensor" or column.null_count == len(column):
        return column
    for kind in (pa.int64(), pa.float64(), pa.bool_(), pa.timestamp("us"), pa.timestamp("us", "UTC")):
        try:
            return column.cast(kind)
        except pa.ArrowInvalid:
            continue
    return column
