"""scikit-learn's estimators <-> bytes: skops takes them apart and puts them together from a fixed list of types."""

from __future__ import annotations

import warnings

import sklearn
from sklearn.base import BaseEstimator
from sklearn.exceptions import InconsistentVersionWarning

from ..errors import ModelFileError, warn
from .words import first_line, named, release

TRUSTED = (
    "numpy.dtype",
    "sklearn._loss.loss.HalfTweedieLoss",
    "sklearn._loss.loss.HalfTweedieLossIdentity",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.impute._iterative.IterativeImputer",
    "sklearn.impute._iterative._ImputerTriplet",
    "sklearn.metrics._dist_metrics.EuclideanDistance64",
    "sklearn.neighbors._ball_tree.BallTree",
    "sklearn.neighbors._kd_tree.KDTree",
    "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
    "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
    "sklearn.tree._tree.Tree",
)
"""Types of estimators' insides, beside scikit-learn's public estimators and what skops itself trusts."""


def estimator_bytes(estimator: BaseEstimator, where: str) -> bytes:
    """What skops writes, when nothing in it is of a type that is not trusted."""
    import skops.io

    try:
        content = skops.io.dumps(estimator)
        strange = sorted(set(skops.io.get_untrusted_types(data=content)) - set(TRUSTED))
    except Exception as error:  # skops has no error of its own
        said = first_line(error)
        raise ModelFileError(f"{where} is a {named(estimator)}, which skops cannot write: {said}.") from error
    if strange:
        raise ModelFileError(
            f"{where} is or holds a {strange[0]}, which a model file cannot hold: it takes scikit-learn's own "
            "estimators, and nothing inside them that is not on its list of trusted types."
        )
    return content


def estimator_of(content: bytes) -> BaseEstimator:
    """The estimator that was written."""
    import skops.io

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InconsistentVersionWarning)  # said once for the whole file
        estimator = skops.io.loads(content, trusted=TRUSTED)
    if not isinstance(estimator, BaseEstimator):
        raise TypeError(f"a {named(estimator)} stands where an estimator is needed")
    return estimator


def tell_other_version(then: str, name: str) -> None:
    """Warn where another release of scikit-learn wrote the estimators."""
    if release(then)[:2] != release(sklearn.__version__)[:2]:
        warn(
            f"{name} holds estimators of scikit-learn {then}, and this is {sklearn.__version__}, which promises "
            "nothing for them: fit again, or install that version."
        )
