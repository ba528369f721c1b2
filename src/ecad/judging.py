"""ticks + what was learned + what is remembered -> verdict arrays. One of the two places that know the order.

A history is judged in blocks of many ticks, a stream in blocks of one; it is the same code, so they cannot differ.
Walk a tick through `judge` and you have seen the method:

    readings -> filled -> features -> member predictions -> centre -> score -> rank among past scores -> p -> alarm
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from . import decisions, ensemble, features, imputation, pvalues, scores
from ._kernels import HIGH, LOW
from .learners import Members
from .report import MISSING, NO_FEATURES, NOT_FITTED
from .seasonality import Usual

Array = np.ndarray[Any, Any]

HOUR, DAY = 3_600, 86_400


@dataclass(frozen=True, eq=False)
class Model:
    """Everything that was learned in training; judging never changes it."""

    layout: features.Layout
    usual: Usual
    filling: imputation.Filling
    order: Array  # (sensor, rank) nearest first
    patience: int | None  # ticks after which a silent neighbour is replaced
    members: Members
    oob: ensemble.OutOfBag
    centre_quantile: ensemble.QuantileCentre | None  # None: the ensemble itself is the centre
    score: str
    classes: str | None
    reference: pvalues.Reference
    tolerance: Array  # (sensor,) scores closer than this tie
    strength_unit: Array  # (sensor,)
    rule: str
    fitted: Array  # (sensor,) whether the sensor had a reading in training
    dtype: str
    ticks_per_day: int | None

    @property
    def neighbours(self) -> Array:
        """(sensor, neighbour), itself first."""
        return np.ascontiguousarray(self.order[:, : self.layout.neighbours])

    @property
    def n_sensors(self) -> int:
        """K."""
        return len(self.fitted)


@dataclass(eq=False)
class Memory:
    """Everything that a stream remembers; judging a tick moves it on by one."""

    next_tick: int
    last_time: Any
    recent: features.Recent
    last_deviation: imputation.LastDeviation | None
    local_scale: scores.LocalScale | None
    window: pvalues.Window

    def copy(self) -> Memory:
        """One that can go its own way."""
        return copy.deepcopy(self)


class Judged(NamedTuple):
    """Arrays (tick, sensor), and the neighbourhoods as they were (1 or tick, sensor, neighbour)."""

    p_values: Array
    scores: Array
    expected: Array
    lower: Array
    upper: Array
    strength: Array
    alarms: Array
    status_codes: Array
    neighbours: Array


VERDICT_COLUMNS = Judged._fields[:-1]


@dataclass(frozen=True, eq=False)
class Inputs:
    """What members see of some ticks."""

    X: Array
    readings: Array  # filled and scaled, the ticks' own
    neighbours: Array  # (1 or tick, sensor, neighbour)
    level: Array  # usual level (tick, sensor)


def judge(
    model: Model, memory: Memory, values: Array, week_seconds: Array | None, threads: int = 1
) -> Judged:
    """Judge ticks (tick, sensor) that follow what `memory` knows, and move it on: scored first, learned then."""
    observed = ~np.isnan(values)
    hours = hours_of(week_seconds)
    inputs = _inputs(model, memory, values, observed, week_seconds)
    expected = _centre(model, inputs, threads)
    raw = scores.residual_scores(values, expected, model.score)
    raw[:, ~model.fitted] = np.nan
    scale = None
    if memory.local_scale is not None:
        scale = memory.local_scale.scales(raw, hours)
        raw = raw / scale
    classes = class_of(model.classes, observed, memory.recent.observed, hours)
    ranks = pvalues.rank(
        raw, classes, memory.window, model.reference, model.tolerance, model.strength_unit,
        inputs.neighbours, hours, model.ticks_per_day or 24, threads,
    )  # fmt: skip
    status = np.where(np.isnan(raw), NO_FEATURES, ranks.code).astype(np.uint8)
    status[:, ~model.fitted] = NOT_FITTED
    status[~observed] = MISSING
    lower, upper = _band(expected, ranks, model.score, model.reference.side, scale)
    alpha = model.reference.alpha
    alarms = (
        decisions.benjamini_hochberg(ranks.p, alpha)
        if model.rule == "bh"
        else decisions.fixed(ranks.p, alpha)
    )
    memory.recent.push(inputs.readings, observed, memory.next_tick)
    memory.next_tick += len(values)
    return Judged(ranks.p, raw, expected, lower, upper, ranks.strength, alarms, status, inputs.neighbours)


def _inputs(
    model: Model, memory: Memory, values: Array, observed: Array, week_seconds: Array | None
) -> Inputs:
    numbers = memory.next_tick + np.arange(len(values))
    level, spread = model.usual.levels(numbers, week_seconds)
    filled = imputation.fill(model.filling, memory.last_deviation, values, level, model.usual.scale)
    readings = model.usual.measure(filled, level)
    silent = np.zeros_like(observed)
    if model.patience is not None:
        silent = features.silence(observed, memory.recent.last_seen, memory.next_tick, model.patience)
    past = np.vstack([memory.recent.readings, readings])
    ticks = Ticks(values, filled, level, spread, silent, week_seconds)
    X, index = rows(model, ticks, past, len(memory.recent.readings))
    return Inputs(X, readings, index, level)


class Recipe(Protocol):
    """What was learned of how features are made: in a Model, and already in training."""

    @property
    def layout(self) -> features.Layout: ...
    @property
    def usual(self) -> Usual: ...
    @property
    def filling(self) -> imputation.Filling: ...
    @property
    def order(self) -> Array: ...
    @property
    def dtype(self) -> str: ...


class Ticks(NamedTuple):
    """Some ticks whose features are wanted: arrays (tick, sensor), and when in the week they are (tick,)."""

    values: Array
    filled: Array
    level: Array
    spread: Array
    silent: Array
    week_seconds: Array | None


def rows(
    recipe: Recipe, ticks: Ticks, past: Array, first: int, out: Array | None = None
) -> tuple[Array, Array]:
    """Features X of ticks, and the neighbourhoods they used; training and judging both come through here.

    `past` (row, sensor) holds the readings in units of features, those of the first tick in row `first`.
    """
    layout, usual, level = recipe.layout, recipe.usual, ticks.level
    index = features.neighbours_at(recipe.order, layout.neighbours, ticks.silent)
    seconds = ticks.week_seconds if layout.calendar else None
    X = features.design(
        past,
        first,
        index,
        layout,
        calendar=None if seconds is None else features.calendar_terms(seconds),
        level=(level - usual.centre) / usual.scale if layout.level else None,
        spread=ticks.spread / usual.scale if layout.level else None,
        same_tick=_same_tick(recipe, ticks, index) if layout.same_tick else None,
        n_times=len(ticks.values),
        dtype=recipe.dtype,
        out=out,
    )
    return X, index


def _same_tick(recipe: Recipe, ticks: Ticks, index: Array) -> Array:
    """The neighbours' readings of the tick itself (tick, sensor, neighbour), in units of features."""
    level, usual = ticks.level, recipe.usual
    others = imputation.fill_same_tick(recipe.filling, ticks.values, ticks.filled, level, usual.scale, index)
    if usual.relative:
        who = np.broadcast_to(index, (len(others), *index.shape[1:]))[:, :, 1:]
        others = (others - np.take_along_axis(level[:, None, :], who, axis=2)) / usual.scale[who]
    return np.ascontiguousarray(others)


