"""a number of cores -> no more threads than that: our own, and BLAS on one in each."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import numpy as np


def available(n_jobs: int | None) -> int:
    """How many threads `n_jobs` asks for; None and -1 are all cores that this process may use."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)
    if n_jobs is None:
        return cores
    return max(1, cores + 1 + n_jobs) if n_jobs < 0 else n_jobs


@cache
def _libraries() -> tuple[Any, ...]:
    from threadpoolctl import ThreadpoolController

    # looking the libraries up takes milliseconds, setting their number of threads one: a tick cannot wait for it
    return tuple(ThreadpoolController().select(user_api="blas").lib_controllers)


class Room(threading.local):
    """Arrays in which a thread works block after block: the system takes longer to hand out new memory than to fill it.

    What `array` gives is the thread's own until the thread asks for the same name again.
    """

    def __init__(self) -> None:
        self._arrays: dict[str, np.ndarray[Any, Any]] = {}

    def array(self, name: str, shape: tuple[int, ...], dtype: Any = np.float64) -> np.ndarray[Any, Any]:
        """An array whose numbers are still to be written."""
        size = math.prod(shape)
        held = self._arrays.get(name)
        if held is None or held.size < size or held.dtype != dtype:
            held = self._arrays[name] = np.empty(size, dtype=dtype)
        return held[:size].reshape(shape)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """BLAS on one thread: small products, and products inside threads of our own, only lose by more."""
    before = [library.get_num_threads() for library in _libraries()]
    try:
        for library in _libraries():
            library.set_num_threads(1)
        yield
    finally:
        for library, n in zip(_libraries(), before, strict=True):
            library.set_num_threads(n)
