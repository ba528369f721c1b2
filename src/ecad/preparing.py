"""training panel -> Prepared: usual levels, neighbourhoods, filled readings, and the features that can be made of them.

    readings -> usual levels -> filled -> features, targets

All that is learned before there are members. Features are made block by block of time, and forgotten.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import _kernels, _threads, ensemble, features, imputation, neighbourhood, seasonality
from .errors import FitError, SettingError, warn
from .judging import Ticks, rows
from .panel import Panel

Array = np.ndarray[Any, Any]

BLOCK_NUMBERS = 1 << 18  # features that stand in memory at once, per thread
SEASONAL_LAG_SHARE = 8  # a seasonal lag costs that many first ticks: at most an eighth of training
UNCLOCKED_DAY = 24  # ticks that stand for a day where the panel has no clock


@dataclass(frozen=True, eq=False)
class Prepared:
    """A training panel ready to be learned from: what several stages need."""

    plan: Any
    panel: Panel
    layout: features.Layout
    usual: seasonality.Usual
    spread: Array
    fitted: Array
    order: Array
    filling: imputation.Filling
    filled: Array
    readings: Array  # filled, in units of features
    patience: int | None
    silent: Array
    threads: int

    def blocks(self, ticks: Array, n_groups: int = 1) -> list[slice]:
        """Slices of the training `ticks` whose features fit into a block; many groups need longer ones."""
        numbers = BLOCK_NUMBERS * min(n_groups, 16)
        size = max(1, numbers // max(1, self.panel.n_sensors * self.layout.n_features))
        return [slice(a, min(a + size, len(ticks))) for a in range(0, len(ticks), size)]

    @property
    def dtype(self) -> str:
        """Precision of the features."""
        return str(self.plan.dtype)

    def design(self, ticks: Array, room: _threads.Room | None = None) -> Array:
        """Features (tick, sensor, feature) of ascending ticks; those in a room are there until the next are made."""
        span = slice(int(ticks[0]), int(ticks[-1]) + 1)
        shape = (span.stop - span.start, self.panel.n_sensors, self.layout.n_features)
        out = None if room is None else room.array("features", shape, self.dtype)
        seconds = self.panel.week_seconds
        week_seconds = None if seconds is None else seconds[span]
        level, spread = self.usual.levels(np.arange(span.start, span.stop), week_seconds)
        between = Ticks(
            self.panel.values[span], self.filled[span], level, spread, self.silent[span], week_seconds
        )
        X, _ = rows(self, between, self.readings, span.start, out)
        return X if len(X) == len(ticks) else np.ascontiguousarray(X[ticks - span.start])


def prepare(plan: Any, panel: Panel, seed: int) -> Prepared:
    """Learn all that does not need members."""
    values = panel.values
    centre, scale, spread = seasonality.scale_of(values)
    fitted: Array = np.asarray(~np.isnan(values).all(axis=0))
    _tell_odd_sensors(panel, fitted)
    usual = seasonality.Usual(centre, scale, _season(plan, panel, centre, scale), plan.scale == "sensor")
    order = _order(plan, panel, fitted)
    layout = _layout(plan, panel, usual.season, int(fitted.sum()))
    level = usual.levels(np.arange(panel.n_times), panel.week_seconds)[0]
    filling, filled = _fill(plan, values, level, scale, order, seed)
    patience = _patience(plan, panel)
    silent = np.zeros(values.shape, dtype=bool)
    if patience is not None:
        silent = features.silence(~np.isnan(values), np.full(len(centre), -1), 0, patience)
    return Prepared(
        plan=plan, panel=panel, layout=layout, usual=usual, spread=spread, fitted=fitted, order=order,
        filling=filling, filled=filled, readings=usual.measure(filled, level), patience=patience, silent=silent,
        threads=_threads.available(plan.n_jobs),
    )  # fmt: skip


def _tell_odd_sensors(panel: Panel, fitted: Array) -> None:
    if not fitted.any():
        raise FitError(f"None of the {panel.n_sensors} sensors has a reading in the training data.")
    dead = [panel.sensors[k] for k in np.flatnonzero(~fitted)]
    if dead:
        warn(
            f"{_named(dead)} no reading in the training data: no neighbour of others, and no verdicts of its own "
            "until it is fitted again."
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # an all-NaN sensor is not constant
        constant = np.nanmax(panel.values, axis=0) == np.nanmin(panel.values, axis=0)
    still = [panel.sensors[k] for k in np.flatnonzero(constant & fitted)]
    if still:
        warn(
            f"{_named(still)} the same value throughout the training data: any other value will be an alarm."
        )
    if lonely := _far_and_often(panel.values):
        k, value, n = max(lonely, key=lambda found: found[2])
        others = f" (and {len(lonely) - 1} others have such a value)" if len(lonely) > 1 else ""
        warn(
            f"Sensor {panel.sensors[k]!r} reads {value:g} {n:,} times in training, and nothing near it{others}: "
            f"if that means missing, say missing_values={value:g} where the data is read."
        )


def _far_and_often(values: Array) -> list[tuple[int, float, int]]:
    """(sensor, value, times) of lowest or highest readings that come again, far from all others, as -9999 does."""
    found = []
    for edge in (np.fmin.reduce(values, axis=0), np.fmax.reduce(values, axis=0)):
        n = np.count_nonzero(values == edge, axis=0)
        for k in np.flatnonzero(n > 2).tolist():
            seen = values[~np.isnan(values[:, k]), k]
            others = seen[seen != edge[k]]
            if len(others) > n[k] and np.abs(others - edge[k]).min() > 0.5 * np.ptp(others) > 0:
                found.append((k, float(edge[k]), int(n[k])))
    return sorted(found)


def _named(sensors: list[str]) -> str:
    if len(sensors) == 1:
        return f"Sensor {sensors[0]!r} has"
    return f"{len(sensors)} sensors ({', '.join(map(repr, sensors[:5]))}{', ...' if len(sensors) > 5 else ''}) have"


def _season(plan: Any, panel: Panel, centre: Array, scale: Array) -> seasonality.Season | None:
    if panel.week_seconds is None:
        if plan.season in ("week", "day"):
            raise SettingError(
                f"season={plan.season!r} needs a panel with a clock, and this one has tick numbers only."
            )
        return None
    step = seasonality.DAY / (panel.day or UNCLOCKED_DAY)
    period = seasonality.choose_period(panel.n_times * step, plan.season)
    if period is None:
        return None
    width = max(1, int(step))
    return seasonality.fit_season(panel.values, panel.week_seconds, width, period, centre, scale)


def _day(panel: Panel) -> int:
    """The number of ticks that is nearest to a day."""
    return max(1, round(panel.day or UNCLOCKED_DAY))


def _order(plan: Any, panel: Panel, fitted: Array) -> Array:
    n_kept = min(plan.neighbours + neighbourhood.SPARE, int(fitted.sum()))
    n_nearest = min(panel.n_sensors, n_kept + int((~fitted).sum()))
    if panel.positions is not None and panel.geometry is not None:
        order = neighbourhood.order_by_position(panel.positions, panel.geometry, n_nearest)
    elif panel.adjacency is not None:
        order = neighbourhood.order_by_path(panel.n_sensors, *panel.adjacency, n_nearest)
    else:
        order = neighbourhood.order_by_correlation(panel.values, n_nearest)
    # nothing is known of a sensor that was not fitted, not even its unit: it is nobody's neighbour or stand-in
    return np.ascontiguousarray(neighbourhood.put_last(order, ~fitted)[:, :n_kept])


def _layout(plan: Any, panel: Panel, season: seasonality.Season | None, n_fitted: int) -> features.Layout:
    clock = panel.has_clock
    if plan.calendar is True and not clock:
        raise SettingError("calendar=True needs a panel with a clock, and this one has tick numbers only.")
    layout = features.Layout(
        lags=plan.lags,
        neighbours=min(plan.neighbours, n_fitted),
        seasonal_lags=seasonal_lags(plan, panel.ticks_per_day, panel.n_times),
        calendar=clock if plan.calendar == "auto" else bool(plan.calendar),
        level=season is not None,
        same_tick=plan.same_tick,
    )
    if panel.n_times <= layout.longest_lag:
        raise FitError(
            f"{panel.n_times} training ticks are too few: a row looks {layout.longest_lag} ticks back. "
            "Give more data, or fewer lags."
        )
    return layout


def seasonal_lags(plan: Any, day: int | None, n_times: int) -> tuple[int, ...]:
    """The lags of a setting: its own, or with "auto" a day and a week of so many ticks, where they cost little."""
    if isinstance(plan.seasonal_lags, str):
        longest = n_times // SEASONAL_LAG_SHARE
        return tuple(lag for lag in (day, 7 * day) if plan.lags < lag <= longest) if day else ()
    return () if plan.seasonal_lags is None else tuple(int(lag) for lag in plan.seasonal_lags)


def _fill(
    plan: Any,
    values: Array,
    level: Array,
    scale: Array,
    order: Array,
    seed: int,
) -> tuple[imputation.Filling, Array]:
    if plan.impute == "iterative":
        return imputation.fit_iterative(values, seed % 2**32)
    filling: imputation.Filling = imputation.Keep()
    if plan.impute == "gaussian":
        filling = imputation.fit_gaussian((values - level) / scale, order)
    elif plan.impute == "seasonal":
        filling = imputation.Seasonal()
    memory = imputation.LastDeviation(np.zeros(values.shape[1]))
    return filling, imputation.fill(filling, memory, values, level, scale)


def _patience(plan: Any, panel: Panel) -> int | None:
    if plan.silent_after == "auto":
        return _day(panel)
    return None if plan.silent_after is None else int(plan.silent_after)


def targets_of(prepared: Prepared) -> Array:
    """What is trained on (time, sensor), in units of features; NaN where there is no usable row."""
    plan, layout, panel = prepared.plan, prepared.layout, prepared.panel
    targets = prepared.readings.copy()
    if plan.train_on == "observed":
        targets[np.isnan(panel.values)] = np.nan
    targets[: layout.longest_lag] = np.nan
    targets[:, ~prepared.fitted] = np.nan
    if plan.impute is None:
        targets[~_complete(prepared)] = np.nan
    return targets


def _complete(prepared: Prepared) -> Array:
    """(time, sensor): whether a row has no hole; computed from the holes, without making the row."""
    layout, readings = prepared.layout, prepared.readings
    hole = np.isnan(readings)
    ticks = np.arange(len(readings))[:, None]
    run = ticks - np.maximum.accumulate(np.where(hole, ticks, -1), axis=0)
    first = layout.longest_lag
    index = features.neighbours_at(prepared.order, layout.neighbours, prepared.silent[first:])
    out = np.zeros(readings.shape, dtype=bool)
    _kernels.complete_rows(
        run,
        first,
        index,
        layout.lags,
        readings,
        np.asarray(layout.seasonal_lags, dtype=np.int64),
        out[first:],
    )
    if layout.same_tick:
        others = np.broadcast_to(index[:, :, 1:], (len(readings) - first, *index[:, :, 1:].shape[1:]))
        out[first:] &= ~np.take_along_axis(hole[first:, None, :], others, axis=2).any(axis=2)
    return out


def block_ends(prepared: Prepared, ticks: Array) -> Array | None:
    """Where the block of each training tick ends, for `ensemble.draw`; None for single draws."""
    if prepared.plan.bootstrap == "iid":
        return None
    return ensemble.day_blocks(ticks, _day(prepared.panel))
