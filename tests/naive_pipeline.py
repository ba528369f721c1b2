"""readings -> verdicts: the whole method as one plain loop, composed of the functions of `naive` and of nothing else.

Only what is drawn by chance is given: `in_bag`, the counts of each member over the training times. Settings have the
names of the detector's constructor.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import naive
from panels import SmallPanel

DEFAULTS: dict[str, Any] = {
    "aggregation": "mean",
    "lags": 5,
    "neighbours": 5,
    "seasonal_lags": "auto",
    "calendar": "auto",
    "season": "auto",
    "same_tick": False,
    "scale": "sensor",
    "impute": "gaussian",
    "train_on": "observed",
    "silent_after": "auto",
    "groups": "shared",
    "centre": "ensemble",
    "centre_level": None,
    "score": "absolute",
    "reference": "window",
    "pool": "sensor",
    "local": "and",
    "classes": "own_last",
    "absorb": "runs",
    "half_life": None,
    "p_value": "conformal",
    "tail": "both",
    "alpha": 0.05,
    "rule": "fixed",
}

Predict = Callable[[np.ndarray], np.ndarray]


@dataclass
class Verdicts:
    """Arrays (time, sensor) over the judged ticks, and what training left behind."""

    expected: np.ndarray
    scores: np.ndarray
    p_values: np.ndarray
    strength: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    status: np.ndarray
    alarms: np.ndarray
    calibration_scores: np.ndarray
    train_ticks: np.ndarray


@dataclass
class Prepared:
    """Section 2 and 3 of one panel: everything that does not depend on who drew what."""

    centre: np.ndarray
    scale: np.ndarray
    spread: np.ndarray
    fitted: np.ndarray
    season: str | None
    level: np.ndarray  # (T + T1, K)
    level_spread: np.ndarray
    filled: np.ndarray
    without_self: Callable[[int, int], np.ndarray]  # (t, k) -> tick t filled without sensor k
    order: np.ndarray


def _prepare(panel: SmallPanel, n_train: int, impute: str | None, asked_season: str | None) -> Prepared:
    values = panel.values
    train = values[:n_train]
    centre, scale, spread = naive.scale_of(train)
    season = asked_season
    if asked_season == "auto":
        season = naive.season_of(n_train, panel.step_seconds)
    if season is None:
        level = np.tile(centre, (len(values), 1))
        level_spread = np.tile(scale, (len(values), 1))
    else:
        key = (values.tobytes(), n_train, season)
        level, level_spread = once(key, lambda: _usual(panel, n_train, season, scale, centre))
    filled, without_self = _filled(values, n_train, impute, level, scale)
    fitted = np.isfinite(train).any(axis=0)
    order = naive.order_of_neighbours(panel.positions, panel.geometry, None, train)
    order = np.array([[k, *sorted(row[1:], key=lambda j: not fitted[j])] for k, row in enumerate(order)])
    order = order[:, : fitted.sum()]  # who was not fitted is nobody's neighbour or stand-in
    return Prepared(centre, scale, spread, fitted, season, level, level_spread, filled, without_self, order)


def _usual(
    panel: SmallPanel, n_train: int, season: str, scale: np.ndarray, centre: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Level and spread (T + T1, K) at each tick."""
    phase = naive.phase_of(panel.week_seconds, panel.step_seconds, season)
    hour = naive.hour_of_phase(panel.step_seconds, season)
    train = panel.values[:n_train]
    levels, spreads = naive.seasonal_tables_crossfit(
        train, phase[:n_train], hour, season, scale, centre, naive.phase_width(panel.step_seconds)
    )
    return naive.at_times(levels, phase, n_train), naive.at_times(spreads, phase, n_train)


MADE: dict[Any, Any] = {}


def once(key: Any, make: Callable[[], Any]) -> Any:
    """What several settings share is made once for each panel."""
    if key not in MADE:
        MADE[key] = make()
    return MADE[key]


def _filled(
    values: np.ndarray, n_train: int, impute: str | None, level: np.ndarray, scale: np.ndarray
) -> tuple[np.ndarray, Callable[[int, int], np.ndarray]]:
    if impute == "seasonal":
        filled = naive.seasonal_fill(values, level)
        return filled, lambda t, k: filled[t]
    if impute != "gaussian":
        return values, lambda t, k: values[t]
    D = naive.deviations(values, level, scale)
    mean, covariance = naive.gaussian_em(D[:n_train])
    filled = np.array([naive.gaussian_fill(row, mean, covariance) for row in D]) * scale + level

    def without_self(t: int, k: int) -> np.ndarray:
        return naive.gaussian_fill_without(D[t], k, mean, covariance) * scale + level[t]

    return np.where(np.isfinite(values), values, filled), without_self


