"""a parameter's value -> the value, or one sentence: what was given, what is needed."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable
from numbers import Integral, Real
from typing import Any

from .errors import NotFitted, SettingError


def fitted(estimator: Any, learned: str) -> None:
    """The estimator must have learned something."""
    if not hasattr(estimator, learned):
        raise NotFitted(type(estimator).__name__)


def one_of(name: str, value: Any, options: Iterable[Any], *, or_a: str | None = None) -> Any:
    """`value` must be one of `options`; `or_a` names what else the caller has already let through."""
    options = tuple(options)
    if not isinstance(value, str | int | float | bool | type(None)) or value not in options:
        listed = ", ".join(repr(option) for option in options)
        more = f", or {or_a}" if or_a else ""
        raise SettingError(f"{name}={value!r} is not known: it takes {listed}{more}.")
    return value


def whole(name: str, value: Any, low: int, high: int | None = None) -> int:
    """`value` must be a whole number within [low, high]."""
    number = operator.index(value) if isinstance(value, Integral) and not isinstance(value, bool) else None
    if number is None or number < low or (high is not None and number > high):
        span = f"of at least {low}" if high is None else f"from {low} to {high}"
        raise SettingError(f"{name}={value!r} will not do: it takes a whole number {span}.")
    return number


def between(name: str, value: Any, low: float, high: float) -> float:
    """`value` must be a number strictly between low and high."""
    if isinstance(value, bool) or not isinstance(value, Real) or not low < float(value) < high:
        raise SettingError(
            f"{name}={value!r} will not do: it takes a number above {low:g} and below {high:g}."
        )
    return float(value)


def positive(name: str, value: Any) -> float:
    """`value` must be a finite number above zero."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 < float(value) < float("inf"):
        raise SettingError(f"{name}={value!r} will not do: it takes a number above 0.")
    return float(value)


def share(name: str, value: Any) -> float:
    """`value` must be a number from 0 to 1."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0.0 <= float(value) <= 1.0:
        raise SettingError(f"{name}={value!r} must be a share, from 0 to 1")
    return float(value)


def yes_or_no(name: str, value: Any) -> bool:
    """`value` must be True or False."""
    if not isinstance(value, bool):
        raise SettingError(f"{name}={value!r} will not do: it takes True or False.")
    return value


def none_or(check: Callable[..., Any], name: str, value: Any, *limits: Any) -> Any:
    """None, or whatever `check` lets through."""
    return None if value is None else check(name, value, *limits)
