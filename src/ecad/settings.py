"""one table -> constructor, command line, docs: every setting's name, default and meaning."""

# ruff: noqa: E501  (the table reads as one row a line)

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import field, make_dataclass
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import is_classifier

from . import _checks
from .errors import SettingError


class Setting(NamedTuple):
    """A row of the table."""

    name: str
    default: Any
    meaning: str


SETTINGS: tuple[Setting, ...] = (
    Setting("regressor", "ridge", 'the members: "ridge" (strength 1) or any scikit-learn regressor'),
    Setting("n_members", 25, "B, how many bootstrap members (20 to 30)"),
    Setting("aggregation", "mean", 'how members agree: "mean", "median", "trimmed_mean" or a callable (m, rows) -> (rows,)'),
    Setting("lags", 5, "how many past readings of each neighbour a prediction looks at"),
    Setting("neighbours", 5, "how many sensors, itself included, make a neighbourhood"),
    Setting("seasonal_lags", "auto", 'further lags of the sensor itself, in ticks; "auto": a day and a week where training is eight times as long; None'),
    Setting("calendar", "auto", 'time of day and week as features: True, False, or "auto" (where the panel has a clock)'),
    Setting("season", "auto", 'usual level and spread by hour: "week" (from 3 weeks of training), "day" (from 3 days), "auto" or None'),
    Setting("same_tick", False, "whether the neighbours' readings of the judged tick are features"),
    Setting("scale", "sensor", 'features and targets as deviations from the usual level in units of the sensor\'s spread ("sensor"), or readings as they are (None)'),
    Setting("impute", "gaussian", 'how holes are filled for features: "gaussian", "seasonal", "iterative", "keep" (regressors that take NaN) or None'),
    Setting("train_on", "observed", 'targets and calibration scores: "observed" readings only, or "all" (filled ones too, the paper\'s way)'),
    Setting("silent_after", "auto", "ticks after which a silent neighbour gets a stand-in; \"auto\": one day; None: never"),
    Setting("groups", "shared", 'one model for all sensors ("shared"), one for each ("sensor"), or a mapping sensor -> group'),
    Setting("bootstrap", "block", 'what members draw: "block" (a day of clock time) or "iid" (single times, the paper)'),
    Setting("centre", "ensemble", 'what a reading is compared with: the "ensemble", or the (1 - alpha) "quantile" of all leave-one-out predictions (the paper)'),
    Setting("centre_level", None, "alpha of the quantile centre; None: the constructor's alpha"),
    Setting("score", "absolute", '"absolute", "signed" or "studentised" (in units of the sensor\'s usual error at that hour)'),
    Setting("reference", "window", 'past scores to compare with: sliding "window" of the training length, "seasonal" (same hour, 28 days) or "local" (the neighbourhood\'s last ticks)'),
    Setting("pool", "sensor", 'a window for each "sensor", or one for the "network" (studentised scores only)'),
    Setting("local", "and", 'local reference: the neighbours\' last ticks ("and"), or all of the neighbours and everybody\'s last ticks ("or")'),
    Setting("classes", "own_last", 'scores are compared within a class: "own_last" (was the newest own lag observed?), "hour" (six-hour groups) or None'),
    Setting("absorb", "runs", 'what enters the window: all but "runs" of very strange scores, or "all" (the paper)'),
    Setting("half_life", None, "ticks after which a past score counts half; None: all count the same"),
    Setting("p_value", "conformal", '"conformal": (1 + #{r >= s}) / (n + 1), or "paper": #{r >= s} / n'),
    Setting("tail", "both", 'signed scores: "both", "high" or "low"'),
    Setting("alpha", 0.05, "the share of false alarms that is asked for"),
    Setting("rule", "fixed", '"fixed": alarm where p <= alpha; "bh": Benjamini-Hochberg at alpha within each tick'),
    Setting("unreachable", "refuse", 'when no p-value could ever be as small as alpha: "refuse" to fit, or "warn"'),
    Setting("dtype", "float64", 'precision of features and predictions: "float64" or "float32"'),
    Setting("random_state", None, "seed of the draws: the same seed, the same members"),
    Setting("n_jobs", None, "threads; None: all cores that this process may use (scikit-learn members: as joblib takes it)"),
    Setting("progress", None, "progress bars: True, False, or None (on long work at a terminal)"),
)  # fmt: skip

PAPER: dict[str, Any] = {
    "n_members": 25,
    "aggregation": "mean",
    "lags": 5,
    "neighbours": 5,
    "seasonal_lags": None,
    "calendar": False,
    "season": None,
    "same_tick": False,
    "scale": None,
    "impute": "iterative",
    "train_on": "all",
    "silent_after": None,
    "groups": "shared",
    "bootstrap": "iid",
    "centre": "quantile",
    "score": "absolute",
    "reference": "local",
    "local": "and",
    "classes": None,
    "absorb": "all",
    "half_life": None,
    "p_value": "paper",
    "alpha": 0.05,
    "unreachable": "warn",
}
"""What `ECAD.paper()` sets."""

Plan: Any = make_dataclass(
    "Plan", [(row.name, Any, field(default=row.default)) for row in SETTINGS], frozen=True, eq=False
)
"""The settings of one fit, checked: every room that needs one takes it from here."""


