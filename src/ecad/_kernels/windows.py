"""scores, tick by tick -> their ranks among those before them; then they enter.

A window is a ring of W places and, beside it, the same finite scores in order, each with its mark (class, and whether
flagged or left out) and, where ticks decide weights, its tick. A new score moves only what lies between the place that
it takes and the place that became free.

Whatever a kernel calls stands in its own file, also here where that makes it long: numba's cache on disk looks at a
function's own file only, and would go on with what it had compiled before a change in another.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import cgutils, types
from numba.extending import intrinsic

from .compiled import jit

Array = np.ndarray[Any, Any]

HIGH, LOW, BOTH = 0, 1, 2  # which side of the reference set is strange
TESTED, WARMING, ALL_CLASSES = 0, 2, 4
CLASS_BITS, LEFT_OUT, FLAGGED = 63, 64, 128  # of a mark
RUN_LEVEL = 0.01  # a score at or below it may belong to a run that stays out of the window
NEAR = 2  # ticks within which two flagged scores belong to one run


# -- the windows -------------------------------------------------------------------------------------------------------


@jit
def rank_windows(
    S: Array, classes: Array, first_tick: int, k0: int, k1: int,  # (T, K) scores and classes; the columns k0 .. k1
    ring: Array, marks: Array, ring_ticks: Array, head: int,  # (K, W), (K, W), (W,) and the place of first_tick
    v: Array, m: Array, ticks: Array, n: Array, n_class: Array,  # (K, W) sorted; (K,) and (K, C) counts
    n_left: Array, last_flag: Array, run_start: Array,  # (K,) what was left out, and the current run
    tol: Array, spread: Array, side: int, paper: bool, alpha: float, need: int, fewest: int, use_classes: bool,
    weights: Array, absorb_runs: bool, most_left: int, longest_run: int,
    p: Array, strength: Array, low: Array, high: Array, code: Array,  # (T, K) results
) -> None:  # fmt: skip
    """Each column against a window of its own: a score goes in, and the oldest out, before the next is ranked."""
    T = S.shape[0]
    W = ring.shape[1]
    out = np.empty(4)
    old_ticks = np.empty(W, np.int64)
    for k in range(k0, k1):
        place = head
        old_ticks[:] = ring_ticks
        for t in range(T):
            tick = first_tick + t
            own = int(classes[t, k])
            code[t, k] = _rank_sorted(
                v[k], m[k], ticks[k], n[k], n_class[k, own], own if use_classes else -1, fewest, need,
                S[t, k], tol[k], spread[k], side, paper, alpha, weights, out,
            )  # fmt: skip
            p[t, k] = out[0]
            strength[t, k] = out[1]
            low[t, k] = out[2]
            high[t, k] = out[3]

            old_class = marks[k, place] & CLASS_BITS
            if marks[k, place] & LEFT_OUT:
                n_left[k] -= 1
            marks[k, place] = own
            leaving = 0
            if absorb_runs and out[0] <= RUN_LEVEL:
                leaving = _leave_out_run(
                    tick, k, place, marks, n_left, last_flag, run_start, most_left, longest_run
                )
            for back in range(1, NEAR + 1):
                if leaving >> back & 1:
                    b = (place - back) % W
                    c = marks[k, b] & CLASS_BITS
                    i = _find(v[k], m[k], ticks[k], n[k], ring[k, b], c, tick - back)
                    _take_out(v[k], m[k], ticks[k], n[k], i)
                    n[k] -= 1
                    n_class[k, c] -= 1
                    ring[k, b] = np.nan

            x = np.nan if leaving & 1 else S[t, k]
            old = ring[k, place]
            if not np.isnan(old):
                i = _find(v[k], m[k], ticks[k], n[k], old, old_class, old_ticks[place])
                n_class[k, old_class] -= 1
                if not np.isnan(x):
                    _swap_in(v[k], m[k], ticks[k], n[k], i, x, own, tick)
                    n_class[k, own] += 1
                else:
                    _take_out(v[k], m[k], ticks[k], n[k], i)
                    n[k] -= 1
            elif not np.isnan(x):
                _put_in(v[k], m[k], ticks[k], n[k], x, own, tick)
                n[k] += 1
                n_class[k, own] += 1
            ring[k, place] = x
            old_ticks[place] = tick
            place += 1
            if place == W:
                place = 0


@jit
def rank_pool(
    S: Array, classes: Array, first_tick: int,
    ring: Array, marks: Array, ring_ticks: Array, head: int,
    v: Array, m: Array, ticks: Array, n: Array, n_class: Array,  # (2, K W) sorted, twice for merging; (1,) and (1, C)
    n_left: Array, last_flag: Array, run_start: Array,
    tol: Array, spread: Array, side: int, paper: bool, alpha: float, need: int, fewest: int, use_classes: bool,
    weights: Array, absorb_runs: bool, most_left: int, longest_run: int,
    p: Array, strength: Array, low: Array, high: Array, code: Array,
) -> None:  # fmt: skip
    """All columns against one pool; a tick's scores go in, and the oldest out, in one merging pass."""
    T, K = S.shape
    W = ring.shape[1]
    out = np.empty(4)
    gone = np.zeros(v.shape[1], np.uint8)
    new_v = np.empty(K)
    new_m = np.empty(K, np.uint8)
    place = head
    for t in range(T):
        tick = first_tick + t
        N = n[0]
        for k in range(K):
            own = int(classes[t, k])
            code[t, k] = _rank_sorted(
                v[0], m[0], ticks[0], N, n_class[0, own], own if use_classes else -1, fewest, need,
                S[t, k], tol[k], spread[k], side, paper, alpha, weights, out,
            )  # fmt: skip
            p[t, k] = out[0]
            strength[t, k] = out[1]
            low[t, k] = out[2]
            high[t, k] = out[3]
        gone[:N] = 0
        n_new = 0
        old_tick = ring_ticks[place]
        for k in range(K):
            own = int(classes[t, k])
            old_class = marks[k, place] & CLASS_BITS
            if marks[k, place] & LEFT_OUT:
                n_left[k] -= 1
            marks[k, place] = own
            leaving = 0
            if absorb_runs and p[t, k] <= RUN_LEVEL:
                leaving = _leave_out_run(
                    tick, k, place, marks, n_left, last_flag, run_start, most_left, longest_run
                )
            for back in range(1, NEAR + 1):
                if leaving >> back & 1:
                    b = (place - back) % W
                    c = marks[k, b] & CLASS_BITS
                    _cross_out(v[0], m[0], ticks[0], N, n_class[0], gone, ring[k, b], c, tick - back)
                    ring[k, b] = np.nan
            if not np.isnan(ring[k, place]):
                _cross_out(v[0], m[0], ticks[0], N, n_class[0], gone, ring[k, place], old_class, old_tick)
            x = np.nan if leaving & 1 else S[t, k]
            if not np.isnan(x):
                new_v[n_new] = x
                new_m[n_new] = own
                n_new += 1
                n_class[0, own] += 1
            ring[k, place] = x
        n[0] = _merge_in(v, m, ticks, N, gone, new_v[:n_new], new_m, tick)
        ring_ticks[place] = tick
        place += 1
        if place == W:
            place = 0


