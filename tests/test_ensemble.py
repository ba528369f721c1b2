"""Who drew what, and what the members that did not say: the fast functions against the plain loops."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import naive
from ecad import _kernels, ensemble

NAN = math.nan


def middle_half(values: np.ndarray) -> Any:
    """A callable aggregation: the midrange, by member first, as both the fast and the plain code call it."""
    return 0.5 * (np.min(values, axis=0) + np.max(values, axis=0))


AGGREGATIONS = {"mean": "mean", "median": "median", "trimmed_mean": "trimmed_mean", "callable": middle_half}


def drawn(n_times: int = 120, n_members: int = 9, seed: int = 0) -> np.ndarray:
    return ensemble.draw(n_times, n_members, seed)


def predictions_of(n_members: int, *shape: int, seed: int = 0) -> np.ndarray:
    random = np.random.RandomState(seed)
    return random.standard_normal((1, *shape)) * 30 + random.standard_normal((n_members, *shape))


# -- the draw ----------------------------------------------------------------------------------------------------------


def test_every_member_draws_as_many_times_as_there_are() -> None:
    ends = ensemble.day_blocks(np.arange(100), 24)
    for in_bag in (drawn(100, 7), ensemble.draw(100, 7, 0, ends)):
        assert in_bag.shape == (7, 100)
        assert in_bag.sum(axis=1).tolist() == [100] * 7


def test_single_draws_are_counted() -> None:
    for b, child in enumerate(np.random.SeedSequence(5).spawn(4)):
        indices = np.random.default_rng(child).integers(50, size=50)
        assert drawn(50, 4, 5)[b].tolist() == naive.iid_counts(indices, 50).tolist()


TICKS = {
    "without gaps": np.arange(7, 107),
    "with gaps": np.flatnonzero(np.random.RandomState(0).uniform(size=300) < 0.4),
    "with a long gap": np.concatenate([np.arange(40), np.arange(400, 440)]),
    "few": np.array([3, 9, 10]),
    "one": np.array([5]),
}


@pytest.mark.parametrize("ticks", TICKS.values(), ids=TICKS)
@pytest.mark.parametrize("span", [1, 24, 10_000])
def test_blocks_are_the_usable_times_of_a_day_around_the_circle(ticks: np.ndarray, span: int) -> None:
    n = len(ticks)
    in_bag = ensemble.draw(n, 5, 3, ensemble.day_blocks(ticks, span))
    for b, child in enumerate(np.random.SeedSequence(3).spawn(5)):
        starts = np.random.default_rng(child).integers(n, size=n)  # more than are ever needed
        one_by_one = np.random.default_rng(child)
        assert starts[:3].tolist() == [one_by_one.integers(n) for _ in range(min(3, n))]
        assert in_bag[b].tolist() == naive.moving_block_counts(starts, ticks, span).tolist()


def test_every_time_is_drawn_as_often_as_any_other_also_the_first_and_the_last() -> None:
    often = ensemble.draw(60, 4000, 0, ensemble.day_blocks(np.arange(60), 24)).mean(axis=0)
    assert often == pytest.approx(np.ones(60), abs=0.12)


@pytest.mark.parametrize("ends", [None, ensemble.day_blocks(np.arange(90), 24)], ids=["iid", "block"])
def test_a_member_is_the_same_however_many_others_there_are(ends: np.ndarray | None) -> None:
    many = ensemble.draw(90, 30, 11, ends)
    for n_members in (1, 7):
        assert np.array_equal(ensemble.draw(90, n_members, 11, ends), many[:n_members])
    assert not np.array_equal(many[0], many[1])
    assert not np.array_equal(ensemble.draw(90, 30, 12, ends), many)


# -- aggregation -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("aggregation", AGGREGATIONS.values(), ids=AGGREGATIONS)
@pytest.mark.parametrize("n_members", [1, 2, 3, 4, 9, 10, 11, 20, 25, 31])
def test_all_members_together_are_aggregated_as_asked(aggregation: Any, n_members: int) -> None:
    P = predictions_of(n_members, 6, 3)
    fast = ensemble.aggregate(P, aggregation)
    plain = [[naive.phi(P[:, t, k], aggregation) for k in range(3)] for t in range(6)]
    assert fast == pytest.approx(np.array(plain), abs=1e-12)
    assert fast.dtype == np.float64


@pytest.mark.parametrize("aggregation", AGGREGATIONS.values(), ids=AGGREGATIONS)
def test_what_one_member_cannot_predict_its_ensemble_does_not_either(aggregation: Any) -> None:
    P = np.repeat(predictions_of(9, 1, 2), 40, axis=1)
    for t in range(36):
        P[t % 9, t, t // 18] = NAN
    assert np.isnan(ensemble.aggregate(P, aggregation)).tolist() == np.isnan(P).any(axis=0).tolist()
    in_bag = drawn(40, 9)
    in_bag[-1, in_bag.min(axis=0) > 0] = 0  # somebody did not see it
    left_out = ensemble.leave_one_out(P, ensemble.out_of_bag(in_bag, aggregation), slice(0, 40))
    for t in range(40):
        assert np.isnan(left_out[t]).tolist() == np.isnan(P[in_bag[:, t] == 0, t]).any(axis=0).tolist()


@pytest.mark.parametrize("aggregation", AGGREGATIONS.values(), ids=AGGREGATIONS)
@pytest.mark.parametrize("n_members", [2, 3, 5, 12, 25])
def test_a_time_is_predicted_by_the_members_that_did_not_see_it(aggregation: Any, n_members: int) -> None:
    in_bag = drawn(80, n_members)
    oob = ensemble.out_of_bag(in_bag, aggregation)
    P = predictions_of(n_members, 80, 3)
    plain = [[naive.loo(P[:, t, k], in_bag[:, t], aggregation) for k in range(3)] for t in range(80)]
    for times in (slice(0, 80), slice(0, 1), slice(37, 62)):
        fast = ensemble.leave_one_out(P[:, times], oob, times)
        assert fast == pytest.approx(np.array(plain)[times], abs=1e-9, nan_ok=True)


def test_a_time_that_every_member_saw_has_no_prediction() -> None:
    in_bag = np.array([[1, 0, 2, 1], [3, 0, 1, 0], [1, 2, 1, 0]])
    for aggregation in AGGREGATIONS.values():
        oob = ensemble.out_of_bag(in_bag, aggregation)
        assert oob.n_predictors == 2 and oob.valid.tolist() == [1, 3]
        left_out = ensemble.leave_one_out(predictions_of(3, 4, 2), oob, slice(0, 4))
        assert np.isnan(left_out).all(axis=1).tolist() == [True, False, True, False]


# -- the quantile centre -----------------------------------------------------------------------------------------------


def of_all(
    P: np.ndarray, oob: ensemble.OutOfBag, alpha: float, dtype: Any = np.float64, threads: int = 1
) -> np.ndarray:
    rank = ensemble.quantile_rank(alpha, oob.n_predictors)
    return ensemble.QuantileCentre(oob, rank, dtype).of(P, threads)


def test_the_rank_of_the_quantile_is_the_papers() -> None:
    for n in (1, 2, 19, 20, 99, 1000):
        for alpha in (0.001, 0.01, 0.05, 0.1, 1 / 3, 0.5, 0.9, 0.999):
            lowest = naive.quantile_centre(np.zeros(1), np.zeros((1, n)), lambda v: 0.0, alpha)
            assert lowest == 0.0
            plain = next(r for r in range(1, n + 1) if r >= round((1 - alpha) * n, 9) or r == n)
            assert ensemble.quantile_rank(alpha, n) == plain


@pytest.mark.parametrize("aggregation", AGGREGATIONS.values(), ids=AGGREGATIONS)
@pytest.mark.parametrize("n_members", [2, 5, 25])
@pytest.mark.parametrize("n_times", [3, 17, 150])
def test_the_quantile_centre_is_the_ranked_one_of_all_leave_one_out_predictions(
    aggregation: Any, n_members: int, n_times: int
) -> None:
    in_bag = drawn(n_times, n_members, seed=1)
    oob = ensemble.out_of_bag(in_bag, aggregation)
    P = predictions_of(n_members, 40)
    for alpha in (0.01, 0.05, 0.3, 0.5, 0.95):
        plain = [naive.quantile_centre(P[:, r], in_bag, aggregation, alpha) for r in range(40)]
        assert of_all(P, oob, alpha) == pytest.approx(np.array(plain), abs=1e-9)


@pytest.mark.parametrize("aggregation", AGGREGATIONS.values(), ids=AGGREGATIONS)
def test_the_quantile_centre_is_exact_in_rank(aggregation: Any) -> None:
    in_bag = drawn(400, 6, seed=2)  # few members: the same mask, and so a tie, many times over
    oob = ensemble.out_of_bag(in_bag, aggregation)
    P = predictions_of(6, 30)
    for alpha in (0.02, 0.5, 0.98):
        fast = of_all(P, oob, alpha)
        for r in range(30):
            everyone = naive.finite(naive.loo_all(P[:, r], in_bag, aggregation))
            tie = 1e-9
            rank = ensemble.quantile_rank(alpha, len(everyone))
            assert np.sum(everyone < fast[r] - tie) < rank <= np.sum(everyone <= fast[r] + tie)


@pytest.mark.parametrize("aggregation", AGGREGATIONS.values(), ids=AGGREGATIONS)
def test_times_that_the_same_members_left_out_are_asked_once_and_counted_each(aggregation: Any) -> None:
    in_bag = np.repeat(drawn(30, 7, seed=4), np.random.RandomState(4).geometric(0.2, 30), axis=1)
    oob = ensemble.out_of_bag(in_bag, aggregation)
    centre = ensemble.QuantileCentre(oob, ensemble.quantile_rank(0.3, oob.n_predictors))
    assert centre.n_distinct == len(np.unique((in_bag == 0)[:, in_bag.min(axis=0) == 0], axis=1).T)
    P = predictions_of(7, 40)
    plain = [naive.quantile_centre(P[:, r], in_bag, aggregation, 0.3) for r in range(40)]
    assert centre.of(P) == pytest.approx(np.array(plain), abs=1e-9)


@pytest.mark.parametrize("aggregation", AGGREGATIONS.values(), ids=AGGREGATIONS)
def test_members_that_agree_are_the_centre(aggregation: Any) -> None:
    oob = ensemble.out_of_bag(drawn(200, 8), aggregation)
    for value in (0.0, 1.0, -3e-200, 7e12, 0.1):
        assert of_all(np.full((8, 3), value), oob, 0.1) == pytest.approx([value] * 3, rel=1e-12)


@pytest.mark.parametrize("aggregation", AGGREGATIONS.values(), ids=AGGREGATIONS)
def test_rows_that_cannot_be_predicted_have_no_centre_and_do_not_disturb_the_others(aggregation: Any) -> None:
    oob = ensemble.out_of_bag(drawn(200, 8), aggregation)
    P = predictions_of(8, 9)
    holes = P.copy()
    holes[:, 2] = NAN
    holes[5, 7] = NAN
    fast = of_all(holes, oob, 0.1)
    assert np.flatnonzero(np.isnan(fast)).tolist() == [2, 7]
    others = [r for r in range(9) if r not in (2, 7)]
    assert np.array_equal(fast[others], of_all(P, oob, 0.1)[others])


@pytest.mark.parametrize("aggregation", AGGREGATIONS.values(), ids=AGGREGATIONS)
def test_without_any_leave_one_out_prediction_there_is_no_centre(aggregation: Any) -> None:
    oob = ensemble.out_of_bag(np.ones((3, 5), dtype=np.int64), aggregation)
    assert oob.n_predictors == 0
    assert np.isnan(of_all(predictions_of(3, 4), oob, 0.1)).all()


@pytest.mark.parametrize("aggregation", AGGREGATIONS.values(), ids=AGGREGATIONS)
def test_the_centre_is_the_same_on_any_number_of_threads_and_in_any_block(
    aggregation: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    oob = ensemble.out_of_bag(drawn(100, 8), aggregation)
    P = predictions_of(8, 95)
    whole = of_all(P, oob, 0.05)
    monkeypatch.setattr(ensemble, "BLOCK_NUMBERS", 700)  # seven rows at once
    for threads in (1, 2, 5):
        assert of_all(P, oob, 0.05, threads=threads) == pytest.approx(whole, abs=1e-12)
    assert of_all(P[:, :0], oob, 0.05, threads=2).shape == (0,)


def test_single_precision_is_exact_in_rank_among_its_own_numbers() -> None:
    in_bag = drawn(500, 10, seed=3)
    oob = ensemble.out_of_bag(in_bag, "mean")
    P = predictions_of(10, 60).astype(np.float32)
    fast = of_all(P, oob, 0.05, np.float32)
    weights = (in_bag == 0)[:, oob.valid] / (in_bag == 0)[:, oob.valid].sum(axis=0)
    numbers = np.ascontiguousarray(P.T) @ weights.astype(np.float32)
    assert numbers.dtype == np.float32
    assert fast == pytest.approx(
        np.sort(numbers, axis=1)[:, ensemble.quantile_rank(0.05, oob.n_predictors) - 1], rel=1e-6
    )
    assert fast == pytest.approx(of_all(P.astype(np.float64), oob, 0.05), rel=1e-5)


# -- selection ---------------------------------------------------------------------------------------------------------

NUMBERS = {
    "spread out": np.random.RandomState(0).standard_normal(1000),
    "few": np.random.RandomState(1).standard_normal(7),
    "one": np.array([3.0]),
    "all equal": np.full(300, 2.5),
    "two values": np.repeat([1.0, 2.0], 150),
    "many ties": np.round(np.random.RandomState(2).standard_normal(500), 1),
    "a far outlier": np.append(np.random.RandomState(3).standard_normal(400), 1e15),
    "heavy tails": np.random.RandomState(4).standard_cauchy(800) ** 3,
    "infinite": np.append(np.random.RandomState(5).standard_normal(100), [np.inf, -np.inf, np.inf]),
    "in order": np.arange(500.0),
    "zeros": np.zeros(90),
    "hairs apart": 1.0 + np.arange(200) * 2.0**-52,
}
GUESSES = [(0.0, 0.1), (0.0, 1e-300), (1e6, 1e-3), (-1e9, 1.0), (1e300, 1e-12), (0.5, 1e12), (2.5, 0.0)]


def selected(
    numbers: np.ndarray, weights: np.ndarray, rank: int, guess: np.ndarray, half: np.ndarray
) -> np.ndarray:
    runs = np.concatenate([[0], np.flatnonzero(np.diff(weights)) + 1, [len(weights)]])
    out = np.empty(len(numbers))
    _kernels.select_rows(numbers, weights, runs, rank, guess, half, out)
    return out


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("numbers", NUMBERS.values(), ids=NUMBERS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_selected_number_is_the_ranked_one_wherever_the_search_began(
    numbers: np.ndarray, dtype: Any, weighted: bool
) -> None:
    random = np.random.RandomState(9)
    numbers = random.permutation(numbers).astype(dtype)
    weights = np.sort(random.geometric(0.5 if weighted else 1.0, len(numbers)))
    in_order = np.sort(np.repeat(numbers, weights))
    n = len(in_order)
    for rank in {1, 2, n // 3, n // 2, n - 1, n} & set(range(1, n + 1)):
        exact = float(in_order[rank - 1])
        around = [(exact, h) for h in (0.0, 1e-12, 1.0)] if np.isfinite(exact) else []
        for guess, half in GUESSES + around:
            assert selected(numbers[None], weights, rank, np.array([guess]), np.array([half])) == [exact]


def test_selecting_reorders_a_copy_and_not_what_was_given() -> None:
    numbers = np.random.RandomState(0).standard_normal((4, 300))
    before = numbers.copy()
    selected(numbers, np.ones(300, dtype=np.int64), 150, np.zeros(4), np.full(4, 0.1))
    assert np.array_equal(numbers, before)


@pytest.mark.parametrize("numbers", NUMBERS.values(), ids=NUMBERS)
def test_quickselect_finds_every_rank(numbers: np.ndarray) -> None:
    in_order = np.sort(numbers)
    for k in range(0, len(numbers), 1 + len(numbers) // 40):
        assert _kernels.quickselect(numbers.copy(), len(numbers), k) == in_order[k]
