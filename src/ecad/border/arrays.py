"""numpy arrays -> the words for them: which kind of array the rooms of the border hand on."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]
Edges = tuple[IntArray, IntArray, FloatArray]
Step = np.timedelta64 | int