@jit
def _cross_out(
    v: Array, m: Array, ticks: Array, n: int, n_class: Array, gone: Array, x: float, cls: int, tick: int
) -> None:
    """Mark the score x of class cls and tick as gone, one that is not gone yet where several are alike."""
    i = _lower(v, n, x)
    while gone[i] or (m[i] & CLASS_BITS) != cls or (ticks.shape[0] > 0 and ticks[i] != tick):
        i += 1
    gone[i] = 1
    n_class[cls] -= 1


@jit
def _merge_in(
    v: Array, m: Array, ticks: Array, n: int, gone: Array, new_v: Array, new_m: Array, tick: int
) -> int:
    """Sort new scores into v[0, :n], without what is gone, by way of v[1]; how many there are then.

    Among equal scores the new ones stand last, as if each had been put in by itself.
    """
    weighted = ticks.shape[1] > 0
    order = np.argsort(new_v, kind="mergesort")
    n_new = new_v.shape[0]
    i = 0
    c = 0
    for a in range(n_new + 1):  # before the a-th new one come the old ones up to it; after the last, the rest
        stop = _upper(v[0], n, new_v[order[a]]) if a < n_new else n
        while i < stop:
            if not gone[i]:
                v[1, c] = v[0, i]
                m[1, c] = m[0, i]
                if weighted:
                    ticks[1, c] = ticks[0, i]
                c += 1
            i += 1
        if a < n_new:
            v[1, c] = new_v[order[a]]
            m[1, c] = new_m[order[a]]
            if weighted:
                ticks[1, c] = tick
            c += 1
    v[0, :c] = v[1, :c]
    m[0, :c] = m[1, :c]
    if weighted:
        ticks[0, :c] = ticks[1, :c]
    return c


