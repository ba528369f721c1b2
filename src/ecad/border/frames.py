"""columns -> a frame of the caller's kind, with its times in their zone."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast

import numpy as np


def make_frame(columns: Mapping[str, Any], kind: str = "pandas", time_zone: str | None = None) -> Any:
    """Columns -> a frame of this kind. datetime64 columns are UTC when there is a zone, and are shown in it.

    A text column may be given as (codes, labels), which is much quicker than an array of texts. NaN becomes null where
    the kind of frame has one.
    """
    import narwhals as nw
    import pyarrow as pa

    if kind == "polars" and time_zone is not None:
        time_zone = _zone_of_polars(time_zone)
    arrays = [_arrow_column(column, time_zone) for column in columns.values()]
    table = pa.table(dict(zip(columns, arrays, strict=True)))
    if kind == "pyarrow":
        return table
    return nw.from_arrow(table, backend=cast(Any, kind)).to_native()


def _zone_of_polars(zone: str) -> str:
    """Polars knows no fixed offsets: whole hours have another name, others are given in UTC."""
    if not re.fullmatch(r"[+-]\d{2}:\d{2}", zone):
        return zone
    sign, hours = "-" if zone[0] == "+" else "+", int(zone[1:3])
    return f"Etc/GMT{sign}{hours}" if zone.endswith(":00") and hours <= 12 else "UTC"


def _arrow_column(column: Any, time_zone: str | None) -> Any:
    import pyarrow as pa

    if isinstance(column, tuple):
        codes, labels = column
        return pa.array(list(labels), pa.string()).take(pa.array(np.asarray(codes)))
    array = np.asarray(column)
    if array.dtype.kind == "M":
        return pa.array(array.astype("datetime64[us]")).cast(pa.timestamp("us", time_zone))
    return pa.array(array, from_pandas=array.dtype.kind in "fO")
