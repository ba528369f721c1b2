"""values <-> nodes of JSON, and the arrays that they name by number."""

from __future__ import annotations

import math
from dataclasses import is_dataclass
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from ..errors import ModelFileError
from .estimators import estimator_bytes, estimator_of
from .parts import PARTS, completed, shortened
from .sealed import NUMBERS
from .words import named

Array = np.ndarray[Any, Any]


class Writer:
    """Values -> nodes of JSON, and the arrays that they name by number. An array that stands twice is written once."""

    def __init__(self) -> None:
        self.arrays: list[Array] = []
        self._number: dict[int, int] = {}

    def node(self, value: Any, where: str) -> Any:
        kind = type(value)
        if value is None or kind in (bool, int, str):
            return value
        if kind is float:
            return value if math.isfinite(value) else {"float": str(value)}
        if kind is list:
            return [self.node(item, where) for item in value]
        if kind is tuple:
            return {"tuple": [self.node(item, where) for item in value]}
        if kind is dict:
            pairs = value.items()
            return {
                "dict": [[self.node(key, where), self.node(item, _inside(where, key))] for key, item in pairs]
            }
        if isinstance(value, np.str_):
            return str(value)
        if kind is np.ndarray and value.dtype == object and all(type(item) is str for item in value.flat):
            return {"texts": value.tolist()}
        if kind is np.ndarray and value.dtype.kind in NUMBERS:
            return {"array": self._array(value)}
        if isinstance(value, np.generic) and value.dtype.kind in NUMBERS:
            return {"scalar": self._array(np.asarray(value))}
        if is_dataclass(kind) and PARTS.get(kind.__name__) is kind:
            parts = shortened(value).items()
            return {kind.__name__: {name: self.node(part, _inside(where, name)) for name, part in parts}}
        if isinstance(value, BaseEstimator):
            return {"estimator": self._array(np.frombuffer(estimator_bytes(value, where), np.uint8))}
        raise ModelFileError(
            f"{where} is a {named(value)}, which a model file cannot hold: it holds no code, only numbers, texts, "
            "arrays, lists, dicts and scikit-learn's own estimators."
        )

    def _array(self, array: Array) -> int:
        if id(array) not in self._number:
            self._number[id(array)] = len(self.arrays)  # what is being saved keeps the array, and so its id
            self.arrays.append(array if array.flags.forc else np.ascontiguousarray(array))
        return self._number[id(array)]


class Reader:
    """Nodes of JSON and arrays -> values."""

    def __init__(self, arrays: list[Array]) -> None:
        self.arrays = arrays
        self.met_estimators = False

    def value(self, node: Any) -> Any:
        if isinstance(node, list):
            return [self.value(item) for item in node]
        if not isinstance(node, dict):
            return node
        ((kind, content),) = node.items()
        if kind in PARTS:
            return completed(PARTS[kind], {name: self.value(item) for name, item in content.items()})
        return self._plain(kind, content)

    def _plain(self, kind: str, content: Any) -> Any:
        if kind == "float":
            return float(content)
        if kind == "tuple":
            return tuple(self.value(item) for item in content)
        if kind == "dict":
            return {self.value(key): self.value(item) for key, item in content}
        if kind == "texts":
            return np.array([str(item) for item in content], dtype=object)
        if kind == "array":
            return self.arrays[content]
        if kind == "scalar":
            return self.arrays[content][()]
        if kind == "estimator":
            self.met_estimators = True
            return estimator_of(self.arrays[content].tobytes())
        raise ValueError(f"{kind!r} is nothing that a model file may ask for")


def _inside(where: str, name: Any) -> str:
    return str(name) if where in ("", "parameters", "learned") else f"{where}.{name}"