@jit
def rank_gathered(
    S: Array, classes: Array, first_tick: int,
    ring: Array, marks: Array, ring_ticks: Array, head: int,
    slots: Array,  # (n_slots,) places of the ring, relative to head + t and negative: the tested score's own past
    columns: Array, lags: int, everywhere: bool,  # local: the last lags ticks of columns (1 or T, K, N); or "or"
    n_left: Array, last_flag: Array, run_start: Array, capacity: int, window: int,
    tol: Array, spread: Array, side: int, paper: bool, alpha: float, need: int, fewest: int, use_classes: bool,
    weights: Array, absorb_runs: bool, most_left: int, longest_run: int,
    p: Array, strength: Array, low: Array, high: Array, code: Array,
) -> None:  # fmt: skip
    """Reference sets that are collected anew for each score: of one tick's scores all are ranked before any enters."""
    T, K = S.shape
    H = ring.shape[1]
    out = np.empty(4)
    v = np.empty(capacity + 1)
    m = np.empty(capacity + 1, np.uint8)
    ticks = np.empty(capacity + 1, np.int64)
    place = head
    for t in range(T):
        tick = first_tick + t
        near = columns[t if columns.shape[0] > 1 else 0]
        for k in range(K):
            own = int(classes[t, k])
            n = 0
            if lags == 0:
                for a in range(slots.shape[0]):
                    n = _collect(ring, marks, ring_ticks, k, place + slots[a], v, m, ticks, n)
            elif not everywhere:
                for a in range(near.shape[1]):
                    for lag in range(lags, 0, -1):
                        n = _collect(ring, marks, ring_ticks, near[k, a], place - lag, v, m, ticks, n)
            else:
                for a in range(near.shape[1]):
                    for lag in range(H, 0, -1):
                        n = _collect(ring, marks, ring_ticks, near[k, a], place - lag, v, m, ticks, n)
                for j in range(K):
                    collected = False
                    for a in range(near.shape[1]):
                        collected |= near[k, a] == j
                    if not collected:
                        for lag in range(lags, 0, -1):
                            if ring_ticks[(place - lag) % H] >= tick - lags:  # training ticks may have gaps
                                n = _collect(ring, marks, ring_ticks, j, place - lag, v, m, ticks, n)
            order = np.argsort(v[:n], kind="mergesort")
            n_own = 0
            for a in range(n):
                n_own += (m[a] & CLASS_BITS) == own
            code[t, k] = _rank_sorted(
                v[order], m[order], ticks[order], n, n_own, own if use_classes else -1, fewest, need,
                S[t, k], tol[k], spread[k], side, paper, alpha, weights, out,
            )  # fmt: skip
            p[t, k] = out[0]
            strength[t, k] = out[1]
            low[t, k] = out[2]
            high[t, k] = out[3]
        for k in range(K):
            if marks[k, (place - window) % H] & LEFT_OUT:
                n_left[k] -= 1
            marks[k, place] = classes[t, k]
            leaving = 0
            if absorb_runs and p[t, k] <= RUN_LEVEL:
                leaving = _leave_out_run(
                    tick, k, place, marks, n_left, last_flag, run_start, most_left, longest_run
                )
            for back in range(1, NEAR + 1):
                if leaving >> back & 1:
                    ring[k, (place - back) % H] = np.nan
            ring[k, place] = np.nan if leaving & 1 else S[t, k]
        ring_ticks[place] = tick
        place += 1
        if place == H:
            place = 0


