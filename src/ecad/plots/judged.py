"""a report, truth, holidays -> Judged and Known: what is drawn, and what is known besides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..episodes import Episode
from ..errors import SettingError
from ..panel import Panel

Floats = NDArray[np.float64]
Booleans = NDArray[np.bool_]


class Judged(Protocol):
    """What is drawn of a report."""

    @property
    def times(self) -> NDArray[Any]: ...
    @property
    def sensors(self) -> Sequence[str]: ...
    @property
    def values(self) -> Floats: ...
    @property
    def p_values(self) -> Floats: ...
    @property
    def expected(self) -> Floats: ...
    @property
    def lower(self) -> Floats: ...
    @property
    def upper(self) -> Floats: ...
    @property
    def strength(self) -> Floats: ...
    @property
    def alarms(self) -> Booleans: ...
    @property
    def alpha(self) -> float: ...
    @property
    def panel(self) -> Panel: ...
    @property
    def neighbours(self) -> NDArray[np.int64]: ...
    @property
    def episodes(self) -> list[Episode]: ...


@dataclass(frozen=True, eq=False)
class Known:
    """What is known besides the report: anomalies (time, sensor), if at all, and unusual times."""

    anomalies: Booleans | None
    holidays: Booleans


def checked(report: Judged, truth: ArrayLike | None, holidays: ArrayLike | None) -> Known:
    """What is known besides the report, refused where its shape is not the report's; a hole is no anomaly."""
    true = None if truth is None else np.asarray(truth, dtype=bool)
    if true is not None and true.shape != report.values.shape:
        raise SettingError(
            f"truth has shape {true.shape}, the report {report.values.shape}: give one truth for each reading judged"
        )
    free = np.zeros(len(report.times), dtype=bool) if holidays is None else np.asarray(holidays, dtype=bool)
    if free.shape != report.times.shape:
        raise SettingError(
            f"holidays has shape {free.shape}, the report {len(report.times)} times: give one value for each time"
        )
    return Known(None if true is None else true & ~np.isnan(report.values), free)


def any_known(known: Known) -> bool:
    """Whether there is a single known anomaly to show."""
    return known.anomalies is not None and bool(known.anomalies.any())


def was_tested(report: Judged) -> Booleans:
    """(time, sensor), true where a reading has a p-value or an alarm."""
    return np.isfinite(report.p_values) | report.alarms


def shares(report: Judged) -> tuple[Floats, NDArray[np.int64]]:
    """Of each sensor, the share of its tested readings that were alarms, and how many were tested."""
    n_tested = np.count_nonzero(was_tested(report), axis=0)
    return np.count_nonzero(report.alarms, axis=0) / np.maximum(n_tested, 1), n_tested


def has_clock(report: Judged) -> bool:
    """Whether times are dates; otherwise they are counted."""
    return bool(np.issubdtype(report.times.dtype, np.datetime64))
