"""How holes are filled: the fast functions against the plain loops, and what a filled cell may know."""

from __future__ import annotations

import math

import numpy as np
import pytest

import naive
import panels
from ecad import imputation

NAN = math.nan
METHODS = ["jointly", "near", "iterative", "seasonal", "keep"]


def close(fast: np.ndarray, plain: np.ndarray, unit: np.ndarray | float = 1.0) -> bool:
    """Within 1e-9 of the unit, NaN in the same places."""
    return bool(np.allclose(fast / unit, plain / unit, rtol=0, atol=1e-9, equal_nan=True))


def deviations_of(small: panels.SmallPanel) -> np.ndarray:
    centre, scale, _ = naive.scale_of(small.values)
    return naive.deviations(small.values, centre, scale)


def correlated(seed: int, n_times: int, n_sensors: int, holes: float = 0.2) -> np.ndarray:
    """Deviations of sensors that share a few causes; unequal variances, some ticks empty, one constant, one absent."""
    random = np.random.RandomState(seed)
    causes = random.standard_normal((n_times, 4))
    D = causes @ random.standard_normal((4, n_sensors)) + random.standard_normal((n_times, n_sensors))
    D *= random.uniform(0.2, 3, n_sensors)
    D[random.uniform(size=D.shape) < holes] = NAN
    D[[n_times // 7, n_times // 3]] = NAN
    D[:, 2] = np.where(np.isnan(D[:, 2]), NAN, 0.0)
    D[:, 3] = NAN
    return D


def reconciled(covariance: np.ndarray) -> np.ndarray:
    """Shrunk pairwise covariances that fit together have correlation eigenvalues of at least 0.05: so shall all."""
    unit = np.diag(np.sqrt(np.diag(covariance)))
    value, vector = np.linalg.eigh(np.linalg.inv(unit) @ covariance @ np.linalg.inv(unit))
    return unit @ vector @ np.diag(np.maximum(value, 0.05)) @ vector.T @ unit


def near_fill(row: np.ndarray, k: int, mean: np.ndarray, covariance: np.ndarray, near: np.ndarray) -> float:
    """One cell: its conditional mean given the observed among its nearest."""
    who = [k, *near[k]]
    given = [a for a in range(1, len(who)) if not np.isnan(row[who[a]])]
    block = reconciled(covariance[np.ix_(who, who)])
    return float(naive.conditional(row[who], mean[who], block, [0], given)[0][0])


def ring_order(n_sensors: int) -> np.ndarray:
    """(K, K) nearest first along a ring."""
    near = [0, *(d for j in range(1, n_sensors) for d in (j, -j))][:n_sensors]
    return (np.arange(n_sensors)[:, None] + np.array(near)) % n_sensors


def filling_of(method: str, values: np.ndarray, level: np.ndarray, scale: np.ndarray) -> imputation.Filling:
    if method in ("jointly", "near"):
        return imputation.fit_gaussian((values - level) / scale, ring_order(values.shape[1]))
    if method == "iterative":
        return imputation.fit_iterative(values, 0, max_iter=3, tol=10.0)[0]
    return imputation.Seasonal() if method == "seasonal" else imputation.Keep()


def case(method: str) -> tuple[imputation.Filling, np.ndarray, np.ndarray, np.ndarray]:
    """A fitted filling, and the (values, level, scale) that it was fitted to."""
    n_sensors = 104 if method == "near" else 6
    values = correlated(1, 90, n_sensors) * 7 + 50
    random = np.random.RandomState(2)
    level, scale = 50 + random.standard_normal(values.shape), random.uniform(0.5, 4, n_sensors)
    return filling_of(method, values, level, scale), values, level, scale


def fill(filling: imputation.Filling, values: np.ndarray, level: np.ndarray, scale: np.ndarray) -> np.ndarray:
    memory = imputation.LastDeviation(np.zeros(values.shape[1]))
    return imputation.fill(filling, memory, values, level, scale)


# -- what is learned -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("small", panels.small_panels(5), ids=lambda small: f"seed{small.seed}")
def test_mean_and_covariance_are_those_of_em(small: panels.SmallPanel) -> None:
    D = deviations_of(small)
    for fast, plain in zip(imputation.expectation_maximisation(D), naive.gaussian_em(D), strict=True):
        assert close(fast, plain)


def test_em_lives_with_constant_and_absent_sensors_and_empty_ticks() -> None:
    D = correlated(0, 80, 6)
    for fast, plain in zip(imputation.expectation_maximisation(D), naive.gaussian_em(D), strict=True):
        assert close(fast, plain)


def test_em_of_many_ticks_uses_five_thousand_of_them() -> None:
    D = correlated(3, 7000, 4, holes=0.02)
    for fast, plain in zip(imputation.expectation_maximisation(D), naive.gaussian_em(D), strict=True):
        assert close(fast, plain)


def test_em_of_nothing_is_nothing_known() -> None:
    mean, covariance = imputation.expectation_maximisation(np.full((9, 3), NAN))
    assert mean.tolist() == [0, 0, 0]
    assert covariance == pytest.approx(np.eye(3))


@pytest.mark.parametrize(("n_times", "holes"), [(400, 0.0), (400, 0.2), (60, 0.5)])
def test_with_more_than_a_hundred_sensors_covariances_are_pairwise_and_shrunk(
    n_times: int, holes: float
) -> None:
    D, order = correlated(4, n_times, 103, holes), ring_order(103)
    learned = imputation.fit_gaussian(D, order)
    mean, covariance = naive.pairwise_covariance(D)
    assert learned.near.tolist() == order[:, 1:21].tolist()
    assert close(learned.mean, mean)
    for k in range(103):
        plain = covariance[np.ix_(order[k, :21], order[k, :21])]
        assert close(learned.covariance[k], plain if holes == 0 else reconciled(plain))


def test_a_hundred_sensors_are_conditioned_on_all_and_one_more_on_the_nearest_twenty() -> None:
    for n_sensors, n_near in ((100, 0), (101, 20)):
        D = correlated(0, 30, n_sensors)
        assert imputation.fit_gaussian(D, ring_order(n_sensors)).near.shape == (n_sensors, n_near)


def test_pairwise_covariances_that_contradict_each_other_still_give_sane_fillings() -> None:
    random = np.random.RandomState(0)
    D = random.standard_normal((300, 1)) + 0.05 * random.standard_normal((300, 102))
    D[random.uniform(size=D.shape) < 0.9] = NAN  # few common ticks: the estimates do not fit together
    learned = imputation.fit_gaussian(D, ring_order(102))
    covariance = naive.pairwise_covariance(D)[1]
    assert min(np.linalg.eigvalsh(covariance[np.ix_(who, who)])[0] for who in ring_order(102)[:, :21]) < 0
    assert min(np.linalg.eigvalsh(block)[0] for block in learned.covariance) > 0
    assert np.abs(learned.fill(D)).max() < 3 * np.nanmax(np.abs(D))


# -- filling ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("holes", [0.02, 0.3, 0.9])
def test_a_hole_is_the_conditional_mean_given_what_its_tick_reports(holes: float) -> None:
    filling, *_ = case("jointly")
    D = correlated(5, 60, 6, holes)
    plain = [naive.gaussian_fill(row, filling.mean, filling.covariance) for row in D]
    assert close(filling.fill(D), np.array(plain))


@pytest.mark.parametrize("holes", [0.05, 0.5, 0.97])
def test_among_many_sensors_a_hole_is_the_conditional_mean_given_its_nearest(holes: float) -> None:
    filling, values, level, scale = case("near")
    mean, covariance = naive.pairwise_covariance((values - level) / scale)
    D = correlated(6, 12, 104, holes)
    plain = D.copy()
    for t, k in np.argwhere(np.isnan(D)):
        plain[t, k] = near_fill(D[t], k, mean, covariance, filling.near)
    assert close(filling.fill(D), plain)


@pytest.mark.parametrize("method", ["jointly", "near"])
def test_a_tick_that_reports_nothing_is_filled_with_the_means(method: str) -> None:
    filling, _, level, scale = case(method)
    filled = fill(filling, np.full((2, len(scale)), NAN), level[:2], scale)
    assert close(filled, level[:2] + scale * filling.mean, scale)


@pytest.mark.parametrize("method", ["jointly", "near"])
def test_filling_is_done_in_deviations_from_the_level(method: str) -> None:
    filling, values, level, scale = case(method)
    assert close(
        fill(filling, values, level, scale), level + scale * filling.fill((values - level) / scale), scale
    )


def test_a_seasonal_filling_is_the_level_plus_the_last_known_deviation() -> None:
    filling, values, level, scale = case("seasonal")
    assert close(fill(filling, values, level, scale), naive.seasonal_fill(values, level), scale)


def test_the_last_deviation_is_carried_from_training_into_detection() -> None:
    _, values, level, scale = case("seasonal")
    memory = imputation.last_deviation(values[:60], level[:60], scale)
    later = imputation.fill(imputation.Seasonal(), memory, values[60:], level[60:], scale)
    assert close(later, naive.seasonal_fill(values, level)[60:], scale)


def test_an_iterative_filling_is_what_scikit_learn_makes_of_it() -> None:
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer

    values = np.delete(correlated(1, 90, 6), 3, axis=1) * 7 + 50
    peer = IterativeImputer(random_state=3, max_iter=2, tol=10.0)
    filling, filled = imputation.fit_iterative(values[:60], 3, max_iter=2, tol=10.0)
    assert close(filled, peer.fit_transform(values[:60]), values.std())
    assert close(filling.fill(values[60:]), peer.transform(values[60:]), values.std())
    assert close(filling.fill(values[:60]), filled, values.std())  # one formula in training and afterwards


def test_the_iterative_imputer_looks_at_twenty_columns_where_there_are_more_than_thirty() -> None:
    for n_sensors, n_columns in ((30, None), (31, 20)):
        random = np.random.RandomState(0)
        values = random.standard_normal((20, n_sensors))
        values[0, 0] = NAN
        filling, _ = imputation.fit_iterative(values, 0, max_iter=1, tol=1e9)
        assert filling.imputer.n_nearest_features == n_columns


def test_keep_leaves_the_holes() -> None:
    filling, values, level, scale = case("keep")
    assert np.array_equal(fill(filling, values, level, scale), values, equal_nan=True)


@pytest.mark.parametrize("method", METHODS)
def test_what_was_observed_is_never_altered(method: str) -> None:
    filling, values, level, scale = case(method)
    filled = fill(filling, values, level, scale)
    seen = ~np.isnan(values)
    assert np.array_equal(filled[seen], values[seen])
    assert method == "keep" or not np.isnan(filled).any()


@pytest.mark.parametrize("method", METHODS)
def test_filling_tick_by_tick_is_filling_at_once(method: str) -> None:
    filling, values, level, scale = case(method)
    memory = imputation.LastDeviation(np.zeros(len(scale)))
    ticks = [
        imputation.fill(filling, memory, values[t : t + 1], level[t : t + 1], scale)
        for t in range(len(values))
    ]
    assert close(np.vstack(ticks), fill(filling, values, level, scale), scale)


@pytest.mark.parametrize("method", METHODS)
def test_a_tick_that_reports_nothing_is_filled_alone_as_among_others(method: str) -> None:
    n_sensors = 104 if method == "near" else 4
    random = np.random.RandomState(0)
    values = random.standard_normal((60, 1)) + random.standard_normal((60, n_sensors))
    values[random.uniform(size=values.shape) < 0.2] = NAN
    values[17] = NAN
    level, scale = np.zeros_like(values), np.ones(n_sensors)
    filling = filling_of(method, values, level, scale)
    if method == "seasonal":  # remembers: alone means with the same past
        memory = imputation.last_deviation(values[:17], level[:17], scale)
        alone = imputation.fill(filling, memory, values[17:18], level[17:18], scale)
    else:
        alone = fill(filling, values[17:18], level[17:18], scale)
    assert close(alone[0], fill(filling, values, level, scale)[17])


# -- what a filled cell may know -------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", METHODS)
def test_a_filled_cell_does_not_look_ahead(method: str) -> None:
    filling, values, level, scale = case(method)
    before = fill(filling, values, level, scale)
    for t in (0, 1, 30, 88):
        for later in (NAN, 1e6):
            changed = values.copy()
            changed[t + 1 :] = later
            assert close(fill(filling, changed, level, scale)[: t + 1], before[: t + 1], scale)


def same_tick(
    filling: imputation.Filling, values: np.ndarray, level: np.ndarray, scale: np.ndarray, index: np.ndarray
) -> np.ndarray:
    filled = fill(filling, values, level, scale)
    return imputation.fill_same_tick(filling, values, filled, level, scale, index)


def some_neighbourhoods(n_sensors: int, n_times: int) -> np.ndarray:
    """(n_times, K, 4): itself and three others, which change with time."""
    others = np.array([np.roll(ring_order(n_sensors)[:, 1:], t, axis=1)[:, :3] for t in range(n_times)])
    own = np.broadcast_to(np.arange(n_sensors)[:, None], (n_times, n_sensors, 1))
    return np.concatenate([own, others], axis=2)


@pytest.mark.parametrize("n_neighbourhoods", [1, 20])
def test_same_tick_neighbours_are_filled_as_if_the_sensor_had_not_reported(n_neighbourhoods: int) -> None:
    filling, values, level, scale = case("jointly")
    values, level = values[:20], level[:20]
    index = some_neighbourhoods(6, n_neighbourhoods)
    fast = same_tick(filling, values, level, scale, index)
    for t in range(20):
        for k in range(6):
            D = (values[t] - level[t]) / scale
            row = naive.gaussian_fill_without(D, k, filling.mean, filling.covariance)
            others = index[t % n_neighbourhoods, k, 1:]
            assert close(fast[t, k], (level[t] + scale * row)[others], scale[others])


def test_among_many_sensors_too_same_tick_neighbours_are_filled_without_the_sensor() -> None:
    filling, values, level, scale = case("near")
    D = (values - level) / scale
    mean, covariance = naive.pairwise_covariance(D)
    index = some_neighbourhoods(104, 20)
    fast = same_tick(filling, values[:20], level[:20], scale, index)
    for t in range(20):
        for k in range(0, 104, 9):
            hidden = D[t].copy()
            hidden[k] = NAN
            for a, j in enumerate(index[t, k, 1:]):
                if np.isnan(D[t, j]):
                    plain = level[t, j] + scale[j] * near_fill(hidden, j, mean, covariance, filling.near)
                    assert close(fast[t, k, a], plain, scale[j])


@pytest.mark.parametrize("method", METHODS)
def test_same_tick_neighbours_do_not_know_the_sensors_own_reading(method: str) -> None:
    filling, values, level, scale = case(method)
    index = ring_order(len(scale))[None, :, :4]
    before = same_tick(filling, values, level, scale, index)
    for k in range(0, len(scale), max(1, len(scale) // 5)):
        for other in (NAN, 1e6):
            changed = values.copy()
            changed[:, k] = other
            after = same_tick(filling, changed, level, scale, index)
            assert close(after[:, k], before[:, k], scale[index[0, k, 1:]])


@pytest.mark.parametrize("method", METHODS)
def test_same_tick_neighbours_that_reported_are_as_they_reported(method: str) -> None:
    filling, values, level, scale = case(method)
    index = ring_order(len(scale))[None, :, :4]
    seen = values[:, index[0, :, 1:]]
    fast = same_tick(filling, values, level, scale, index)
    assert np.array_equal(fast[~np.isnan(seen)], seen[~np.isnan(seen)])