@jit
def _collect(
    ring: Array, marks: Array, ring_ticks: Array, k: int, place: int, v: Array, m: Array, ticks: Array, n: int
) -> int:
    if place < 0:
        place += ring.shape[1]
    x = ring[k, place]
    if np.isnan(x):
        return n
    v[n] = x
    m[n] = marks[k, place]
    ticks[n] = ring_ticks[place]
    return n + 1


@jit
def _leave_out_run(
    tick: int, k: int, place: int, marks: Array,  # of a score with a small p, and the ring's marks
    n_left: Array, last_flag: Array, run_start: Array, most_left: int, longest_run: int,
) -> int:  # fmt: skip
    """Mark a flagged score, and say which scores of its run stay out: bit a is the one of a ticks ago, bit 0 itself."""
    marks[k, place] |= FLAGGED
    follows = tick - last_flag[k] <= NEAR
    last_flag[k] = tick
    if not follows:
        run_start[k] = tick
        return 0
    if tick - run_start[k] > longest_run:
        return 0
    leaving = 0
    for back in range(NEAR + 1):
        a = (place - back) % marks.shape[1]
        if not (marks[k, a] & FLAGGED) or (marks[k, a] & LEFT_OUT):
            continue
        if n_left[k] < most_left:
            marks[k, a] |= LEFT_OUT
            leaving |= 1 << back
            n_left[k] += 1
        else:
            marks[k, a] &= CLASS_BITS  # kept in by the cap once, it is not tried again
    return leaving


# -- one score among those in order ------------------------------------------------------------------------------------


