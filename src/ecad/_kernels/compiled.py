"""plain function -> compiled function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


def jit(function: Kernel) -> Kernel:
    """Compiled on first use and kept on disk; the type stays that of the plain function."""
    compiled: Any = numba.njit(cache=True, nogil=True, error_model="numpy")(function)
    return cast(Kernel, compiled)


def jit_sums(function: Kernel) -> Kernel:
    """The same, and sums may be made in another order than written: several of their terms at once."""
    compiled: Any = numba.njit(
        cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "nsz", "contract"}
    )(function)
    return cast(Kernel, compiled)
