"""a report -> what is shown of it in detail: which sensors, and which days."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..errors import SettingError
from .judged import Floats, Judged, Known, any_known

_WINDOW = 240  # ticks shown in detail: ten days of hours


def chosen(report: Judged, sensors: Sequence[str] | None, known: Known) -> list[int]:
    """The columns of the sensors to show: those that were named, or else the busiest."""
    if sensors is None:
        return _busiest(report, known)
    column = {name: k for k, name in enumerate(report.sensors)}
    for name in sensors:
        if name not in column:
            raise SettingError(f"sensors has {name!r}; the report's sensors are {_few(report.sensors)}")
    if not len(sensors):
        raise SettingError("sensors is empty: name at least one sensor to draw")
    return [column[name] for name in sensors]


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")


def _busiest(report: Judged, known: Known) -> list[int]:
    """The sensor with the busiest window, and the next that is not its neighbour: two stories, not one."""
    score = np.array([_activity(report, k, known).max() for k in range(len(report.sensors))])
    order = np.argsort(-score, kind="stable").tolist()
    first = order[0]
    near = {first, *report.neighbours[first].tolist()}
    second = next((k for k in order if k not in near), next(iter(order[1:]), None))
    return [first] if second is None else [first, second]


def _weight(report: Judged, sensor: int, known: Known) -> Floats:
    """How much there is to see at each tick: known anomalies, or else alarms by their strength.

    Anomalies count whether they were found or not: a page that picked its successes would flatter the detector. The
    strength is capped, so that one wild reading isn't everything.
    """
    if known.anomalies is not None and any_known(known):
        return known.anomalies[:, sensor].astype(np.float64)
    strength = np.where(report.alarms[:, sensor], np.nan_to_num(report.strength[:, sensor]), 0.0)
    return np.asarray(np.minimum(strength, -3.0 * np.log(report.alpha)))


def _activity(report: Judged, sensor: int, known: Known) -> Floats:
    """For each start of a window, how much there is to see in it."""
    weight = _weight(report, sensor, known)
    total = np.concatenate([[0.0], np.cumsum(weight)])
    width = min(_WINDOW, len(weight))
    return np.asarray(total[width:] - total[:-width])


def window(report: Judged, sensor: int, known: Known) -> slice:
    """The busiest window, what there is to see in the middle; of what lasts longer than that, the beginning."""
    activity = _activity(report, sensor, known)
    best = np.flatnonzero(activity >= activity.max() - 1e-9)
    start = int(best[len(best) // 2]) if activity.max() > 0 else len(activity) - 1
    quiet_before = np.flatnonzero(_weight(report, sensor, known)[: start + 1] == 0)
    begin = int(quiet_before[-1]) + 1 if len(quiet_before) else 0
    if begin < start:
        start = max(begin - _WINDOW // 4, 0)
    return slice(start, start + min(_WINDOW, len(report.times)))