@jit
def _rank_sorted(
    v: Array, m: Array, ticks: Array, n: int,  # sorted scores, marks, ticks
    n_own: int, own: int, fewest: int, need: int,  # class of the tested score and how many it has
    s: float, tol: float, spread: float,
    side: int, paper: bool, alpha: float, weights: Array,
    out: Array,  # (4,): p, strength, low bound, high bound
) -> int:  # fmt: skip
    """Rank one score (NaN: only the bounds are wanted) against a sorted window."""
    out[:] = np.nan
    cls = -1
    n_in = n
    code = TESTED
    if own >= 0:
        if n_own >= fewest:
            cls = own if n_own < n else -1  # a class of all needs no looking at marks
            n_in = n_own
        else:
            code = ALL_CLASSES
    if n_in < need or n_in == 0:
        return WARMING
    weighted = weights.shape[0] > 0
    total = float(n_in)
    newest = -1
    if weighted:
        # ages count from the newest score of the set: the largest weight is 1, and no silent sensor's weights vanish
        for i in range(n):
            if cls < 0 or (m[i] & CLASS_BITS) == cls:
                newest = max(newest, ticks[i])
        total = 0.0
        for i in range(n):
            if cls < 0 or (m[i] & CLASS_BITS) == cls:
                total += weights[newest - ticks[i]]
    allowed = _allowed(alpha, total, side, paper)
    if side != LOW:
        out[3] = np.inf
        if allowed >= 0.0:
            if weighted:
                out[3] = _weighted_bound(v, m, ticks, n, cls, newest, weights, allowed, True)
            elif int(allowed) < n_in:
                out[3] = _outermost(v, m, n, cls, int(allowed), True)
        out[3] += tol
    if side != HIGH:
        out[2] = -np.inf
        if allowed >= 0.0:
            if weighted:
                out[2] = _weighted_bound(v, m, ticks, n, cls, newest, weights, allowed, False)
            elif int(allowed) < n_in:
                out[2] = _outermost(v, m, n, cls, int(allowed), False)
        out[2] -= tol
    if np.isnan(s):
        return code
    first = _lower(v, n, s - tol)
    last = _upper(v, n, s + tol) if side != HIGH else n
    ge = 0.0
    le = 0.0
    if weighted:
        for i in range(first, n):
            if cls < 0 or (m[i] & CLASS_BITS) == cls:
                ge += weights[newest - ticks[i]]
        if side != HIGH:
            for i in range(last):
                if cls < 0 or (m[i] & CLASS_BITS) == cls:
                    le += weights[newest - ticks[i]]
    elif cls < 0:
        ge = float(n - first)
        le = float(last)
    else:
        ge = float(n_in - _count_class(m, first, n, cls, n_in))
        if side != HIGH:
            le = float(_count_class(m, last, n, cls, n_in))
    out[0] = _p_from(ge, le, total, side, paper)
    strength = -np.log(_p_from(ge, le, total, side, False))
    high = side == HIGH or (side == BOTH and ge <= le)
    if (ge if high else le) == 0.0:
        edge = _outermost(v, m, n, cls, 0, high)
        excess = max(s - edge if high else edge - s, 0.0)  # weights of the largest may have faded to nothing
        strength += excess / _tail_spread(v, m, n, cls, n_in, high, spread)
    out[1] = strength
    return code


@jit
def _p_from(ge: float, le: float, total: float, side: int, paper: bool) -> float:
    """The p-value from the weights at or beyond on either side; `one` is the weight of the tested score itself."""
    one = 0.0 if paper else 1.0
    if side == HIGH:
        return (one + ge) / (one + total)
    if side == LOW:
        return (one + le) / (one + total)
    return min(1.0, 2.0 * min(one + ge, one + le) / (one + total))


@jit
def _allowed(alpha: float, total: float, side: int, paper: bool) -> float:
    """The largest weight at or beyond a score with which it still alarms; negative when none can."""
    if side == BOTH:
        alpha = alpha / 2.0
    if paper:
        return alpha * total + 1e-9
    return alpha * (1.0 + total) - 1.0 + 1e-9


@jit
def _tail_spread(v: Array, m: Array, n: int, cls: int, n_in: int, high: bool, fallback: float) -> float:
    """Mean excess of the outermost tenth of the class over its threshold: the scale of an exponential tail."""
    rank = n_in - (9 * n_in + 9) // 10  # members beyond the threshold
    s = 0.0
    seen = 0
    u = 0.0
    for step in range(2):
        seen = 0
        count = 0
        for a in range(n):
            i = n - 1 - a if high else a
            if cls >= 0 and (m[i] & CLASS_BITS) != cls:
                continue
            x = v[i] if high else -v[i]
            if step == 0:
                if seen == rank:
                    u = x
                    break
            else:
                if seen == rank:
                    break
                if x > u:
                    s += x - u
                    count += 1
            seen += 1
        if step == 1 and count > 0:
            s = s / count
    return s if s > 0.0 else fallback


@jit
def _outermost(v: Array, m: Array, n: int, cls: int, k: int, high: bool) -> float:
    """The (k + 1)-th value of the class counted from the outside."""
    if cls < 0:
        return float(v[n - 1 - k] if high else v[k])
    for a in range(n):
        i = n - 1 - a if high else a
        if (m[i] & CLASS_BITS) == cls:
            if k == 0:
                return float(v[i])
            k -= 1
    return np.nan


