"""X, y -> p-values: the single-subscript algorithm, on features of one's own."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import get_tags
from sklearn.utils.validation import check_array, column_or_1d, validate_data

from . import _checks, _threads, decisions, ensemble, pvalues, scores, seasonality, settings
from .errors import FitError
from .learners import Members
from .learners.ridge import WeightedGrams, strength_of
from .learners.sklearn import SklearnMembers, fit_members
from .report import MISSING, NO_FEATURES, RowReport

Array = np.ndarray[Any, Any]


class TabularECAD(RegressorMixin, BaseEstimator):
    """ECAD on rows (X, y) in the order of time: iid draws, a window of the last n scores, everything absorbed.

    A regressor in scikit-learn's grammar: `predict(X)` is the expected value, `detect(X, y)` gives p-values.

    Right when the rows are exchangeable, or nearly so once X is known. Not right when neighbouring rows' errors are
    correlated and nothing in X says so: draws of single rows then leak, and p-values come out too small.

    Parameters
    ----------
    regressor : "ridge" or a scikit-learn regressor
    n_members : int
    aggregation : "mean", "median", "trimmed_mean" or callable
    centre : "quantile" (the paper) or "ensemble"
    p_value : "conformal" or "paper"
    alpha : float
    random_state : int or None
    n_jobs : int or None

    Attributes
    ----------
    in_bag_ : (B, n) array, n = rows whose y was observed
    calibration_scores_ : (n,) array of leave-one-out scores
    n_never_left_out_ : rows that every member saw, and that therefore have none

    Examples
    --------
    >>> import numpy as np
    >>> from ecad import TabularECAD
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(600, 3))
    >>> y = X @ [1.0, 2.0, 3.0] + rng.normal(size=600)
    >>> y[550] += 9
    >>> report = TabularECAD(random_state=0, alpha=0.01).fit(X[:500], y[:500]).detect(X[500:], y[500:])
    >>> bool(report.alarms[50])
    True
    """

    def __init__(
        self,
        regressor: Any = "ridge",
        n_members: int = 25,
        aggregation: Any = "mean",
        centre: str = "quantile",
        p_value: str = "conformal",
        alpha: float = 0.05,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.regressor = regressor
        self.n_members = n_members
        self.aggregation = aggregation
        self.centre = centre
        self.p_value = p_value
        self.alpha = alpha
        self.random_state = random_state
        self.n_jobs = n_jobs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = self._takes_missing()
        return tags

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from rows X (n, d) and y (n,); rows whose y is NaN are left out."""
        self._check()
        X, y = self._rows(X, y, reset=True)
        observed = ~np.isnan(y)
        X, y = X[observed], y[observed]
        reference = self._reference()
        n = len(y)
        if n < max(2, reference.need) or reference.smallest_p(np.arange(n), np.ones(n)) > self.alpha:
            raise FitError(
                f"alpha={self.alpha:g} cannot be reached with n_samples={n}: at least {max(2, reference.need)} rows "
                "with an observed y are needed, 1 sample is never enough. Give more rows or a larger alpha."
            )
        seed = settings.seed_of(self.random_state)
        in_bag = ensemble.draw(n, self.n_members, seed)
        oob = ensemble.out_of_bag(in_bag, self.aggregation)
        with _threads.one_blas_thread():
            members = self._fit_members(X, y, in_bag, seed)
            predictions = members.predict(X[:, None, :])
            left_out = ensemble.leave_one_out(predictions, oob, slice(0, n))[:, 0]
        self._spread = float(seasonality.scale_of(y[:, None])[2][0])
        self.in_bag_ = in_bag
        self.calibration_scores_ = scores.residual_scores(y, left_out, "absolute")
        self.seed_ = seed
        self._members = members
        self._oob = oob
        self.n_rows_ = n
        return self

    @property
    def n_never_left_out_(self) -> int:
        """Rows that every member saw."""
        _checks.fitted(self, "in_bag_")
        return int(self.in_bag_.shape[1] - self._oob.n_predictors)

    def member_predictions(self, X: Any) -> Array:
        """What each member predicts: (B, rows)."""
        _checks.fitted(self, "in_bag_")
        X = self._features(X)
        with _threads.one_blas_thread():
            return self._members.predict(X[:, None, :])[:, :, 0]

    def predict(self, X: Any) -> Array:
        """The expected value of each row: what its reading is compared with."""
        _checks.fitted(self, "in_bag_")
        return self._expected(self._features(X))

    def detect(self, X: Any, y: Any) -> RowReport:
        """Judge rows in their order, each before it is learned; the estimator does not change."""
        _checks.fitted(self, "in_bag_")
        X, y = self._rows(X, y, reset=False)
        expected = self._expected(X)
        score = scores.residual_scores(y, expected, "absolute")
        reference = self._reference()
        n = self.n_rows_
        window = pvalues.open_window(
            self.calibration_scores_[:, None],
            np.zeros((n, 1), np.uint8),
            np.arange(n),
            n,
            reference,
            None,
            None,
        )
        ranks = pvalues.rank(
            score[:, None], np.zeros((len(y), 1), np.uint8), window, reference,
            np.array([1e-9 * self._spread]), np.array([self._spread]), np.zeros((1, 1), np.int64),
        )  # fmt: skip
        p, strength, _, reach, code = (column[:, 0] for column in ranks)
        code = np.where(np.isnan(y), MISSING, np.where(np.isnan(score), NO_FEATURES, code)).astype(np.uint8)
        return RowReport(
            y, self.alpha, p_values=p, scores=score, expected=expected, lower=expected - reach, upper=expected + reach,
            strength=strength, alarms=decisions.fixed(p, self.alpha), status_codes=code,
        )  # fmt: skip

    # -- private -------------------------------------------------------------------------------------------------------

    def _check(self) -> None:
        settings.checked(
            regressor=self.regressor, n_members=self.n_members, aggregation=self.aggregation, centre=self.centre,
            p_value=self.p_value, alpha=self.alpha, random_state=self.random_state, n_jobs=self.n_jobs,
        )  # fmt: skip
        if self.regressor == "lstm":
            _checks.one_of("regressor", self.regressor, ("ridge",), or_a="a scikit-learn regressor")

    def _reference(self) -> pvalues.Reference:
        return pvalues.Reference(classes=False, absorb="all", form=self.p_value, alpha=self.alpha)

    def _takes_missing(self) -> bool:
        return not isinstance(self.regressor, str) and bool(get_tags(self.regressor).input_tags.allow_nan)

    def _finite(self) -> bool | str:
        return "allow-nan" if self._takes_missing() else True

    def _rows(self, X: Any, y: Any, *, reset: bool) -> tuple[Array, Array]:
        if y is None:
            raise ValueError("This TabularECAD estimator requires y to be passed, but the target y is None.")
        X = validate_data(self, X, reset=reset, dtype=np.float64, ensure_all_finite=self._finite())
        y = column_or_1d(y, warn=True)
        y = check_array(y, ensure_2d=False, dtype=np.float64, ensure_all_finite="allow-nan", input_name="y")
        if len(X) != len(y):
            raise FitError(f"X has {len(X)} rows and y has {len(y)}: give one y for each row of X.")
        return X, y

    def _fit_members(self, X: Array, y: Array, in_bag: Array, seed: int) -> Members:
        strength = strength_of(self.regressor)
        group = np.zeros(1, dtype=np.int64)
        if strength is not None:
            rows = (np.ascontiguousarray(X[:, None, :]), y[:, None].copy(), slice(0, len(y)))
            grams = WeightedGrams(in_bag, group, X.mean(axis=0), strength)
            return grams.fit(lambda of_block: of_block(*rows))
        times = np.arange(len(y))
        fitted = fit_members(
            self.regressor, X, y, times, np.zeros_like(times), in_bag, 1, seed, self.n_jobs, lambda _: None
        )
        return SklearnMembers(fitted, group, self._takes_missing())

    def _features(self, X: Any) -> Array:
        return np.asarray(
            validate_data(self, X, reset=False, dtype=np.float64, ensure_all_finite=self._finite())
        )

    def _expected(self, X: Array) -> Array:
        with _threads.one_blas_thread():
            predictions = self._members.predict(X[:, None, :])[:, :, 0]
            if self.centre == "ensemble":
                return ensemble.aggregate(predictions, self.aggregation)
            rank = ensemble.quantile_rank(self.alpha, self._oob.n_predictors)
            return ensemble.QuantileCentre(self._oob, rank).of(predictions, _threads.available(self.n_jobs))
