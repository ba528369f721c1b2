"""score against its reference set -> p: how many past scores were as strange.

A reference set holds finite scores only, and only of the past: a tick is ranked first and enters afterwards. The
conformal p-value counts the tested score itself, `(1 + #{r >= s}) / (n + 1)`, so it never claims more than n scores
can support; the paper's `#{r >= s} / n` does. Scores tie when they differ by less than `tolerance`: what the rounding
of a matrix product decides must not decide an alarm.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from . import _kernels

Array = np.ndarray[Any, Any]

FEWEST_IN_CLASS = 100
LEFT_OUT_SHARE = 10  # at most one place in ten of a window may be left out ...
LONGEST_RUN_SHARE = 20  # ... and by a run no longer than a twentieth of it: then a new normal has come
SEASONAL_DAYS = 28
N_CLASSES = 64


@dataclass(frozen=True)
class Reference:
    """Which past scores a score is compared with, and how they are counted."""

    kind: str = "window"  # "window" | "seasonal" | "local"
    pool: str = "sensor"  # "sensor" | "network"
    classes: bool = True
    absorb: str = "runs"  # "runs" | "all"
    half_life: float | None = None  # ticks
    form: str = "conformal"  # "conformal" | "paper"
    side: int = _kernels.HIGH
    alpha: float = 0.05
    lags: int = 5
    everywhere: bool = False  # local "or"

    @property
    def need(self) -> int:
        """Finite scores below which p could not reach alpha."""
        return int(np.ceil(round(1.0 / self.alpha, 9))) - 1

    @property
    def fewest_in_class(self) -> int:
        """Scores of its own class that a score needs to be compared with them alone."""
        return max(FEWEST_IN_CLASS, self.need)

    def smallest_p(self, ages: Array, counts: Array) -> float:
        """The smallest p-value that scores can give: so many of each age in ticks."""
        if counts.sum() < self.need:
            return 1.0
        if self.form == "paper":
            return 0.0
        weight = float(counts.sum())
        if self.half_life is not None:
            weight = float((counts * np.exp2(-ages / self.half_life)).sum())
        return min(1.0, (2.0 if self.side == _kernels.BOTH else 1.0) / (weight + 1.0))


class Ranks(NamedTuple):
    """What ranking says of each (time, sensor); bounds are on the scale of the score."""

    p: Array
    strength: Array
    low: Array
    high: Array
    code: Array


@dataclass(eq=False)
class Window:
    """What ranking remembers of a stream."""

    ring: Array  # (sensor, place) scores; NaN where unobserved or left out
    marks: Array  # (sensor, place) uint8: class, and whether flagged or left out
    ticks: Array  # (place,) which tick stands where
    hours: Array  # (place,) its hour of the day, -1 unknown
    head: int  # place of the next tick
    next_tick: int
    places: int  # W: window places that the caps on leaving out refer to
    sorted_scores: Array = field(repr=False)  # (pool, .) finite scores in order, with their
    sorted_marks: Array = field(repr=False)  # classes and
    sorted_ticks: Array = field(repr=False)  # ticks (only where they decide weights)
    n: Array = field(repr=False)  # (pool,) how many
    n_by_class: Array = field(repr=False)  # (pool, class)
    n_left_out: Array = field(repr=False)  # (sensor,)
    last_flag: Array = field(repr=False)  # (sensor,) tick of the last score with p <= 0.01
    run_start: Array = field(repr=False)  # (sensor,) tick at which its run began
    weights: Array = field(repr=False)  # by age in ticks; empty without a half-life


def open_window(
    scores: Array,
    classes: Array,
    ticks: Array,
    next_tick: int,
    reference: Reference,
    hours: Array | None,
    ticks_per_day: int | None,
) -> Window:
    """A window that starts with the training scores (time, sensor) of these `ticks`.

    A sliding window (also that of the local "or") has one place for each training time; other seasonal and local sets
    look back by the clock, so every tick has its place there, also one at which nothing could be trained.
    """
    n_sensors = scores.shape[1]
    window_places = len(ticks)
    local_window = reference.kind == "local" and reference.everywhere
    if reference.kind == "window" or local_window:
        spare = max(0, reference.lags - window_places) if local_window else 0
        places, place_of = spare + window_places, spare + np.arange(window_places)
        place_ticks = np.concatenate([np.full(spare, -1), ticks]).astype(np.int64)
    else:
        reach = SEASONAL_DAYS * (ticks_per_day or 1) if reference.kind == "seasonal" else reference.lags
        places = max(reach, window_places)  # the caps on leaving out look back over the whole window
        place_ticks = np.arange(next_tick - places, next_tick, dtype=np.int64)
        place_of = ticks - place_ticks[0]
        recent = place_of >= 0
        scores, classes, place_of = scores[recent], classes[recent], place_of[recent]
    ring = np.full((n_sensors, places), np.nan)
    ring[:, place_of] = scores.T
    marks = np.zeros((n_sensors, places), dtype=np.uint8)
    marks[:, place_of] = classes.T
    place_hours = np.full(places, -1, dtype=np.int8)
    if hours is not None:
        known = place_ticks >= 0
        place_hours[known] = hours[place_ticks[known]]
    weights = np.empty(0)
    if reference.half_life is not None:
        weights = np.exp2(-np.arange(next_tick + places + 2) / reference.half_life)
    window = Window(
        ring=ring, marks=marks, ticks=place_ticks, hours=place_hours, head=0, next_tick=next_tick, places=window_places,
        n_left_out=np.zeros(n_sensors, dtype=np.int64),
        last_flag=np.full(n_sensors, -(10**9), dtype=np.int64),
        run_start=np.full(n_sensors, -(10**9), dtype=np.int64),
        weights=weights,
        **sorted_twin(ring, marks, place_ticks, reference),
    )  # fmt: skip
    return window


def sorted_twin(ring: Array, marks: Array, ticks: Array, reference: Reference) -> dict[str, Array]:
    """The sorted twin of a ring: one row a sensor, or two rows (the second for merging) for one pool of all."""
    n_sensors, places = ring.shape
    if reference.kind != "window":
        n_pools, size = 0, 0
    elif reference.pool == "network":
        n_pools, size = 1, n_sensors * places
        # among equal scores the oldest stands first, as if each had been put in at its tick
        ring, marks, ticks = ring.T.reshape(1, -1), marks.T.reshape(1, -1), np.repeat(ticks, n_sensors)
    else:
        n_pools, size = n_sensors, places
    rows = 2 if reference.pool == "network" and n_pools else n_pools
    scores = np.zeros((rows, size))
    sorted_marks = np.zeros((rows, size), dtype=np.uint8)
    sorted_ticks = np.zeros((rows, size if reference.half_life is not None else 0), dtype=np.int32)
    n = np.zeros(n_pools, dtype=np.int64)
    by_class = np.zeros((n_pools, N_CLASSES), dtype=np.int64)
    for pool in range(n_pools):
        n[pool] = np.count_nonzero(~np.isnan(ring[pool]))
        some = _in_order(ring[pool], ticks, reference.half_life is not None)[: n[pool]]
        scores[pool, : len(some)] = ring[pool, some]
        sorted_marks[pool, : len(some)] = marks[pool, some] & _kernels.CLASS_BITS
        if reference.half_life is not None:
            sorted_ticks[pool, : len(some)] = ticks[some]
        by_class[pool] = np.bincount(sorted_marks[pool, : len(some)], minlength=N_CLASSES)
    return {
        "sorted_scores": scores, "sorted_marks": sorted_marks, "sorted_ticks": sorted_ticks,
        "n": n, "n_by_class": by_class,
    }  # fmt: skip


def _in_order(scores: Array, ticks: Array, by_tick: bool) -> Array:
    """Places of the scores in ascending order, NaN last; equal ones by tick where their weights differ."""
    return np.lexsort((ticks, scores)) if by_tick else np.argsort(scores)


def rank(
    scores: Array,
    classes: Array,
    window: Window,
    reference: Reference,
    tolerance: Array,
    spread: Array,
    neighbours: Array,
    hours: Array | None = None,
    ticks_per_day: int = 24,
    threads: int = 1,
) -> Ranks:
    """Rank ticks (time, sensor) one after another; each enters the window after it was ranked.

    `spread` (sensor,) is the unit of `strength` where the tail of a reference set has none of its own; `neighbours`
    (1 or time, sensor, neighbour) are those of the ticks, which local sets look at.
    """
    shape = scores.shape
    ranks = Ranks._make([*(np.empty(shape) for _ in range(4)), np.empty(shape, dtype=np.uint8)])
    if not len(scores):
        return ranks
    longest = window.places // LONGEST_RUN_SHARE
    rules: tuple[Any, ...] = (
        tolerance, spread, reference.side, reference.form == "paper", reference.alpha,
        max(reference.need, 1), reference.fewest_in_class, reference.classes, window.weights,
        reference.absorb == "runs", window.places // LEFT_OUT_SHARE, longest,
    )  # fmt: skip
    ring: tuple[Any, ...] = (window.ring, window.marks, window.ticks, window.head)
    runs: tuple[Any, ...] = (window.n_left_out, window.last_flag, window.run_start)
    if reference.kind != "window":
        _rank_gathered(scores, classes, window, reference, neighbours, hours, ticks_per_day, rules, ranks)
        return ranks
    in_order: tuple[Any, ...] = (
        window.sorted_scores, window.sorted_marks, window.sorted_ticks, window.n, window.n_by_class
    )  # fmt: skip
    if reference.pool == "network":
        rank_pool: Callable[..., None] = _kernels.rank_pool
        rank_pool(scores, classes, window.next_tick, *ring, *in_order, *runs, *rules, *ranks)
    else:
        edges = np.linspace(0, shape[1], threads + 1).astype(np.int64) if threads > 1 else [0, shape[1]]

        def some(columns: tuple[int, int]) -> None:
            rank_windows: Callable[..., None] = _kernels.rank_windows
            rank_windows(scores, classes, window.next_tick, *columns, *ring, *in_order, *runs, *rules, *ranks)

        spans = [(int(a), int(b)) for a, b in pairwise(edges) if b > a]
        if len(spans) > 1:
            with ThreadPoolExecutor(len(spans)) as pool:
                list(pool.map(some, spans))
        else:
            some(spans[0])
    _move_on(window, len(scores), hours)
    return ranks


def _rank_gathered(
    scores: Array,
    classes: Array,
    window: Window,
    reference: Reference,
    neighbours: Array,
    hours: Array | None,
    ticks_per_day: int,
    rules: tuple[Any, ...],
    ranks: Ranks,
) -> None:
    places = window.ring.shape[1]
    seasonal = reference.kind == "seasonal"
    lags = 0 if seasonal else reference.lags
    step = 1 if seasonal else len(scores)
    capacity = places
    if not seasonal:
        capacity = neighbours.shape[2] * (places if reference.everywhere else lags) + len(window.ring) * lags
    slots = np.empty(0, dtype=np.int64)
    for t in range(0, len(scores), step):
        if seasonal and hours is not None:
            slots = _kernels.near_on_circle(window.hours, int(hours[t]), 24) - window.head
            slots = np.sort(np.where(slots >= 0, slots - places, slots))
            slots = slots[slots >= -SEASONAL_DAYS * ticks_per_day]
        part = slice(t, t + step)
        _kernels.rank_gathered(
            scores[part], classes[part], window.next_tick, window.ring, window.marks, window.ticks, window.head,
            slots, neighbours, lags, reference.everywhere,
            window.n_left_out, window.last_flag, window.run_start, capacity, window.places,
            *rules, *(part_of[part] for part_of in ranks),
        )  # fmt: skip
        _move_on(window, len(scores[part]), None if hours is None else hours[part])


def _move_on(window: Window, n: int, hours: Array | None) -> None:
    """Write ticks and hours of the n newest ticks into the ring and move its head."""
    places = len(window.ticks)
    new = np.arange(max(0, n - places), n)
    at = (window.head + new) % places
    window.ticks[at] = window.next_tick + new
    if hours is not None:
        window.hours[at] = hours[new]
    window.head = (window.head + n) % places
    window.next_tick += n
