"""a column of cells -> float64, NaN where missing; what was repaired is counted, what is no number is an error."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from ..errors import PanelError
from .arrays import FloatArray, IntArray
from .options import Options
from .scalars import MEANS_MISSING, is_absent, number_of

Where = Callable[[int], str]


def read_numbers(
    series: Any, where: Where, options: Options, sensor: str | None
) -> tuple[FloatArray, Counter[str]]:
    """A column -> float64, NaN where missing, and the repairs of its cells."""
    import narwhals as nw

    dtype = series.dtype
    if dtype.is_numeric() or dtype == nw.Boolean:
        return floats_of(series), Counter()
    if is_empty(series):
        return np.full(len(series), np.nan), Counter()
    if dtype in (nw.String, nw.Categorical, nw.Enum):
        return parse_texts(texts_of(series), options, where, sensor)
    native = np.asarray(series.to_native()) if dtype == nw.Unknown else None
    if native is not None and native.dtype.kind in "biuf":
        return native.astype(np.float64), Counter()
    return numbers_of_objects(np.array([*series.to_list(), None], dtype=object)[:-1], where, options)


def floats_of(series: Any) -> FloatArray:
    """A column of numbers -> float64, NaN where null."""
    import narwhals as nw

    return np.asarray(series.cast(nw.Float64).to_numpy(), dtype=np.float64)


def texts_of(series: Any) -> Any:
    """A column of texts or categories -> one Arrow array of texts."""
    import narwhals as nw
    import pyarrow as pa

    if series.dtype != nw.String:
        series = series.cast(nw.String)
    column = series.to_arrow()
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return column.cast(pa.large_string())


def parse_texts(
    texts: Any, options: Options, where: Where, sensor: str | None = None
) -> tuple[FloatArray, Counter[str]]:
    """Arrow texts -> float64. Clean columns go in one cast; the others are looked at cell by cell, still in Arrow."""
    import pyarrow as pa
    import pyarrow.compute as pc

    plain = options.decimal == "." and options.thousands is None and not options.missing_texts
    if plain:
        try:
            return _to_numpy(pc.cast(texts, pa.float64())), Counter()
        except pa.ArrowInvalid:
            pass
    texts = pc.utf8_trim_whitespace(texts)
    lower = pc.utf8_lower(texts)
    stated = pc.is_in(lower, value_set=pa.array(options.missing_texts, pa.large_string()))
    absent = pc.or_(stated, pc.is_in(lower, value_set=pa.array(MEANS_MISSING, pa.large_string())))
    texts = pc.if_else(absent, None, texts)
    counted = Counter({"missing values": _count(stated)})
    if _all_boolean(lower, texts):
        return _to_numpy(
            pc.if_else(pc.is_valid(texts), pc.equal(lower, "true"), None).cast(pa.float64())
        ), counted
    good = pc.match_substring_regex(texts, _number_pattern(options.decimal, options.thousands))
    bad = pc.and_(pc.is_valid(texts), pc.invert(good))
    counted["non-numeric"] = _count(bad)
    if counted["non-numeric"] and options.non_numeric != "missing":
        _refuse_cell(texts, bad, where, sensor, options)
    texts = pc.if_else(good, texts, None)
    if options.thousands is not None:
        texts = pc.replace_substring(texts, options.thousands, "")
    if options.decimal != ".":
        texts = pc.replace_substring(texts, options.decimal, ".")
    return _to_numpy(texts.cast(pa.float64())), counted


def _count(mask: Any) -> int:
    import pyarrow.compute as pc

    return int(pc.sum(mask).as_py() or 0)


def _all_boolean(lower: Any, texts: Any) -> bool:
    import pyarrow as pa
    import pyarrow.compute as pc

    words = pc.is_in(lower, value_set=pa.array(["true", "false"], pa.large_string()))
    given = len(texts) - texts.null_count
    return given > 0 and _count(words) == given


def _number_pattern(decimal: str, thousands: str | None) -> str:
    point = re.escape(decimal)
    whole = r"\d+" if thousands is None else rf"(?:\d{{1,3}}(?:{re.escape(thousands)}\d{{3}})+|\d+)"
    return (
        rf"^[+-]?(?:{whole}(?:{point}\d*)?(?:[eE][+-]?\d+)?|{point}\d+(?:[eE][+-]?\d+)?|(?i:inf|infinity))$"
    )


def _to_numpy(column: Any) -> FloatArray:
    return np.array(column.to_numpy(zero_copy_only=False), dtype=np.float64)


def _refuse_cell(texts: Any, bad: Any, where: Where, sensor: str | None, options: Options) -> NoReturn:

    row = int(np.argmax(bad.to_numpy(zero_copy_only=False).astype(bool)))
    cell = texts[row].as_py()
    remedy = _remedy(cell)
    hint = ""
    if remedy is None and sensor is not None and _count(bad) == len(texts) - texts.null_count:
        hint = f" No cell of {sensor!r} is a number: if it is no sensor, choose with sensors=, or, if it names sensors"
        hint += f" (long data), say sensor={sensor!r} and value=."
    if remedy is None:
        remedy = "correct it"
        if options.non_numeric != "never":
            remedy += ", or say non_numeric='missing' to count such cells as missing"
    place = where(row)
    raise PanelError(
        f"{place[:1].upper()}{place[1:]} has the cell {cell[:60]!r}, which is not a number; {remedy}.{hint}"
    )


def _remedy(cell: str) -> str | None:
    """What to say about a cell that looks like a number written in another way."""
    if re.fullmatch(r"[+-]?\d{1,3}(\.\d{3})+,\d*|[+-]?\d{1,3}([ '_]\d{3})+,\d*", cell):
        return f"say decimal=',' and thousands={_first_sign(cell)!r}"
    if re.fullmatch(r"[+-]?\d{1,3}(,\d{3})+\.\d*|[+-]?\d{1,3}(,\d{3}){2,}", cell):
        return "say thousands=','"
    if re.fullmatch(r"[+-]?\d{1,3},\d{3}", cell):
        return "say decimal=',' if the comma is the decimal sign, or thousands=','"
    if re.fullmatch(r"[+-]?\d*,\d+([eE][+-]?\d+)?", cell):
        return "say decimal=',' if the comma is the decimal sign"
    if re.fullmatch(r"[+-]?\d{1,3}([ '_.]\d{3})+(\.\d*)?", cell):
        return f"say thousands={_first_sign(cell)!r}"
    if re.fullmatch(r"[+-]?\d*\.\d+([eE][+-]?\d+)?", cell):
        return "say decimal='.', or correct it"
    return None


def _first_sign(cell: str) -> str:
    return re.sub(r"[+-]|\d", "", cell)[0]


def numbers_of_objects(
    cells: npt.NDArray[Any], where: Where, options: Options
) -> tuple[FloatArray, Counter[str]]:
    """Python objects -> float64: numbers as they are, texts by the same rules as a column of texts."""
    import pyarrow as pa

    values = np.full(len(cells), np.nan)
    rows: list[int] = []
    texts: list[str] = []
    for row, cell in enumerate(cells):
        number = number_of(cell)
        if number is None:
            rows.append(row)
            texts.append(cell if isinstance(cell, str) else f"<{type(cell).__name__}> {cell!s}")
        else:
            values[row] = number
    if not rows:
        return values, Counter()
    column = pa.array([text.encode("utf-8", "replace").decode("utf-8") for text in texts], pa.large_string())
    values[rows], counted = parse_texts(column, options, lambda place: where(rows[place]))
    return values, counted


def clean(values: FloatArray, options: Options, repairs: dict[str, int]) -> None:
    """Stated missing values and infinities become NaN, in place and counted."""
    for sentinel in options.missing_numbers:
        equal = values == sentinel
        if abs(sentinel) < 1e38:  # a float32 file holds the nearest float32 of it
            equal |= values == float(np.float32(sentinel))
        if count := int(np.count_nonzero(equal)):
            repairs["missing values"] = repairs.get("missing values", 0) + count
            values[equal] = np.nan
    infinite = np.isinf(values)
    if count := int(np.count_nonzero(infinite)):
        repairs["infinite"] = count
        values[infinite] = np.nan


def factorised(series: Any, what: str) -> tuple[IntArray, list[Any]]:
    """Each row's place among the distinct cells, -1 where there is none, and those cells."""
    import narwhals as nw
    import pandas as pd

    if series.dtype == nw.String:
        encoded = texts_of(series).dictionary_encode()
        return encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False), encoded.dictionary.to_pylist()
    try:
        codes, unique = pd.factorize(pandas_series(series))
    except (TypeError, ArithmeticError) as error:
        raise PanelError(
            f"The column of {what} cannot be read ({error}); give one time or name a cell."
        ) from error
    return codes, list(unique)


def pandas_series(series: Any) -> Any:
    """The column in pandas; by its own library, since narwhals loses the time zone of Arrow columns."""
    import pandas as pd
    import pyarrow as pa

    native = series.to_native()
    if not hasattr(native, "to_pandas"):
        return native
    try:
        return native.to_pandas()
    except pa.ArrowInvalid:  # a kind that Arrow does not have, as the Int128 of polars
        return pd.Series(series.to_list(), dtype=object)


def is_empty(series: Any) -> bool:
    """Whether no cell holds anything."""
    import narwhals as nw

    if series.dtype == nw.Object:  # pandas stumbles over a signalling decimal NaN when it counts
        return all(map(is_absent, series.to_list()))
    return bool(series.null_count() == len(series))
