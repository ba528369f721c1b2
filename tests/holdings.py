"""anything of the package -> the arrays that it holds, however deep."""

from __future__ import annotations

from typing import Any

import numpy as np


def arrays_of(thing: Any, seen: set[int] | None = None) -> list[np.ndarray]:
    """Every array inside, each once."""
    seen = set() if seen is None else seen
    if id(thing) in seen:
        return []
    seen.add(id(thing))
    if isinstance(thing, np.ndarray):
        return [thing]
    parts: list[Any] = []
    if isinstance(thing, dict):
        parts = list(thing.values())
    elif isinstance(thing, list | tuple):
        parts = list(thing)
    elif hasattr(thing, "__dict__") and type(thing).__module__.startswith(("ecad", "sklearn")):
        parts = list(vars(thing).values())
    return [array for part in parts for array in arrays_of(part, seen)]