def run(
    panel: SmallPanel,
    n_train: int,
    in_bag: np.ndarray,
    fit: Callable[[np.ndarray, np.ndarray], Predict] | None = None,
    **settings: Any,
) -> Verdicts:
    """Fit to the first `n_train` ticks, judge the rest; `fit(rows, targets)` gives a member's predict (else ridge)."""
    asked = {**DEFAULTS, **settings}
    key = (panel.values.tobytes(), panel.positions.tobytes(), n_train, asked["impute"], asked["season"])
    made = once(key, lambda: _prepare(panel, n_train, asked["impute"], asked["season"]))
    X = _features(panel, n_train, made, asked)
    relative = asked["scale"] == "sensor"
    unit = made.scale if relative else np.ones(panel.n_sensors)
    origin = made.level if relative else np.zeros(panel.values.shape)
    targets = np.where(panel.observed | (asked["train_on"] == "all"), made.filled, np.nan)
    usable = _usable(X, targets, made.fitted, asked["impute"] == "keep")[:n_train]
    ticks = np.array([t for t in range(n_train) if usable[t].any()])
    column_of = {int(t): i for i, t in enumerate(ticks)}
    predict = _members(X, (targets - origin) / unit, usable, ticks, in_bag, _group_of(panel, asked), fit)

    def centre_of(t: int, k: int) -> float:
        if X[t, k] is None or not made.fitted[k]:
            return np.nan
        predictions = predict(X[t, k], k)
        if np.isnan(predictions).any():
            return np.nan
        if t < n_train:
            left_out = naive.loo(predictions, in_bag[:, column_of[t]], asked["aggregation"])
            return left_out * unit[k] + origin[t, k]
        if asked["centre"] == "quantile":
            level = asked["centre_level"] or asked["alpha"]
            middle = naive.quantile_centre(predictions, in_bag, asked["aggregation"], level)
        else:
            middle = naive.phi(predictions, asked["aggregation"])
        return middle * unit[k] + origin[t, k]

    return _judge(panel, n_train, made, asked, targets, usable, ticks, centre_of)


