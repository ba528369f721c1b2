"""The members: ridge in one pass and any regressor of scikit-learn, against fits to rows that are really repeated."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from joblib import parallel_config
from sklearn.base import clone
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.linear_model import (
    ElasticNet,
    GammaRegressor,
    Lasso,
    LinearRegression,
    PoissonRegressor,
    QuantileRegressor,
    Ridge,
    RidgeCV,
    SGDRegressor,
    TweedieRegressor,
)
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeRegressor

import naive
from ecad import ensemble
from ecad.learners import ridge
from ecad.learners.ridge import RidgeMembers, WeightedGrams, strength_of
from ecad.learners.sklearn import SklearnMembers, fit_members, takes_missing, weights_are_counts


def rows_of(seed: int, n_times: int = 60, n_sensors: int = 4, d: int = 6) -> tuple[np.ndarray, np.ndarray]:
    """X (time, sensor, feature) far from zero, y with rows that are not usable."""
    random = np.random.RandomState(seed)
    X = random.uniform(-500, 500, d) + random.uniform(0.1, 20, d) * random.standard_normal(
        (n_times, n_sensors, d)
    )
    y = X @ random.standard_normal(d) + 5 * random.standard_normal((n_times, n_sensors))
    y[random.uniform(size=y.shape) < 0.2] = np.nan
    y[n_times // 2] = np.nan
    return X, y


def spread_of(y: np.ndarray) -> float:
    return float(np.nanstd(y))


def ridge_members(
    X: np.ndarray, y: np.ndarray, in_bag: np.ndarray, group: np.ndarray, strength: float = 1.0, **options: Any
) -> RidgeMembers:
    shift = X.reshape(-1, X.shape[2])[:8].mean(axis=0)
    grams = WeightedGrams(in_bag, group, shift, strength, options.pop("empty", ()))
    return grams.fit(lambda of_block: over_rows(of_block, X, y)).astype(options.pop("dtype", np.float64))


def over_rows(of_block: ridge.OfBlock, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    blocks = [slice(start, min(start + 25, len(X))) for start in range(0, len(X), 25)]  # as in training
    return np.sum([of_block(X[part], y[part], part) for part in blocks], axis=0)


def plain_ridge(
    X: np.ndarray, y: np.ndarray, in_bag: np.ndarray, group: np.ndarray, strength: float = 1.0
) -> np.ndarray:
    """Predictions (member, time, sensor) of members fitted to the rows of their group, each repeated."""
    out = np.full((len(in_bag), *y.shape), np.nan)
    for b, counts in enumerate(in_bag):
        for g in set(group.tolist()):
            who = np.flatnonzero(group == g)
            usable = np.isfinite(y[:, who]) & np.isfinite(X[:, who]).all(axis=2)
            times = np.nonzero(usable)[0]
            coef, intercept = naive.ridge(X[:, who][usable], y[:, who][usable], counts[times], strength)
            out[b][:, who] = X[:, who] @ coef + intercept
    return out


# -- ridge -------------------------------------------------------------------------------------------------------------

GROUPS = {"shared": [0, 0, 0, 0], "one for each": [0, 1, 2, 3], "two": [1, 0, 1, 1]}


@pytest.mark.parametrize("group", GROUPS.values(), ids=GROUPS)
@pytest.mark.parametrize("strength", [1.0, 1e-4, 300.0])
def test_ridge_members_are_fits_to_rows_repeated_as_often_as_they_were_drawn(
    group: list[int], strength: float
) -> None:
    X, y = rows_of(1)
    in_bag = ensemble.draw(60, 7, 0)
    fast = ridge_members(X, y, in_bag, np.array(group), strength).predict(X)
    plain = plain_ridge(X, y, in_bag, np.array(group), strength)
    assert np.abs(fast - plain).max() < 1e-9 * spread_of(y)


def test_ridge_is_the_ridge_of_scikit_learn() -> None:
    X, y = rows_of(2)
    in_bag = ensemble.draw(60, 3, 0)
    fast = ridge_members(X, y, in_bag, np.zeros(4, dtype=int)).predict(X)
    time, sensor = np.nonzero(np.isfinite(y))
    for b in range(3):
        peer = Ridge(1.0).fit(X[time, sensor], y[time, sensor], sample_weight=in_bag[b, time])
        assert np.abs(peer.predict(X.reshape(-1, 6)).reshape(60, 4) - fast[b]).max() < 1e-9 * spread_of(y)


@pytest.mark.parametrize("far", [0.0, 1e4, 1e6])
def test_ridge_keeps_its_digits_when_readings_lie_far_from_zero(far: float) -> None:
    X, y = rows_of(3)
    in_bag = ensemble.draw(60, 4, 0)
    fast = ridge_members(X + far, y + far, in_bag, np.zeros(4, dtype=int)).predict(X + far)
    plain = plain_ridge(X, y, in_bag, np.zeros(4, dtype=int)) + far  # the intercept takes it up
    # the inputs themselves have lost some of theirs
    assert np.abs(fast - plain).max() < max(1e-9 * spread_of(y), 100 * np.spacing(far))


def test_ridge_lives_with_features_that_repeat_each_other_or_never_change() -> None:
    X, y = rows_of(4)
    X[:, :, 1], X[:, :, 2], X[:, :, 3] = X[:, :, 0], 7.0, 2 * X[:, :, 0]
    in_bag = ensemble.draw(60, 5, 0)
    fast = ridge_members(X, y, in_bag, np.zeros(4, dtype=int)).predict(X)
    assert np.abs(fast - plain_ridge(X, y, in_bag, np.zeros(4, dtype=int))).max() < 1e-9 * spread_of(y)


def test_ridge_of_fewer_rows_than_features_is_still_the_ridge() -> None:
    X, y = rows_of(5, n_times=6, n_sensors=1, d=12)
    y = np.nan_to_num(y)
    in_bag = ensemble.draw(6, 5, 0)
    fast = ridge_members(X, y, in_bag, np.zeros(1, dtype=int)).predict(X)
    assert np.abs(fast - plain_ridge(X, y, in_bag, np.zeros(1, dtype=int))).max() < 1e-9 * spread_of(y)


def test_a_row_with_a_hole_is_not_used_and_not_predicted() -> None:
    X, y = rows_of(6)
    X[11, 2, 4] = np.nan
    X[30, 0] = np.nan
    in_bag = ensemble.draw(60, 5, 0)
    fast = ridge_members(X, y, in_bag, np.zeros(4, dtype=int)).predict(X)
    plain = plain_ridge(X, y, in_bag, np.zeros(4, dtype=int))
    assert np.isnan(fast[0]).sum() == 2
    assert np.array_equal(np.isnan(fast), np.isnan(plain))
    assert np.nanmax(np.abs(fast - plain)) < 1e-9 * spread_of(y)


def test_sensors_of_a_group_without_rows_are_not_predicted() -> None:
    X, y = rows_of(7)
    y[:, 1] = np.nan
    fast = ridge_members(X, y, ensemble.draw(60, 3, 0), np.arange(4), empty={1}).predict(X)
    assert np.isnan(fast[:, :, 1]).all() and np.isfinite(fast[:, :, [0, 2, 3]]).all()


def test_ridge_in_single_precision_is_fitted_in_double_and_rounded_once() -> None:
    X, y = rows_of(8)
    in_bag, group = ensemble.draw(60, 3, 0), np.zeros(4, dtype=int)
    double = ridge_members(X, y, in_bag, group)
    single = ridge_members(X, y, in_bag, group, dtype=np.dtype(np.float32))
    assert single.coef.dtype == single.intercept.dtype == np.float32
    assert single.coef.tolist() == double.coef.astype(np.float32).tolist()
    assert single.predict(X.astype(np.float32)).dtype == np.float32


@pytest.mark.parametrize("numbers", [1, 1_000, ridge.TIME_NUMBERS])
def test_the_blocks_in_which_sums_are_made_change_nothing_that_matters(
    numbers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = rows_of(9)
    in_bag, group = ensemble.draw(60, 3, 0), np.array(GROUPS["two"])
    grams = WeightedGrams(in_bag, group, X.mean(axis=(0, 1)), 1.0)
    monkeypatch.setattr(ridge, "TIME_NUMBERS", numbers)
    whole = grams.solve(grams.block(X, y, slice(0, 60)))
    away = whole.predict(X) - ridge_members(X, y, in_bag, group).predict(X)
    assert np.abs(away).max() < 1e-9 * spread_of(y)


def test_only_a_plain_ridge_is_fitted_in_one_pass() -> None:
    assert strength_of("ridge") == 1.0
    assert strength_of(Ridge(2.5)) == 2.5
    others = [Ridge(fit_intercept=False), Ridge(positive=True), Ridge(alpha=0.0), Ridge(np.array([1.0, 2.0]))]
    for other in (*others, RidgeCV(), LinearRegression(), make_pipeline(StandardScaler(), Ridge()), "lstm"):
        assert strength_of(other) is None


# -- any regressor -----------------------------------------------------------------------------------------------------

EXACT = [
    LinearRegression(),
    LinearRegression(positive=True),
    Ridge(3.0),
    Ridge(2.0, fit_intercept=False),
    Ridge(1.0, positive=True),
    Lasso(0.1, tol=1e-12, max_iter=100_000),
    ElasticNet(0.1, tol=1e-12, max_iter=100_000),
    PoissonRegressor(solver="newton-cholesky", tol=1e-12),
    GammaRegressor(solver="newton-cholesky", tol=1e-12),
    TweedieRegressor(power=1.5, solver="newton-cholesky", tol=1e-12),
    QuantileRegressor(alpha=1e-3, quantile=0.7),
]
NOT_EXACT = [
    DecisionTreeRegressor(min_samples_leaf=5),
    RandomForestRegressor(),
    HistGradientBoostingRegressor(),
    GradientBoostingRegressor(),  # equal splits are chosen among by draws, and more rows draw otherwise
    GradientBoostingRegressor(loss="absolute_error"),
    SGDRegressor(),
    MLPRegressor(),
    DummyRegressor(strategy="median"),
    RidgeCV(),
    make_pipeline(StandardScaler(), Ridge()),
]


def drawn_rows(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows (40, 3), positive targets, counts with many above one."""
    random = np.random.RandomState(seed)
    X = random.standard_normal((40, 3))
    y = np.exp(0.4 * X[:, 0] + 0.2 * X[:, 1] ** 2 + 0.3 * random.standard_normal(40))
    return X, y, np.bincount(random.randint(0, 40, 40), minlength=40)


