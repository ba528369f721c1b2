"""X, y, in_bag -> members: B regressors of one kind, each trained on the times that it drew.

Members answer one question, `predict(X)`: (time, sensor, feature) -> (member, time, sensor).
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

Array = np.ndarray[Any, Any]


class Members(Protocol):
    """What a detector needs to know of its members."""

    def predict(self, X: Array) -> Array:
        """(time, sensor, feature) -> (member, time, sensor)."""
        ...