@jit
def _count_class(m: Array, place: int, n: int, cls: int, n_in: int) -> int:
    """How many of the class's n_in members stand before `place`, counted from the nearer end."""
    c = 0
    if place <= n // 2:
        for i in range(place):
            c += (m[i] & CLASS_BITS) == cls
        return c
    for i in range(place, n):
        c += (m[i] & CLASS_BITS) == cls
    return n_in - c


@jit
def _weighted_bound(
    v: Array, m: Array, ticks: Array, n: int, cls: int, newest: int, weights: Array, allowed: float, high: bool
) -> float:  # fmt: skip
    """The first value from the outside at which the weight at or beyond exceeds what is allowed."""
    s = 0.0
    for a in range(n):
        i = n - 1 - a if high else a
        if cls < 0 or (m[i] & CLASS_BITS) == cls:
            s += weights[newest - ticks[i]]
            if s > allowed:
                return float(v[i])
    return -np.inf if high else np.inf


# -- scores in order: one goes in, one comes out -----------------------------------------------------------------------


@jit
def _lower(v: Array, n: int, x: float) -> int:
    """How many of the sorted v[:n] are below x."""
    lo = 0
    while n > 0:
        half = n >> 1
        if v[lo + half] < x:
            lo += half + 1
            n -= half + 1
        else:
            n = half
    return lo


@jit
def _upper(v: Array, n: int, x: float) -> int:
    """How many of the sorted v[:n] are at or below x."""
    lo = 0
    while n > 0:
        half = n >> 1
        if v[lo + half] <= x:
            lo += half + 1
            n -= half + 1
        else:
            n = half
    return lo


@jit
def _find(v: Array, m: Array, ticks: Array, n: int, x: float, cls: int, tick: int) -> int:
    """Where the score x of class cls and tick stands among the sorted."""
    i = _lower(v, n, x)
    while (m[i] & CLASS_BITS) != cls or (ticks.shape[0] > 0 and ticks[i] != tick):
        i += 1
    return i


@jit
def _take_out(v: Array, m: Array, ticks: Array, n: int, i: int) -> None:
    _move(v, i, i + 1, n - 1 - i)
    _move(m, i, i + 1, n - 1 - i)
    if ticks.shape[0] > 0:
        _move(ticks, i, i + 1, n - 1 - i)


@jit
def _put_in(v: Array, m: Array, ticks: Array, n: int, x: float, cls: int, tick: int) -> None:
    i = _upper(v, n, x)
    _move(v, i + 1, i, n - i)
    _move(m, i + 1, i, n - i)
    v[i] = x
    m[i] = cls
    if ticks.shape[0] > 0:
        _move(ticks, i + 1, i, n - i)
        ticks[i] = tick


@jit
def _swap_in(v: Array, m: Array, ticks: Array, n: int, i: int, x: float, cls: int, tick: int) -> None:
    """Take out place i and put x in, moving only what lies between."""
    j = _upper(v, n, x)
    if j > i:
        j -= 1
        to, start, length = i, i + 1, j - i
    else:
        to, start, length = j + 1, j, i - j
    _move(v, to, start, length)
    _move(m, to, start, length)
    v[j] = x
    m[j] = cls
    if ticks.shape[0] > 0:
        _move(ticks, to, start, length)
        ticks[j] = tick


def _emit_move(_context: Any, a: Any, to: Any, start: Any, n: Any) -> Any:
    """a[to : to + n] = a[start : start + n], overlapping: a loop over the places is not compiled to this."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        array = context.make_array(signature.args[0])(context, builder, arguments[0])
        target, source = (builder.gep(array.data, [place]) for place in arguments[1:3])
        size = context.get_abi_sizeof(context.get_data_type(signature.args[0].dtype))
        cgutils.raw_memmove(builder, target, source, arguments[3], size)  # type: ignore[no-untyped-call]
        return context.get_dummy_value()

    return types.void(a, types.intp, types.intp, types.intp), generate


_move: Any = intrinsic(_emit_move)
