"""what went wrong -> one sentence: every error of ECAD, drawn as a tree.

EcadError (ValueError)
├── PanelError       the data cannot become a panel, or does not continue the fitted one
├── SettingError     a parameter has a value that cannot work
├── FitError         the training data cannot support what was asked of it
├── NotFitted        something was asked that needs a fit first (also scikit-learn's NotFittedError)
├── ModelFileError   a model file is truncated, altered, newer, or no model file
└── MissingExtra     an optional dependency is needed (also an ImportError)
EcadWarning (UserWarning)  a repair that was made and counted
"""

from __future__ import annotations

import sys
import warnings

from sklearn.exceptions import NotFittedError


class EcadError(ValueError):
    """Base of every error that ECAD raises on purpose."""


class PanelError(EcadError):
    """The readings cannot become a panel, or do not continue the one that was fitted."""


class SettingError(EcadError):
    """A parameter was given a value that cannot work."""


class FitError(EcadError):
    """The training data cannot support what was asked of it."""


class NotFitted(EcadError, NotFittedError):
    """Something was asked of a detector that has not been fitted."""

    def __init__(self, kind: str) -> None:
        super().__init__(f"This {kind} has not been fitted, and what is asked needs that: call fit first.")


class ModelFileError(EcadError):
    """A model file is truncated, altered, from a newer version, or not a model file."""


class MissingExtra(EcadError, ImportError):
    """An optional dependency is not installed."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs {package}, which is not installed: pip install 'ecad[{extra}]'")


class EcadWarning(UserWarning):
    """A repair was made: it is stated here and counted in the result."""


def warn(sentence: str) -> None:
    """An EcadWarning that points at the caller's own line, however deep in this package the reason was found."""
    package = __name__.partition(".")[0]
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == package:
        frame, level = frame.f_back, level + 1
    warnings.warn(sentence, EcadWarning, stacklevel=level)
