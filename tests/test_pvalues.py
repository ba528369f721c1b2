"""p-values: every kind of reference set, class, weight, form and side, tick by tick against plain loops."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

import naive
from ecad import _kernels, pvalues, report
from ecad._kernels import windows
from ecad.pvalues import Reference, Window

NAN = np.nan
SIDES = {"high": _kernels.HIGH, "low": _kernels.LOW, "both": _kernels.BOTH}
SPREAD = np.array([1.0, 20.0, 0.3, 5.0])


@dataclass
class History:
    """Training scores, and later ones to judge."""

    training: np.ndarray
    training_ticks: np.ndarray
    training_classes: np.ndarray
    scores: np.ndarray
    classes: np.ndarray
    first_tick: int
    hours: np.ndarray  # of every tick from 0 on
    neighbours: np.ndarray
    ticks_per_day: int = 24


def history(
    seed: int,
    n_window: int = 150,
    n_times: int = 50,
    n_sensors: int = 3,
    *,
    signed: bool = True,
    gaps: bool = True,
    n_classes: int = 2,
    bursts: int = 3,
    new_normal: int | None = None,
    ticks_per_day: int = 24,
) -> History:
    """Scores on a coarse grid (many ties) with holes, missing training ticks, bursts of huge scores, a new normal."""
    random = np.random.RandomState(seed)
    first_tick = n_window + (n_window // 10 if gaps else 0)
    ticks = np.sort(random.permutation(first_tick)[:n_window])
    everything = random.standard_normal((n_window + n_times, n_sensors))
    everything = np.round(everything, 1) if signed else np.round(np.abs(everything), 1)
    everything[random.uniform(size=everything.shape) < 0.1] = NAN
    for _ in range(bursts):
        k, start = random.randint(n_sensors), n_window + random.randint(n_times)
        sign = random.choice([-1, 1]) if signed else 1
        size = everything[start : start + random.randint(1, 16), k]
        size += sign * (20 + random.uniform(0, 5, len(size)))
    if new_normal is not None:
        everything[n_window + new_normal :, 0] += 15
    everything *= SPREAD[:n_sensors]
    share = np.array([0.8, 0.15, 0.05][:n_classes])
    classes = random.choice(n_classes, size=everything.shape, p=share / share.sum())
    order = np.array([np.argsort(np.abs(np.arange(n_sensors) - k), kind="stable") for k in range(n_sensors)])
    return History(
        training=everything[:n_window],
        training_ticks=ticks,
        training_classes=classes[:n_window],
        scores=everything[n_window:],
        classes=classes[n_window:],
        first_tick=first_tick,
        hours=np.arange(first_tick + n_times) % ticks_per_day * 24 // ticks_per_day,
        neighbours=np.ascontiguousarray(order[:, : max(1, n_sensors - 1)]),
        ticks_per_day=ticks_per_day,
    )


def naive_ranks(
    given: History, rules: Reference, neighbours: np.ndarray | None = None
) -> dict[str, np.ndarray]:
    """p, strength, bounds and status of every judged score, one tick after another."""
    tail = {side: name for name, side in SIDES.items()}[rules.side]
    reference = naive.Reference(
        given.training,
        given.training_ticks,
        given.training_classes if rules.classes else None,
        kind="signed",  # the side says what is tested; absolute scores are signed ones with one side
        reference=rules.kind,
        pool=rules.pool,
        form=rules.form,
        tail=tail,
        alpha=rules.alpha,
        spread=SPREAD[: given.scores.shape[1]],
        half_life=rules.half_life,
        absorb=rules.absorb,
        local="or" if rules.everywhere else "and",
        local_ticks=rules.lags,
        neighbourhood=given.neighbours,
        training_hours=given.hours[given.training_ticks],
        season_ticks=28 * given.ticks_per_day,
    )
    rows = [
        reference.update(
            given.first_tick + t,
            given.scores[t],
            given.classes[t] if rules.classes else None,
            hour=int(given.hours[given.first_tick + t]),
            neighbourhood=None if neighbours is None else neighbours[t],
        )
        for t in range(len(given.scores))
    ]
    found = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    found["left_out"] = np.array([row.left_out for row in reference.rows[-given.training.shape[0] :]])
    return found


def opened(given: History, rules: Reference) -> Window:
    return pvalues.open_window(
        given.training,
        given.training_classes.astype(np.uint8),
        given.training_ticks,
        given.first_tick,
        rules,
        given.hours[: given.first_tick].astype(np.int8),
        given.ticks_per_day,
    )


def ranked(
    given: History,
    rules: Reference,
    window: Window | None = None,
    ticks: slice = slice(None),
    threads: int = 1,
    neighbours: np.ndarray | None = None,
) -> pvalues.Ranks:
    return pvalues.rank(
        given.scores[ticks],
        given.classes[ticks].astype(np.uint8),
        opened(given, rules) if window is None else window,
        rules,
        1e-9 * SPREAD[: given.scores.shape[1]],
        SPREAD[: given.scores.shape[1]],
        given.neighbours[None] if neighbours is None else neighbours[ticks],
        given.hours[given.first_tick :][ticks].astype(np.int8),
        given.ticks_per_day,
        threads,
    )


def assert_same(given: History, rules: Reference) -> pvalues.Ranks:
    expected, fast = naive_ranks(given, rules), ranked(given, rules)
    assert_ranks_equal(fast, expected, rules, SPREAD[: given.scores.shape[1]])
    return fast


def assert_ranks_equal(
    fast: pvalues.Ranks, expected: dict[str, np.ndarray], rules: Reference, spread: np.ndarray
) -> None:
    if rules.half_life is None:
        np.testing.assert_array_equal(fast.p, expected["p"])
    else:  # sums of weights are rounded
        np.testing.assert_allclose(fast.p, expected["p"], rtol=1e-12)
    np.testing.assert_allclose(fast.strength, expected["strength"], rtol=1e-9, atol=1e-9)
    known = ~np.isnan(expected["upper_bound"])
    tie = np.broadcast_to(1e-9 * spread, known.shape)  # a bound holds what ties with it
    if rules.side != _kernels.LOW:
        np.testing.assert_array_equal(np.isnan(fast.high), ~known)
        np.testing.assert_allclose(fast.high[known] - tie[known], expected["upper_bound"][known], atol=1e-12)
    if rules.side != _kernels.HIGH:
        np.testing.assert_array_equal(np.isnan(fast.low), ~known)
        np.testing.assert_allclose(fast.low[known] + tie[known], expected["lower_bound"][known], atol=1e-12)
    judged = ~np.isin(expected["status"], [naive.MISSING, naive.NO_FEATURES])
    np.testing.assert_array_equal(fast.code[judged], expected["status"][judged])


# -- every combination -------------------------------------------------------------------------------------------------


KINDS: dict[str, dict[str, Any]] = {
    "window": {"kind": "window"},
    "pool": {"kind": "window", "pool": "network"},
    "seasonal": {"kind": "seasonal"},
    "local and": {"kind": "local", "lags": 6},
    "local or": {"kind": "local", "lags": 6, "everywhere": True},
}
RULES = [
    pytest.param(
        name,
        Reference(
            **KINDS[name],
            classes=n_classes > 0,
            half_life=half_life,
            absorb=absorb,
            form=form,
            side=SIDES[side],
            alpha=0.1,
        ),
        n_classes,
        id=f"{name}, {n_classes} classes, half-life {half_life}, absorb {absorb}, {form}, {side}",
    )
    for name, n_classes, half_life, absorb, form, side in itertools.product(
        KINDS, (0, 2, 3), (None, 40.0), ("runs", "all"), ("conformal", "paper"), SIDES
    )
    if n_classes == 0 or not name.startswith("local")  # classes are for window and seasonal
]


@pytest.mark.parametrize(("name", "rules", "n_classes"), RULES)
def test_p_values_strengths_and_bounds_agree_with_plain_loops(
    name: str, rules: Reference, n_classes: int
) -> None:
    seed = sum(map(ord, repr(rules)))
    sizes: dict[str, int] = {"n_window": 140, "n_times": 30, "n_sensors": 2}
    if name == "pool":
        sizes = {"n_window": 60, "n_times": 24, "n_sensors": 3}
    elif name == "seasonal":
        sizes = {"n_window": 420, "n_times": 24, "n_sensors": 2, "ticks_per_day": 12}
    assert_same(history(seed, n_classes=max(n_classes, 1), **sizes), rules)


@pytest.mark.parametrize("name", ["window", "pool", "seasonal", "local or"])
@pytest.mark.parametrize("seed", range(2))
def test_long_bursts_run_into_both_caps_and_a_new_normal_comes_in(name: str, seed: int) -> None:
    per_day = 12 if name == "seasonal" else 24
    n_window = 420 if name == "seasonal" else 160
    given = history(
        seed, n_window, 220, 2, signed=False, bursts=6, new_normal=120, n_classes=1, ticks_per_day=per_day
    )
    form = "paper" if name == "seasonal" else "conformal"  # 84 scores cannot give a conformal p of 0.01
    rules = Reference(**KINDS[name], classes=False, form=form)
    fast = assert_same(given, rules)
    expected = naive_ranks(given, rules)
    assert expected["left_out"].any()
    assert np.nanmin(fast.p[-20:, 0]) > 0.01 or name != "window"


@pytest.mark.parametrize("name", ["window", "local or"])
@pytest.mark.parametrize("seed", range(3))
def test_a_score_that_the_cap_kept_in_stays_in_when_places_become_free(name: str, seed: int) -> None:
    given = history(seed, 100, 260, 1, signed=False, bursts=0, n_classes=1, gaps=False)
    starts = np.cumsum(np.random.RandomState(seed).randint(9, 20, 18))
    for start in starts[starts < 250]:  # a run with gaps, each score the strangest so far
        for t in start + np.array([0, 1, 3, 5]):
            given.scores[t, 0] = 1000.0 + t
    rules = Reference(**KINDS[name], classes=False, form="paper", alpha=0.1)
    assert_same(given, rules)
    window = opened(given, rules)
    fullest = 0
    for t in range(260):
        ranked(given, rules, window, slice(t, t + 1))
        fullest = max(fullest, window.n_left_out.max())
    assert fullest == 10  # a tenth of the window


@pytest.mark.parametrize("half_life", [None, 15.0])
@pytest.mark.parametrize("classes", [False, True])
def test_a_window_that_has_slid_many_times_over_still_agrees(half_life: float | None, classes: bool) -> None:
    given = history(5, 120, 420, 2, n_classes=2, bursts=10)
    assert_same(given, Reference(classes=classes, half_life=half_life, side=_kernels.BOTH))


def test_a_window_far_smaller_than_a_class_needs_is_ranked_against_all_classes() -> None:
    given = history(8, 40, 60, 2, n_classes=2)
    fast = assert_same(given, Reference(alpha=0.1))
    assert (fast.code[np.isfinite(fast.p)] == naive.ALL_CLASSES).all()


def test_fewer_scores_than_alpha_needs_are_warming_up() -> None:
    given = history(8, 30, 40, 2, n_classes=1)
    given.training[: 30 - 12] = NAN
    fast = assert_same(given, Reference(alpha=0.05, classes=False))
    assert (fast.code == naive.WARMING_UP).any() and np.isfinite(fast.p).any()
    warming = fast.code == naive.WARMING_UP
    assert np.isnan(fast.p[warming]).all() and np.isnan(fast.high[warming]).all()


@pytest.mark.parametrize("form", ["conformal", "paper"])
def test_weights_of_a_sensor_that_was_long_silent_do_not_vanish(form: str) -> None:
    given = history(3, 120, 100, 2, n_classes=1, bursts=0)
    given.scores[:80, 0] = NAN
    rules = Reference(classes=False, half_life=2.0, form=form, alpha=0.3)
    fast = assert_same(given, rules)
    assert np.isfinite(fast.p[80:, 0]).any()
    silent = replace(given, scores=np.vstack([np.full((40, 2), NAN), given.scores[80:]]))
    silent.classes, silent.hours = given.classes[:60], given.hours[: given.first_tick + 60]
    tiny = replace(rules, half_life=0.02)  # 2 ** -(40 / 0.02) is no number any more
    fast = ranked(silent, tiny)
    assert np.isfinite(fast.p[np.isfinite(silent.scores)]).all()


@pytest.mark.parametrize("everywhere", [False, True])
def test_a_local_set_follows_the_neighbourhood_of_its_tick(everywhere: bool) -> None:
    given = history(4, 100, 40, 4, n_classes=1)
    random = np.random.RandomState(0)
    moving = np.array(
        [[[k, *random.permutation([j for j in range(4) if j != k])[:2]] for k in range(4)] for _ in range(40)]
    )
    rules = Reference(kind="local", lags=6, everywhere=everywhere, classes=False, alpha=0.1)
    expected = naive_ranks(given, rules, moving)
    assert_ranks_equal(ranked(given, rules, neighbours=moving), expected, rules, SPREAD)


def test_a_seasonal_set_reaches_back_28_days_and_no_further() -> None:
    given = history(6, 40 * 4, 30, 1, n_classes=1, ticks_per_day=4, gaps=False, bursts=0)
    given.training[: 160 - 28 * 4] = 100.0
    rules = Reference(kind="seasonal", classes=False, alpha=0.1)
    fast = assert_same(given, rules)
    assert np.nanmax(fast.high[2:]) < 100


# -- what ranks promise ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("half_life", [None, 80.0])
@pytest.mark.parametrize("form", ["conformal", "paper"])
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("name", KINDS)
def test_a_score_is_outside_its_bounds_exactly_where_p_is_at_most_alpha(
    name: str, side: str, form: str, half_life: float | None
) -> None:
    per_day = 12 if name == "seasonal" else 24
    given = history(21, 160, 300, 3, n_classes=2, bursts=8, ticks_per_day=per_day)
    rules = Reference(
        **KINDS[name], classes=name == "window", form=form, side=SIDES[side], half_life=half_life, alpha=0.25
    )
    fast = ranked(given, rules)
    outside = np.zeros(fast.p.shape, dtype=bool)
    if side != "low":
        outside |= given.scores > fast.high
    if side != "high":
        outside |= given.scores < fast.low
    judged = np.isfinite(fast.p)
    np.testing.assert_array_equal(outside[judged], fast.p[judged] <= 0.25)
    assert outside[judged].any() and not outside[judged].all()


def test_scores_that_differ_by_rounding_only_tie() -> None:
    given = history(2, 200, 100, 2, n_classes=1, bursts=0)
    shaken = replace(given, scores=given.scores * (1 + 1e-13), training=given.training * (1 - 1e-13))
    for side in SIDES.values():
        rules = Reference(classes=False, side=side)
        np.testing.assert_array_equal(ranked(given, rules).p, ranked(shaken, rules).p)


def test_strength_does_not_fall_where_the_weights_of_the_largest_have_faded_away() -> None:
    """A score of long ago weighs nothing; one that is smaller than it is not strange by a negative amount."""
    scores = np.concatenate([[50.0], np.linspace(1.0, 2.0, 1200)])[:, None]
    given = np.zeros(scores.shape, dtype=np.uint8)
    rules = Reference(half_life=1.0, alpha=0.4, classes=False)
    found = []
    for score in (1.9, 30.0, 60.0):
        window = pvalues.open_window(scores, given, np.arange(1201), 1201, rules, None, None)
        ones = np.ones(1)
        judged = np.array([[score]])
        found.append(
            pvalues.rank(judged, given[:1], window, rules, 1e-9 * ones, ones, np.zeros((1, 1), np.int64))
        )
    strength = [ranks.strength[0, 0] for ranks in found]
    assert strength[0] < strength[1] < strength[2]


def test_the_order_of_strengths_is_the_order_of_scores_and_goes_on_beyond_the_largest() -> None:
    given = history(9, 200, 1, 1, signed=False, n_classes=1, gaps=False, bursts=0)
    rules = Reference(classes=False)
    found = []
    for s in (0.0, 0.5, 2.0, 10.0, 20.0, 1e6):
        given.scores = np.array([[s]])
        fast = ranked(given, rules)
        found.append((fast.p[0, 0], fast.strength[0, 0]))
    p, strength = (np.array(part) for part in zip(*found))
    assert (np.diff(p) <= 0).all() and p[-1] == p[-3] and (np.diff(strength) > 0).all()


def test_a_tick_is_ranked_before_it_is_learned() -> None:
    given = history(1, 120, 60, 3, n_classes=2)
    changed = replace(given, scores=given.scores.copy())
    changed.scores[30:] *= 7
    for name in KINDS:
        rules = Reference(**KINDS[name], classes=name == "window", alpha=0.1)
        before, after = ranked(given, rules), ranked(changed, rules)
        np.testing.assert_array_equal(before.p[:30], after.p[:30])
        np.testing.assert_array_equal(before.high[:31], after.high[:31])  # bounds know the past only


@pytest.mark.parametrize("block", [1, 3, 17])
@pytest.mark.parametrize("name", KINDS)
def test_blocks_of_any_length_give_the_same_ranks(name: str, block: int) -> None:
    given = history(13, 150, 170, 3, n_classes=2, bursts=6)
    rules = Reference(**KINDS[name], classes=name == "window", half_life=30.0, side=_kernels.BOTH, alpha=0.1)
    whole, window = ranked(given, rules), opened(given, rules)
    parts = [ranked(given, rules, window, slice(a, a + block)) for a in range(0, 170, block)]
    for column, expected in enumerate(whole):
        np.testing.assert_array_equal(np.concatenate([part[column] for part in parts]), expected)


def test_two_threads_give_the_same_ranks_as_one() -> None:
    given = history(14, 150, 200, 4, n_classes=2, bursts=6)
    one, two = ranked(given, Reference()), ranked(given, Reference(), threads=2)
    for expected, found in zip(one, two):
        np.testing.assert_array_equal(found, expected)


def test_at_most_a_tenth_of_the_places_is_left_out_and_no_run_longer_than_a_twentieth() -> None:
    given = history(16, 200, 300, 1, signed=False, bursts=0, n_classes=1, gaps=False)
    given.scores[20:, 0] = 1000.0 + np.arange(280)  # each the strangest so far
    rules = Reference(classes=False)
    window = opened(given, rules)
    left_out = []
    for t in range(300):
        ranked(given, rules, window, slice(t, t + 1))
        left_out.append(int(window.n_left_out[0]))
    assert max(left_out) == 200 // 20 + 1  # ages 0 .. W / 20
    assert left_out[-1] == 0  # the window has passed over them


def test_a_single_strange_score_enters_the_window() -> None:
    given = history(17, 200, 60, 1, signed=False, bursts=0, n_classes=1, gaps=False)
    given.scores[::5, 0] = 1000.0
    window = opened(given, Reference(classes=False))
    ranked(given, Reference(classes=False), window)
    assert window.n_left_out[0] == 0 and (window.ring == 1000).sum() == 12


@pytest.mark.parametrize(
    ("rules", "n", "smallest"),
    [
        (Reference(alpha=0.05), 19, 1 / 20),
        (Reference(alpha=0.05), 18, 1.0),
        (Reference(alpha=0.05, side=_kernels.BOTH), 19, 2 / 20),
        (Reference(alpha=0.05, form="paper"), 19, 0.0),
        (Reference(alpha=0.05, half_life=1.0), 19, 1 / 3),
    ],
)
def test_the_smallest_p_value_of_a_set_is_known_beforehand(rules: Reference, n: int, smallest: float) -> None:
    assert rules.smallest_p(np.arange(n), np.ones(n)) == pytest.approx(smallest, rel=1e-5)


def test_the_kernels_codes_are_those_of_the_report() -> None:
    codes = (windows.TESTED, windows.WARMING, windows.ALL_CLASSES)
    assert codes == (report.TESTED, report.WARMING_UP, report.ALL_CLASSES)
