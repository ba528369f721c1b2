"""ECAD on features of one's own: the fast estimator against the plain algorithm, and scikit-learn's own checks."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils.estimator_checks import check_estimator

import naive
from ecad import TabularECAD, ensemble
from ecad.errors import FitError

NAN = math.nan
Rows = tuple[np.ndarray, np.ndarray]


def trimmed(values: np.ndarray) -> Any:
    """A callable aggregation, by member first."""
    return np.mean(np.sort(values, axis=0)[: max(1, len(values) - 1)], axis=0)


AGGREGATIONS = {"mean": "mean", "median": "median", "trimmed_mean": "trimmed_mean", "callable": trimmed}


def rows_of(seed: int, n: int = 70, n_later: int = 110, whole_numbers: bool = False) -> tuple[Rows, Rows]:
    """Training and more later rows, with unobserved y in both and a few strange ones later."""
    random = np.random.RandomState(seed)
    X = 10 + random.standard_normal((n + n_later, 3)) * [1, 5, 0.2]
    y = 100 + X @ [3, 1, -20] + 4 * random.standard_normal(n + n_later)
    y[n + 5 :: 25] += 40
    y = np.round(y / 3) if whole_numbers else y
    y[random.uniform(size=n + n_later) < 0.1] = NAN
    return (X[:n], y[:n]), (X[n:], y[n:])


def assert_as_plain(
    detector: TabularECAD,
    train: Rows,
    later: Rows,
    fit: Callable[[np.ndarray, np.ndarray], Any] | None = None,
) -> None:
    detector.fit(*train)
    report = detector.detect(*later)
    given = {"aggregation": detector.aggregation, "centre": detector.centre, "form": detector.p_value}
    plain = naive.detect_tabular(*train, detector.in_bag_, *later, alpha=detector.alpha, fit=fit, **given)
    spread = naive.scale_of(train[1][:, None])[2][0]

    def close(one: np.ndarray, other: np.ndarray, slack: float = 1e-9) -> bool:
        return bool(np.allclose(one, other, rtol=0, atol=slack * spread, equal_nan=True))

    assert close(detector.member_predictions(later[0]), plain["member_predictions"])
    assert close(detector.calibration_scores_, plain["calibration_scores"])
    assert close(report.expected, plain["centre"])
    assert close(report.scores, plain["score"])
    assert np.array_equal(report.p_values, plain["p_value"], equal_nan=True)
    assert np.array_equal(report.alarms, plain["alarm"])
    # a score ties with the bound when it is within the tolerance of it, and is no alarm then
    assert close(report.lower, plain["lower"], 2.1e-9) and close(report.upper, plain["upper"], 2.1e-9)
    # where all scores are rounding, so is the unit of the tail, and strength with it
    if np.nanmax(detector.calibration_scores_) > 1e-9 * spread:
        assert np.allclose(report.strength, plain["strength"], rtol=1e-6, atol=1e-6, equal_nan=True)


# -- the algorithm -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("aggregation", "centre", "form"),
    [
        pytest.param(aggregation, centre, form, id=f"{name}-{centre}-{form}")
        for (name, aggregation), centre, form in itertools.product(
            AGGREGATIONS.items(), ("quantile", "ensemble"), ("conformal", "paper")
        )
    ],
)
def test_verdicts_are_those_of_the_plain_algorithm(aggregation: Any, centre: str, form: str) -> None:
    for seed, n_members, alpha in ((0, 7, 0.1), (1, 3, 0.05)):
        detector = TabularECAD(
            n_members=n_members,
            aggregation=aggregation,
            centre=centre,
            p_value=form,
            alpha=alpha,
            random_state=seed,
        )
        assert_as_plain(detector, *rows_of(seed))


@pytest.mark.parametrize("centre", ["quantile", "ensemble"])
def test_repeated_readings_tie(centre: str) -> None:
    train, later = rows_of(2, whole_numbers=True)
    train[0][:], later[0][:] = np.round(train[0]), np.round(later[0])
    assert_as_plain(TabularECAD(n_members=4, centre=centre, alpha=0.1, random_state=0), train, later)


@pytest.mark.parametrize("value", [0.0, 0.1, -1e6 / 7])
def test_a_constant_y_expects_itself(value: float) -> None:
    (X, y), later = rows_of(3)
    y = np.where(np.isnan(y), NAN, value)
    later[1][::2] = value
    detector = TabularECAD(n_members=5, alpha=0.1, random_state=0)
    assert_as_plain(detector, (X, y), later)
    assert np.nanmin(detector.detect(*later).p_values[::2]) == 1.0


@pytest.mark.parametrize(
    "regressor",
    [Ridge(5.0), LinearRegression(), KNeighborsRegressor(3)],
    ids=lambda regressor: type(regressor).__name__,
)
@pytest.mark.parametrize("aggregation", ["mean", "median"])
def test_any_regressor_is_fitted_to_the_rows_that_each_member_drew(regressor: Any, aggregation: str) -> None:
    detector = TabularECAD(regressor, n_members=6, aggregation=aggregation, alpha=0.1, random_state=1)
    assert_as_plain(detector, *rows_of(4), lambda X, y: clone(regressor).fit(X, y).predict)


def test_ridge_by_name_is_ridge_of_strength_one() -> None:
    train, later = rows_of(5)
    one, other = (TabularECAD(r, random_state=0).fit(*train).detect(*later) for r in ("ridge", Ridge(1.0)))
    assert np.array_equal(one.p_values, other.p_values, equal_nan=True)


def test_a_regressor_that_takes_missing_values_is_given_them() -> None:
    train, later = rows_of(6)
    train[0][::4, 1], later[0][::3, 0] = NAN, NAN
    detector = TabularECAD(
        DecisionTreeRegressor(max_depth=2, random_state=0), n_members=4, alpha=0.1, random_state=0
    )
    report = detector.fit(*train).detect(*later)
    assert np.isfinite(report.p_values[np.isfinite(later[1])]).all()
    with pytest.raises(ValueError, match="NaN"):
        TabularECAD(random_state=0).fit(*train)


def test_draws_are_of_single_rows_whose_y_was_observed() -> None:
    train, _ = rows_of(7)
    detector = TabularECAD(n_members=8, random_state=9, alpha=0.1).fit(*train)
    n = int(np.isfinite(train[1]).sum())
    assert np.array_equal(detector.in_bag_, ensemble.draw(n, 8, 9))
    assert detector.calibration_scores_.shape == (n,)
    assert np.array_equal(np.isnan(detector.calibration_scores_), detector.in_bag_.min(axis=0) > 0)


# -- what is promised about verdicts -----------------------------------------------------------------------------------


def fitted(**given: Any) -> tuple[TabularECAD, Rows]:
    train, later = rows_of(8)
    return TabularECAD(**{"random_state": 0, "alpha": 0.1, **given}).fit(*train), later


def test_an_unobserved_y_has_no_verdict_and_takes_a_place() -> None:
    detector, later = fitted()
    report = detector.detect(*later)
    missing = np.isnan(later[1])
    for column in (report.p_values, report.scores, report.strength):
        assert np.array_equal(np.isnan(column), missing)
    assert not report.alarms[missing].any()
    assert set(report.status[missing]) == {"missing"} and set(report.status[~missing]) == {"tested"}
    assert np.isfinite(report.expected).all() and np.isfinite(report.upper).all()


def test_an_alarm_is_exactly_a_p_value_of_at_most_alpha_and_a_reading_outside_its_bounds() -> None:
    detector, later = fitted()
    report = detector.detect(*later)
    assert np.array_equal(report.alarms, report.p_values <= 0.1)
    assert np.array_equal(report.alarms, (later[1] < report.lower) | (later[1] > report.upper))
    assert report.alarms.any() and not report.alarms.all()


@pytest.mark.parametrize("centre", ["quantile", "ensemble"])
def test_what_is_predicted_is_what_readings_are_compared_with(centre: str) -> None:
    detector, later = fitted(centre=centre)
    assert detector.predict(later[0]) == pytest.approx(detector.detect(*later).expected, abs=1e-9)


def test_detecting_changes_nothing() -> None:
    detector, later = fitted()
    one, two = detector.detect(*later), detector.detect(*later)
    for name in ("p_values", "scores", "expected", "lower", "upper", "strength", "alarms", "status_codes"):
        assert np.array_equal(getattr(one, name), getattr(two, name), equal_nan=True)


def test_a_row_is_judged_before_it_is_learned() -> None:
    detector, later = fitted()
    whole, part = detector.detect(*later), detector.detect(later[0][:30], later[1][:30])
    assert np.array_equal(whole.p_values[:30], part.p_values, equal_nan=True)


def test_the_same_seed_gives_the_same_members_on_any_number_of_jobs() -> None:
    train, later = rows_of(9)
    tree = DecisionTreeRegressor(max_features=1)
    reports = [
        TabularECAD(tree, n_members=3, random_state=4, n_jobs=n_jobs).fit(*train).detect(*later)
        for n_jobs in (None, 1)
    ]
    assert np.array_equal(reports[0].scores, reports[1].scores, equal_nan=True)
    other = TabularECAD(tree, n_members=3, random_state=5).fit(*train).detect(*later)
    assert not np.array_equal(reports[0].scores, other.scores, equal_nan=True)


def test_a_report_of_rows_is_a_frame_of_as_many_rows() -> None:
    detector, later = fitted()
    frame = detector.detect(*later).to_frame()
    assert len(frame) == len(later[1])
    assert {"value", "expected", "lower", "upper", "score", "p_value", "strength", "alarm", "status"} == set(
        frame.columns
    )


# -- what is refused ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("alpha", "fewest"), [(0.5, 2), (0.1, 9), (0.05, 19), (0.01, 99)])
def test_too_few_rows_for_alpha_are_refused(alpha: float, fewest: int) -> None:
    random = np.random.RandomState(0)
    X, y = random.standard_normal((fewest, 2)), random.standard_normal(fewest)
    TabularECAD(alpha=alpha, random_state=0).fit(X, y)
    for n_observed in (0, fewest - 1):
        y[n_observed:] = NAN
        with pytest.raises(FitError, match=f"alpha={alpha:g}.* {max(2, fewest)} rows"):
            TabularECAD(alpha=alpha, random_state=0).fit(X, y)
        y = random.standard_normal(fewest)


def test_rows_without_their_y_are_refused() -> None:
    detector, later = fitted()
    for call in (detector.detect, clone(detector).fit):
        with pytest.raises(FitError, match="one y for each row"):
            call(later[0], later[1][:-1])
        with pytest.raises(ValueError, match="y"):
            call(later[0], None)


def test_before_it_is_fitted_nothing_is_judged() -> None:
    _, later = fitted()
    for call in (TabularECAD().predict, TabularECAD().member_predictions):
        with pytest.raises(NotFittedError):
            call(later[0])
    with pytest.raises(NotFittedError):
        TabularECAD().detect(*later)


def test_where_every_member_saw_every_row_all_is_warming_up() -> None:
    random = np.random.RandomState(0)
    X, y = random.standard_normal((2, 1)), random.standard_normal(2)
    seed = next(s for s in range(1000) if (ensemble.draw(2, 2, s) > 0).all())
    for aggregation in AGGREGATIONS.values():
        for centre in ("quantile", "ensemble"):
            detector = TabularECAD(
                n_members=2, aggregation=aggregation, centre=centre, alpha=0.5, random_state=seed
            )
            report = detector.fit(X, y).detect(X, y)
            assert np.isnan(detector.calibration_scores_).all()
            assert np.isnan(report.p_values[0]) and not report.alarms[0]


# -- scikit-learn's checks ---------------------------------------------------------------------------------------------

EXPECTED_FAILURES: dict[str, str] = {}  # check -> why it cannot pass
NOT_RUN = {
    "check_array_api_input": "needs SCIPY_ARRAY_API in the environment, and we promise NumPy arrays only"
}


@pytest.mark.parametrize(
    "given",
    [
        {"centre": "quantile"},
        {"centre": "ensemble", "aggregation": "median"},
        {"regressor": LinearRegression(), "aggregation": "trimmed_mean", "p_value": "paper"},
        {"regressor": DecisionTreeRegressor(max_depth=3)},
    ],
    ids=str,
)
def test_scikit_learn_finds_its_grammar_kept(given: dict[str, Any]) -> None:
    # its data have as few as ten rows: alpha must be one that so few can reach
    detector = TabularECAD(n_members=5, alpha=0.5, random_state=0, **given)
    results = check_estimator(detector, expected_failed_checks=EXPECTED_FAILURES, on_skip=None, on_fail=None)
    # "xfail" is scikit-learn's word for a check in EXPECTED_FAILURES, each with its reason there
    odd = {r["check_name"]: r["exception"] for r in results if r["status"] not in ("passed", "xfail")}
    assert {name: error for name, error in odd.items() if name not in NOT_RUN} == {}
    assert len(results) > 40


def test_rows_that_every_member_saw_are_counted() -> None:
    random = np.random.default_rng(0)
    X = random.normal(size=(300, 2))
    fitted = TabularECAD(n_members=2, random_state=0).fit(X, X[:, 0] + random.normal(size=300))
    assert fitted.n_never_left_out_ == np.isnan(fitted.calibration_scores_).sum() > 0
