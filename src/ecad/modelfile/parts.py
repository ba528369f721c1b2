"""dataclasses of ours <-> their fields: from a fixed list, without what can be made again, each of its stated type."""

from __future__ import annotations

import numbers
import types
import typing
from dataclasses import fields
from typing import Any, Union

import numpy as np

from .. import ensemble, features, imputation, pvalues, scores, seasonality
from ..judging import Memory, Model
from ..learners import Members
from ..learners.ridge import RidgeMembers
from ..learners.sklearn import SklearnMembers
from ..panel import Panel
from .words import named

PARTS: dict[str, type[Any]] = {
    part.__name__: part
    for part in (
        Model, Memory, Panel, features.Layout, features.Recent, seasonality.Usual, seasonality.Season,
        imputation.Gaussian, imputation.Iterative, imputation.Seasonal, imputation.Keep, imputation.LastDeviation,
        ensemble.OutOfBag, RidgeMembers, SklearnMembers, scores.LocalScale, pvalues.Reference, pvalues.Window,
    )
}  # fmt: skip
# what a window sorts its ring into, and can sort again
_MADE_AGAIN = ("sorted_scores", "sorted_marks", "sorted_ticks", "n", "n_by_class")


def shortened(part: Any) -> dict[str, Any]:
    """The fields of a dataclass, without what can be made again from the others."""
    values = {field.name: getattr(part, field.name) for field in fields(part)}
    if isinstance(part, pvalues.Window):
        return {name: value for name, value in values.items() if name not in _MADE_AGAIN}
    if isinstance(part, Model) and part.centre_quantile is not None:
        values["centre_quantile"] = part.centre_quantile.rank
    return values


def completed(kind: type[Any], values: dict[str, Any]) -> Any:
    """The dataclass of these fields, with what can be made again from them."""
    if kind is pvalues.Window:
        values |= dict.fromkeys(_MADE_AGAIN, np.empty(0))  # until the reference is known: _sort_window
    if kind is Model and values["centre_quantile"] is not None:
        rank = values["centre_quantile"]
        values["centre_quantile"] = ensemble.QuantileCentre(values["oob"], rank, values["dtype"])
    require(kind.__name__, values, typing.get_type_hints(kind))
    return kind(**values)


def require(owner: str, values: dict[str, Any], hints: dict[str, Any]) -> None:
    """Every value must be of the type that its annotation says."""
    for name, value in values.items():
        if name not in hints:
            raise TypeError(f"{owner} has no {name}")
        if not _fits(value, hints[name]):
            raise TypeError(f"{owner}.{name} is a {named(value)}")


def _fits(value: Any, hint: Any) -> bool:
    if hint is Any:
        return True
    if hint is Members:
        return isinstance(value, RidgeMembers | SklearnMembers)
    origin = typing.get_origin(hint)
    if origin in (Union, types.UnionType):
        return any(_fits(value, option) for option in typing.get_args(hint))
    plain = origin or hint
    if hasattr(plain, "__value__"):  # an alias of Python 3.12, as numpy's NDArray is from 2.5 on
        plain = typing.get_origin(plain.__value__) or plain.__value__
    return isinstance(value, {int: numbers.Integral, float: numbers.Real}.get(plain, plain))
