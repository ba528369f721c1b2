"""values, errors, versions -> the words that an error needs."""

from __future__ import annotations

import re
from typing import Any


def named(value: Any) -> str:
    """The name of a value's type, with its module where that says something."""
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def first_line(error: Exception) -> str:
    """What an error says, in short."""
    return (str(error) or type(error).__name__).splitlines()[0].rstrip(".")


def release(version: str) -> tuple[int, ...]:
    """ "1.8.0rc1" -> (1, 8, 0); what is no version comes before all others."""
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])