@pytest.mark.parametrize("regressor", EXACT, ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_where_counts_are_given_as_weights_the_fit_is_that_of_repeated_rows(
    regressor: Any, seed: int
) -> None:
    assert weights_are_counts(regressor)
    X, y, counts = drawn_rows(seed)
    time_index = np.arange(40)
    fitted = fit_members(
        regressor, X, y, time_index, np.zeros(40, int), counts[None], 1, 0, None, lambda _: None
    )
    random_state = {"random_state": fitted[0][0].random_state} if hasattr(regressor, "random_state") else {}
    plain = (
        clone(regressor).set_params(**random_state).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    )
    assert np.abs(fitted[0][0].predict(X) - plain.predict(X)).max() < 1e-9 * y.std()


@pytest.mark.parametrize("regressor", NOT_EXACT, ids=str)
def test_elsewhere_rows_are_repeated(regressor: Any) -> None:
    assert not weights_are_counts(regressor)


def test_a_regressor_whose_weights_are_not_counts_is_given_each_row_as_often_as_it_was_drawn() -> None:
    X, y, counts = drawn_rows(0)
    tree = DecisionTreeRegressor(min_samples_leaf=5)
    fitted = fit_members(
        tree, X, y, np.arange(40), np.zeros(40, int), counts[None], 1, 0, None, lambda _: None
    )
    plain = clone(fitted[0][0]).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    assert np.array_equal(fitted[0][0].predict(X), plain.predict(X))


def panel_members(
    regressor: Any, group: list[int], n_members: int = 3, **asked: Any
) -> tuple[SklearnMembers, np.ndarray]:
    """Members fitted to rows_of(1) as training does it, and X."""
    X, y = rows_of(1)
    time, sensor = np.nonzero(np.isfinite(y))
    in_bag = ensemble.draw(60, n_members, 0)
    groups = np.array(group)
    asked = {"seed": 0, "n_jobs": None, "progress": lambda _: None, **asked}
    fitted = fit_members(
        regressor, X[time, sensor], y[time, sensor], time, groups[sensor], in_bag, max(group) + 1, **asked
    )
    return SklearnMembers(fitted, groups, takes_missing(regressor)), X


@pytest.mark.parametrize("group", GROUPS.values(), ids=GROUPS)
def test_members_of_scikit_learn_learn_from_their_groups_rows_at_the_times_they_drew(
    group: list[int],
) -> None:
    fast, X = panel_members(LinearRegression(), group)
    _, y = rows_of(1)
    plain = plain_ridge(X, y, ensemble.draw(60, 3, 0), np.array(group), 0.0)
    assert np.abs(fast.predict(X) - plain).max() < 1e-9 * spread_of(y)


def test_a_row_with_a_hole_is_predicted_only_by_regressors_that_take_missing_values() -> None:
    for regressor in (LinearRegression(), DecisionTreeRegressor(max_depth=3)):
        members, X = panel_members(regressor, GROUPS["two"])
        holes = X.copy()
        holes[5, 2, 0] = holes[9] = np.nan
        missing = np.isnan(members.predict(holes)).all(axis=0)
        expected = np.zeros((60, 4), dtype=bool)
        if not members.keeps_missing:
            expected[5, 2] = expected[9] = True
        assert members.keeps_missing == isinstance(regressor, DecisionTreeRegressor)
        assert np.array_equal(missing, expected)
        full = ~np.isnan(holes).any(axis=2)
        assert np.array_equal(members.predict(holes)[:, full], members.predict(X)[:, full])


def test_a_group_without_rows_has_no_members_and_no_predictions() -> None:
    X, y = rows_of(1)
    y[:, 2] = np.nan
    time, sensor = np.nonzero(np.isfinite(y))
    in_bag = ensemble.draw(60, 3, 0)
    fitted = fit_members(
        LinearRegression(), X[time, sensor], y[time, sensor], time, sensor, in_bag, 4, 0, None, lambda _: None
    )
    assert [len(members) for members in fitted] == [3, 3, 0, 3]
    predictions = SklearnMembers(fitted, np.arange(4), False).predict(X)
    assert predictions.shape == (3, 60, 4)
    assert np.isnan(predictions).all(axis=(0, 1)).tolist() == [False, False, True, False]


def test_each_fitted_member_is_reported_once() -> None:
    done: list[int] = []
    panel_members(LinearRegression(), GROUPS["two"], progress=done.append)
    assert done == [1] * 6


def test_random_regressors_get_a_seed_for_each_member_wherever_it_stands() -> None:
    forest = RandomForestRegressor(n_estimators=2, random_state=0)
    nested = make_pipeline(
        StandardScaler(), MLPRegressor(hidden_layer_sizes=(2,), max_iter=1, solver="lbfgs")
    )
    for regressor, path in ((forest, "random_state"), (nested, "mlpregressor__random_state")):
        # one round is not enough for a network, and is not meant to be
        with pytest.warns() if regressor is nested else np.errstate():
            few, X = panel_members(regressor, GROUPS["two"])
            many, _ = panel_members(regressor, GROUPS["two"], n_members=5)
            other, _ = panel_members(regressor, GROUPS["two"], seed=1)
        seeds = [[member.get_params()[path] for member in members] for members in few.regressors]
        assert len(set(seeds[0])) == 3 and seeds[0] == seeds[1]
        assert [member.get_params()[path] for member in many.regressors[0]][:3] == seeds[0]
        assert not {member.get_params()[path] for member in other.regressors[0]} & set(seeds[0])
        assert np.array_equal(few.predict(X), many.predict(X)[:3])


def test_the_regressor_that_was_given_is_left_as_it_was() -> None:
    given = RandomForestRegressor(n_estimators=2)
    panel_members(given, GROUPS["shared"])
    assert given.random_state is None and not hasattr(given, "estimators_")


def test_members_are_the_same_on_any_number_of_jobs() -> None:
    regressor = RandomForestRegressor(n_estimators=3)
    one, X = panel_members(regressor, GROUPS["two"], n_jobs=1)
    with parallel_config("threading"):
        two, _ = panel_members(regressor, GROUPS["two"], n_jobs=2)
    assert np.array_equal(one.predict(X), two.predict(X))


def test_a_regressor_takes_missing_values_when_it_says_so() -> None:
    assert takes_missing(HistGradientBoostingRegressor()) and takes_missing(DecisionTreeRegressor())
    assert not takes_missing(LinearRegression())


@pytest.mark.parametrize("n_groups", [1, 3])
def test_few_rows_for_many_features_on_scales_of_their_own_are_refined(n_groups: int) -> None:
    """A Gram matrix alone is off by a hundred times what is asked of a prediction here."""
    random = np.random.RandomState(7)
    walk = np.cumsum(random.standard_normal((120, 3)), axis=0) * 8 + 500
    X = np.stack([np.roll(walk, lag, axis=0) for lag in range(60)], axis=2)[60:] * random.uniform(
        0.01, 30, 60
    )
    y = X[:, :, 0] + random.standard_normal(X.shape[:2])
    y[5, 1], X[9, 2, 3] = np.nan, np.nan
    in_bag, group = ensemble.draw(60, 4, 1), np.arange(3) % n_groups
    shift = X[0, 0] - 3000.0  # far from the mean, as a sample of a long walk may be
    grams = WeightedGrams(in_bag, group, shift, 1.0)
    sums = over_rows(grams.block, X, y)
    assert grams.is_delicate(sums)
    members, refined = grams.solve(sums), grams.fit(lambda of_block: over_rows(of_block, X, y))

    def furthest(some: RidgeMembers) -> float:
        away = 0.0
        for g in range(n_groups):
            who = np.flatnonzero(group == g)
            rows, targets = X[:, who].reshape(-1, 60), y[:, who].ravel()
            usable = ~np.isnan(targets) & ~np.isnan(rows).any(axis=1)
            for b in range(4):
                coef, intercept = naive.ridge(
                    rows[usable], targets[usable], np.repeat(in_bag[b], len(who))[usable], 1.0
                )
                plain = rows[usable] @ coef + intercept
                fast = rows[usable] @ some.coef[g, b] + some.intercept[g, b]
                away = max(away, float(np.abs(fast - plain).max()))
        return away / spread_of(y)

    assert furthest(refined) < 1e-9
    assert furthest(refined) < 0.01 * furthest(members)
