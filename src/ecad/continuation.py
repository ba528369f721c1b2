"""a panel, the fitted one -> values and times that go on right after it, gaps as rows of missing readings."""

from __future__ import annotations

from typing import Any

import numpy as np

from .errors import PanelError, warn
from .panel import MOST_CELLS, REPAIRS, Panel, reorder, show_time, step_text, step_ticks

Array = np.ndarray[Any, Any]


def continue_after(later: Panel, fitted: Panel) -> tuple[Array, Array]:
    """Values and times from right after `fitted` on, in its order of sensors; a gap becomes rows of NaN."""
    _same_step(later, fitted)
    step = step_ticks(later.step)
    last = int(np.asarray(fitted.last_time).astype(np.int64))
    first = int(later.times[0].astype(np.int64))
    begins, ended = (show_time(time, later.time_zone) for time in (later.times[0], fitted.last_time))
    if first <= last:
        raise PanelError(
            f"The panel begins at {begins}, but the fitted data goes to {ended}; give only later times, such as "
            "panel.between(...)."
        )
    gap, off = divmod(first - last, step)
    if off:
        raise PanelError(
            f"The panel begins at {begins}, which is no whole number of steps ({step_text(later.step)}) after {ended}; "
            "put it on the grid of the fitted data."
        )
    n_times = gap - 1 + later.n_times
    if n_times * len(fitted.sensors) > MOST_CELLS and gap > later.n_times:
        raise PanelError(
            f"From {ended} to {begins} {gap - 1:,} ticks are missing, too many to fill with missing readings; fit "
            "again on later data."
        )
    values, absent = reorder(later.values, later.sensors, fitted.sensors, "The panel")
    if absent:
        warn(f"{REPAIRS['absent sensors']}: {absent}.")
    times = later.times
    if gap > 1:
        values = np.concatenate([np.full((gap - 1, values.shape[1]), np.nan), values])
        times = (last + step * np.arange(1, n_times + 1)).astype(later.times.dtype)
    return values, times


def _same_step(later: Panel, fitted: Panel) -> None:
    clock = isinstance(fitted.step, np.timedelta64)
    if clock != later.has_clock:
        kinds = ("a clock", "tick numbers")
        raise PanelError(
            f"The fitted data has {kinds[not clock]} and the panel has {kinds[not later.has_clock]}; "
            f"give both the same kind of times."
        )
    if (later.time_zone is None) != (fitted.time_zone is None):
        raise PanelError(
            f"The fitted data has {_zone_text(fitted)} and the panel has {_zone_text(later)}; read the one without a "
            "zone with time_zone='UTC', or whatever zone its clock is in."
        )
    if step_ticks(later.step) != step_ticks(fitted.step):
        raise PanelError(
            f"The panel has one tick each {step_text(later.step)} and the fitted data one each "
            f"{step_text(fitted.step)}; resample it, or state step= where it is read."
        )


def _zone_text(panel: Panel) -> str:
    return "a clock without a zone" if panel.time_zone is None else f"the time zone {panel.time_zone}"
