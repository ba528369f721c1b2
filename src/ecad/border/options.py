"""keywords of the caller -> Options: how a source is to be read, checked before anything is opened."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from .._checks import one_of
from ..errors import SettingError
from .clock import UNITS, zone_name
from .scalars import number_of


@dataclass(frozen=True)
class Options:
    """How a source is to be read: the keywords of `read_panel`."""

    layout: str = "auto"
    time: Any = None
    sensor: str = "sensor"
    value: str = "value"
    step: Any = None
    time_zone: Any = None
    sensors: Sequence[Any] | None = None
    start: Any = None
    duplicates: str = "error"
    non_numeric: str = "error"
    missing_values: Any = None
    decimal: str = "."
    thousands: str | None = None
    time_unit: str | None = None
    time_format: str | None = None

    def check(self) -> None:
        one_of("layout", self.layout, ("auto", "wide", "long"))
        one_of("duplicates", self.duplicates, ("error", "first", "last", "mean"))
        one_of("non_numeric", self.non_numeric, ("error", "missing"))
        one_of("decimal", self.decimal, (".", ","))
        one_of("thousands", self.thousands, (None, ",", ".", " ", "'", "_"))
        if self.thousands == self.decimal:
            raise SettingError(f"Thousands and decimal are both {self.decimal!r}; they must differ.")
        one_of("time_unit", self.time_unit, (None, *UNITS))
        _ = self.missing_numbers  # a wrong value is an error now, not at the first cell

    @cached_property
    def zone(self) -> str | None:
        return None if self.time_zone is None else zone_name(self.time_zone)

    @cached_property
    def _missing(self) -> list[Any]:
        given = self.missing_values
        if given is None:
            return []
        return [given] if isinstance(given, str) or np.ndim(given) == 0 else list(given)

    @property
    def missing_texts(self) -> tuple[str, ...]:
        return tuple(item.strip().lower() for item in self._missing if isinstance(item, str))

    @property
    def missing_numbers(self) -> tuple[float, ...]:
        numbers = [number_of(item) for item in self._missing if not isinstance(item, str)]
        numbers += [float(text) for text in self.missing_texts if re.fullmatch(r"[+-]?\d+(\.\d*)?", text)]
        if None in numbers:
            raise SettingError(
                f"missing_values={self.missing_values!r} must be numbers or texts, such as -9999 or '-'."
            )
        return tuple(number for number in numbers if number is not None)


STRICT = Options(non_numeric="never")  # of positions and edges, which cannot be missing
LENIENT = Options(non_numeric="missing")  # of cells that are looked at to see what they are