def _features(panel: SmallPanel, n_train: int, made: Prepared, asked: dict[str, Any]) -> np.ndarray:
    """X (T + T1, K) of rows, None where the largest lag reaches before the data."""
    day = max(1, round(24 * 3600 / panel.step_seconds))
    seasonal_lags = asked["seasonal_lags"]
    if seasonal_lags == "auto":
        seasonal_lags = []
        if 24 * 3600 % panel.step_seconds == 0:
            seasonal_lags = [lag for lag in (day, 7 * day) if asked["lags"] < lag <= n_train // 8]
    # deviations from what is usual at their tick, in units of the scale
    relative = asked["scale"] == "sensor"
    readings = (made.filled - made.level) / made.scale if relative else made.filled
    level, level_spread = (made.level - made.centre) / made.scale, made.level_spread / made.scale
    calendar = asked["calendar"] in ("auto", True)
    waves = np.array([naive.calendar_row(seconds) for seconds in panel.week_seconds])
    patience = day if asked["silent_after"] == "auto" else asked["silent_after"]
    X = np.empty((panel.n_times, panel.n_sensors), dtype=object)
    for t in range(panel.n_times):
        for k in range(panel.n_sensors):
            same = None
            if asked["same_tick"]:
                others = made.without_self(t, k)
                same = (others - made.level[t]) / made.scale if relative else others
            X[t, k] = naive.design_row(
                t,
                k,
                readings,
                panel.observed,
                made.order,
                asked["lags"],
                min(asked["neighbours"], int(made.fitted.sum())),
                seasonal_lags or (),
                waves if calendar else None,
                level if made.season else None,
                level_spread if made.season else None,
                asked["same_tick"],
                same,
                day=patience or day,
                replace_silent=patience is not None,
            )
    return X


def _usable(X: np.ndarray, targets: np.ndarray, fitted: np.ndarray, holes_too: bool) -> np.ndarray:
    """(T, K): a row without a hole (or a regressor that takes it) and a target."""
    usable = np.zeros(targets.shape, dtype=bool)
    for t in range(len(targets)):
        for k in range(targets.shape[1]):
            row = X[t, k]
            complete = row is not None and (holes_too or np.isfinite(row).all())
            usable[t, k] = complete and np.isfinite(targets[t, k]) and fitted[k]
    return usable


def _group_of(panel: SmallPanel, asked: dict[str, Any]) -> list[Any]:
    groups = asked["groups"]
    if groups == "shared":
        return [0] * panel.n_sensors
    return list(range(panel.n_sensors)) if groups == "sensor" else [groups[name] for name in panel.sensors]


def _members(
    X: np.ndarray,
    targets: np.ndarray,
    usable: np.ndarray,
    ticks: np.ndarray,
    in_bag: np.ndarray,
    groups: list[Any],
    fit: Callable[[np.ndarray, np.ndarray], Predict] | None,
) -> Callable[[np.ndarray, int], np.ndarray]:
    """Section 4: B members for each group; (row, sensor) -> B predictions."""
    members: dict[Any, list[Predict]] = {}
    for group in dict.fromkeys(groups):
        who = [k for k in range(len(groups)) if groups[k] == group]
        places = [(i, t, k) for i, t in enumerate(ticks) for k in who if usable[t, k]]
        if not places:
            continue
        rows = np.array([X[t, k] for _, t, k in places])
        y = np.array([targets[t, k] for _, t, k in places])
        members[group] = []
        for counts in in_bag:
            drawn = np.array([counts[i] for i, _, _ in places])
            if fit is None:
                coef, intercept = naive.ridge(rows, y, drawn, 1.0)
                members[group].append(lambda x, coef=coef, intercept=intercept: x @ coef + intercept)
            else:
                members[group].append(fit(np.repeat(rows, drawn, axis=0), np.repeat(y, drawn)))

    def predict(x: np.ndarray, k: int) -> np.ndarray:
        return np.array([float(member(x[None, :])[0]) for member in members[groups[k]]])

    return predict


def _judge(
    panel: SmallPanel,
    n_train: int,
    made: Prepared,
    asked: dict[str, Any],
    targets: np.ndarray,
    usable: np.ndarray,
    ticks: np.ndarray,
    centre_of: Callable[[int, int], float],
) -> Verdicts:
    """Sections 5 and 6."""
    n_sensors, kind = panel.n_sensors, asked["score"]
    day = max(1, round(24 * 3600 / panel.step_seconds))
    month = max(1, round(28 * 24 * 3600 / panel.step_seconds))
    hours = panel.week_seconds % naive.DAY // 3600
    residuals = np.full((panel.n_times, n_sensors), np.nan)
    for t in ticks:
        for k in range(n_sensors):
            if usable[t, k]:
                plain = "signed" if kind == "signed" else "absolute"
                residuals[t, k] = naive.score(plain, targets[t, k], centre_of(t, k))
    training = residuals[ticks]
    typical = np.array([naive.training_median(training[:, k], made.spread[k]) for k in range(n_sensors)])
    if kind == "studentised":
        training = np.column_stack(
            [
                naive.studentised_training_scores(
                    training[:, k],
                    ticks,
                    hours[ticks],
                    made.spread[k],
                    month,
                )
                for k in range(n_sensors)
            ]
        )
    classes = _classes(panel, asked["classes"], hours)
    reference = naive.Reference(
        training,
        ticks,
        None if classes is None else classes[ticks],
        kind=kind,
        reference=asked["reference"],
        pool=asked["pool"],
        form=asked["p_value"],
        tail=asked["tail"],
        alpha=asked["alpha"],
        spread=made.spread,
        half_life=asked["half_life"],
        absorb=asked["absorb"],
        local=asked["local"],
        local_ticks=asked["lags"],
        training_hours=hours[ticks],
        season_ticks=28 * day,
        fitted=made.fitted,
    )
    rows = []
    for t in range(n_train, panel.n_times):
        expected = np.array([centre_of(t, k) for k in range(n_sensors)])
        scale = np.ones(n_sensors)
        if kind == "studentised":
            scale = np.array(
                [
                    naive.local_scale(
                        residuals[:t, k], np.arange(t), hours[:t], t, hours[t], typical[k], month
                    )
                    for k in range(n_sensors)
                ]
            )
        y = panel.values[t]
        residuals[t] = [naive.score("absolute", y[k], expected[k]) for k in range(n_sensors)]
        s = np.array([naive.score(kind, y[k], expected[k], scale[k]) for k in range(n_sensors)])
        verdict = reference.update(
            t,
            s,
            None if classes is None else classes[t],
            observed=panel.observed[t],
            hour=int(hours[t]),
            neighbourhood=_neighbourhood(panel, t, made, asked),
        )
        alarm = naive.bh(verdict["p"], asked["alpha"]) if asked["rule"] == "bh" else verdict["alarm"]
        rows.append(
            (
                expected,
                s,
                verdict["p"],
                verdict["strength"],
                expected + scale * verdict["lower_bound"],
                expected + scale * verdict["upper_bound"],
                verdict["status"],
                alarm,
            )
        )
    columns = [np.array(column) for column in zip(*rows)]
    return Verdicts(*columns, calibration_scores=training, train_ticks=ticks)


def _neighbourhood(panel: SmallPanel, t: int, made: Prepared, asked: dict[str, Any]) -> np.ndarray:
    patience = asked["silent_after"]
    gone = np.zeros(panel.n_sensors, dtype=bool)
    if patience is not None:
        gone = naive.silent(
            panel.observed,
            t,
            max(1, round(24 * 3600 / panel.step_seconds)) if patience == "auto" else patience,
        )
    return naive.neighbourhood_at(t, made.order, min(asked["neighbours"], int(made.fitted.sum())), gone)


def _classes(panel: SmallPanel, kind: str | None, hours: np.ndarray) -> np.ndarray | None:
    if kind is None:
        return None
    if kind == "hour":
        return np.tile((hours // 6)[:, None], (1, panel.n_sensors))
    return naive.own_last_classes(panel.observed)
