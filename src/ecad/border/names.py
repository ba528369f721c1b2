"""labels -> sensor names: text always, each once, in an order that people expect, and short in a sentence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..errors import PanelError


def label_of(name: Any) -> str:
    """A sensor's name from a cell; 7.0 is how a column of whole numbers with holes writes 7."""
    return (
        str(int(name)) if isinstance(name, (float, np.floating)) and float(name).is_integer() else str(name)
    )


def natural_order(name: str) -> tuple[bool, int, str]:
    """Numbers in the order of numbers, then names in the order of names."""
    number = name.isascii() and name.isdigit() and len(name) < 19
    return not number, int(name) if number else 0, name


def names_of(sensors: str | Iterable[Any]) -> tuple[str, ...]:
    """Sensors as a caller gives them, one or many -> their names."""
    return (sensors,) if isinstance(sensors, str) else tuple(str(name) for name in sensors)


def refuse_twice(names: Sequence[str], what: str) -> Sequence[str]:
    """The names themselves, once it is sure that each is there once."""
    if len(set(names)) < len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise PanelError(
            f"{what} has the column or sensor {some_of(twice)} more than once; give each a name of its own."
        )
    return names


def some_of(names: Iterable[str]) -> str:
    """Up to five names, and how many more there are."""
    every = list(names)
    text = ", ".join(repr(name) for name in every[:5])
    return text + (f" and {len(every) - 5} more" if len(every) > 5 else "") if every else "none"
