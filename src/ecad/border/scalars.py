"""one Python object -> its number, or nothing: the cells that no column type has read yet."""

from __future__ import annotations

import decimal
import math
from typing import Any

import numpy as np

MEANS_MISSING = ("", "na", "n/a", "nan", "-nan", "+nan", "null", "none", "nat", "<na>", "#n/a")


def number_of(cell: Any) -> float | None:
    """A Python number as float, NaN for what means missing, None for what must be read as text."""
    if cell is None or type(cell).__name__ in ("NAType", "NaTType"):
        return math.nan
    if isinstance(cell, (bool, np.bool_, int, float, np.integer, np.floating, decimal.Decimal)):
        try:
            return float(cell)
        except OverflowError:
            return math.inf
        except ValueError:  # a signalling decimal NaN
            return math.nan
    return None


def is_absent(cell: Any) -> bool:
    """Whether a cell is how some library writes that nothing is there."""
    return (
        cell is None
        or type(cell).__name__ in ("NAType", "NaTType")
        or (isinstance(cell, float) and cell != cell)
    )