def _centre(model: Model, inputs: Inputs, threads: int) -> Array:
    predictions = model.members.predict(inputs.X)
    if model.centre_quantile is None:
        centre = ensemble.aggregate(predictions, model.oob.aggregation)
    else:
        flat = predictions.reshape(len(predictions), -1)
        centre = model.centre_quantile.of(flat, threads).reshape(predictions.shape[1:])
    expected = model.usual.restore(centre, inputs.level)
    expected[:, ~model.fitted] = np.nan
    return np.asarray(expected)


def hours_of(week_seconds: Array | None) -> Array | None:
    """Hour of the day of each tick; None without a clock."""
    return None if week_seconds is None else (week_seconds % DAY // HOUR).astype(np.int8)


def class_of(kind: str | None, observed: Array, observed_before: Array, hours: Array | None) -> Array:
    """The class (tick, sensor) in which a score is compared."""
    if kind == "own_last":
        return np.vstack([observed_before, observed[:-1]]).astype(np.uint8)
    out = np.zeros(observed.shape, dtype=np.uint8)
    if kind == "hour" and hours is not None:
        out += (hours // 6).astype(np.uint8)[:, None]
    return out


def _band(
    expected: Array, ranks: pvalues.Ranks, score: str, side: int, scale: Array | None
) -> tuple[Array, Array]:
    """The readings between which there is no alarm at alpha."""
    if score == "signed":
        lower = expected + (ranks.low if side != HIGH else np.where(np.isnan(ranks.high), np.nan, -np.inf))
        upper = expected + (ranks.high if side != LOW else np.where(np.isnan(ranks.low), np.nan, np.inf))
        return lower, upper
    reach = ranks.high if scale is None else ranks.high * scale
    return expected - reach, expected + reach