def checked(**given: Any) -> Any:
    """A Plan, or the sentence that says which setting cannot work."""
    plan = Plan(**given)
    for name, low, high in (("n_members", 2, 65535), ("lags", 1, None), ("neighbours", 1, None)):
        _checks.whole(name, getattr(plan, name), low, high)
    for name, options in _OPTIONS.items():
        _checks.one_of(name, getattr(plan, name), options)
    for name, (words, what_else, is_that) in _OR_ELSE.items():
        if isinstance(getattr(plan, name), str) or not is_that(getattr(plan, name)):
            _checks.one_of(name, getattr(plan, name), words, or_a=what_else)
    _checks.between("alpha", plan.alpha, 0, 1)
    _checks.none_or(_checks.between, "centre_level", plan.centre_level, 0, 1)
    _checks.none_or(_checks.positive, "half_life", plan.half_life)
    _checks.yes_or_no("same_tick", plan.same_tick)
    if not (isinstance(plan.silent_after, str) and plan.silent_after == "auto"):
        _checks.none_or(_checks.whole, "silent_after", plan.silent_after, 1)
    if callable(plan.aggregation):
        _check_aggregation(plan.aggregation)
    _check_seasonal_lags(plan.seasonal_lags)
    _check_seed(plan.random_state)
    if plan.n_jobs is not None and (
        isinstance(plan.n_jobs, bool) or not isinstance(plan.n_jobs, Integral) or plan.n_jobs == 0
    ):
        raise SettingError(
            f"n_jobs={plan.n_jobs!r} will not do: it takes a whole number other than 0, or None."
        )
    _check_together(plan)
    return plan


_OPTIONS: dict[str, tuple[Any, ...]] = {
    "calendar": ("auto", True, False),
    "season": ("auto", "week", "day", None),
    "scale": ("sensor", None),
    "impute": ("gaussian", "seasonal", "iterative", "keep", None),
    "train_on": ("observed", "all"),
    "bootstrap": ("block", "iid"),
    "centre": ("ensemble", "quantile"),
    "score": ("absolute", "signed", "studentised"),
    "reference": ("window", "seasonal", "local"),
    "pool": ("sensor", "network"),
    "local": ("and", "or"),
    "classes": ("own_last", "hour", None),
    "absorb": ("runs", "all"),
    "p_value": ("conformal", "paper"),
    "tail": ("both", "high", "low"),
    "rule": ("fixed", "bh"),
    "unreachable": ("refuse", "warn"),
    "dtype": ("float64", "float32"),
    "progress": (None, True, False),
}


def _is_regressor(value: Any) -> bool:
    methods = ("fit", "predict", "get_params")
    return (
        not isinstance(value, type)
        and all(hasattr(value, name) for name in methods)
        and not is_classifier(value)
    )


def _is_mapping(value: Any) -> bool:
    return hasattr(value, "keys")


_OR_ELSE: dict[str, tuple[tuple[str, ...], str, Callable[[Any], bool]]] = {
    "regressor": (("ridge", "lstm"), "a scikit-learn regressor", _is_regressor),
    "aggregation": (("mean", "median", "trimmed_mean"), "a callable", callable),
    "groups": (("shared", "sensor"), "a mapping sensor -> group", _is_mapping),
}


def _check_aggregation(aggregation: Callable[[Any], Any]) -> None:
    """A caller's phi is tried on three predictions of two rows."""
    shape = np.shape(aggregation(np.arange(6.0).reshape(3, 2)))
    if shape != (2,):
        raise SettingError(
            f"aggregation= gave an array of shape {shape} for 3 predictions of 2 rows: it takes (m, rows) and gives "
            "(rows,), as lambda p: np.median(p, axis=0) does."
        )


def _check_seasonal_lags(lags: Any) -> None:
    if lags is None or (isinstance(lags, str) and lags == "auto"):
        return
    if isinstance(lags, str | bytes) or not hasattr(lags, "__iter__") or not hasattr(lags, "__len__"):
        raise SettingError(
            f'seasonal_lags={lags!r} is not known: it takes "auto", None or whole numbers of ticks.'
        )
    for lag in lags:
        _checks.whole("seasonal_lags", lag, 1)


def _check_seed(seed: Any) -> None:
    if seed is None or isinstance(seed, np.random.RandomState | np.random.Generator):
        return
    _checks.whole("random_state", seed, 0)


def _check_together(plan: Any) -> None:
    if plan.pool == "network" and plan.score != "studentised":
        raise SettingError(
            f'pool="network" needs score="studentised", not {plan.score!r}: in one pool of raw scores the noisy '
            'sensors get all the alarms. Use score="studentised" or pool="sensor".'
        )
    if plan.pool == "network" and plan.reference != "window":
        raise SettingError(
            f'pool="network" is for reference="window", not {plan.reference!r}: use pool="sensor".'
        )
    if plan.tail != "both" and plan.score != "signed":
        raise SettingError(
            f'tail={plan.tail!r} needs score="signed", not {plan.score!r}: other scores have no sides.'
        )


def seed_of(random_state: Any) -> int:
    """One whole number from which every draw is spawned."""
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**32))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    return int(random_state)


_HEADINGS = {
    "regressor": "Members",
    "lags": "What a prediction looks at",
    "impute": "Holes",
    "groups": "Who learns from what",
    "centre": "Centre and score",
    "reference": "Reference set",
    "p_value": "p-value and alarm",
    "dtype": "Running",
}  # the first setting of each part of the page


def markdown() -> str:
    """The table as docs/settings.md shows it; `scripts/docs` writes it there."""
    lines = []
    for row in SETTINGS:
        if row.name in _HEADINGS:
            lines += ["", f"## {_HEADINGS[row.name]}", ""]
            lines += ["| setting | default | meaning | the paper |", "| --- | --- | --- | --- |"]
        paper = "lstm" if row.name == "regressor" else PAPER.get(row.name, row.default)
        other = "" if paper == row.default else f"`{_written(paper)}`"
        words = re.sub(r'"[^"]*"', lambda word: f"`{word[0]}`", row.meaning)
        lines.append(f"| `{row.name}` | `{_written(row.default)}` | {words} | {other} |")
    return "\n".join(lines[1:]) + "\n"


def _written(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)
