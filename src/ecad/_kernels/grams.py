"""rows -> the Gram matrix of each time."""

from __future__ import annotations

from typing import Any

import numpy as np

from .compiled import jit_sums

Array = np.ndarray[Any, Any]


@jit_sums
def time_grams(X: Array, y: Array, shift: Array, columns: Array, out: Array) -> None:
    """out (T, p (p + 1) / 2): for each time the upper triangle of the sum of z z', z = (x - shift, 1, y), p = d + 2.

    Summed are the rows of these columns of X (T, K, d) and y (T, K) that have no NaN.
    """
    T, _, d = X.shape
    p = d + 2
    Z = np.empty((p, columns.shape[0]))
    for t in range(T):
        n = 0
        for k in columns:
            usable = y[t, k] == y[t, k]
            for a in range(d):
                z = X[t, k, a] - shift[a]
                usable &= z == z
                Z[a, n] = z
            Z[d, n] = 1.0
            Z[d + 1, n] = y[t, k]
            n += usable
        c = 0
        for a in range(p):
            u = Z[a, :n]
            for b in range(a, p):
                v = Z[b, :n]
                s = 0.0
                for i in range(n):
                    s += u[i] * v[i]
                out[t, c] = s
                c += 1
