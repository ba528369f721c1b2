"""settings, seed -> a made-up city's traffic, with all that makes sensors hard or with nothing but errors.

Every source of chance has a generator of its own, spawned from the seed: switching anomalies or holes off leaves every
other number as it was.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .. import _checks
from ..errors import SettingError
from ..panel import Panel
from .anomalies import KINDS, Simulation, plant_in
from .holes import punch
from .roads import network
from .traffic import are_holidays, correlated_errors, levels_of, mixing, rain

HOLIDAYS = ("01-01", "04-18", "04-21", "05-01", "05-29", "10-03", "12-25", "12-26")


def simulate(
    n_sensors: int = 20,
    n_times: int = 4380,
    step: str = "1h",
    start: str = "2025-01-06",
    *,
    missing: float = 0.1,
    bursts: float | None = None,
    dead: float | None = None,
    anomalies: float = 0.01,
    kinds: Sequence[str] = tuple(KINDS),
    clean_until: float = 0.0,
    error_autocorrelation: float = 0.6,
    space_correlation: float = 0.5,
    noise: float = 0.1,
    weather: float = 0.2,
    holidays: Sequence[str] = HOLIDAYS,
    seed: int = 0,
) -> Simulation:
    """Traffic (vehicles per hour, never negative) on the roads of a made-up city.

    A reading is the road's own daily and weekly profile, lowered by the weather that all roads share, plus a noise that
    is correlated along the roads and in time, and grows with the square root of the flow. Holidays look like Sundays.

    Right for trying out, for teaching, and for comparing settings on anomalies that no detector defined. Not right for
    checking p-values: weather, holidays and the floor at zero are departures that nobody planted, so that a detector
    that calls a holiday strange is counted wrong here and may be right in your city (`Simulation.holidays` says when;
    whoever sets them apart should give the figure with them, too). For that, use `simulate_null`.

    Parameters you will want to set:

    n_sensors, n_times, step, start : the panel's size and clock; `step` like "5min", "1h", "1D".
    missing : share of readings lost at random.
    anomalies : share of the observed readings that belong to a planted event; 0 for none.
    seed : the same seed gives the same numbers.

    Parameters you may skip:

    bursts : share of readings lost in runs of 3 to 48 steps (default: a tenth of `missing`).
    dead : share of sensors that fall silent for good, between 55 % and 90 % of the record (default: half of `missing`).
    kinds : names out of `KINDS`; they take turns. Events last 1 to 24 steps.
    clean_until : share of the times, from the start, without anomalies; `anomalies` then counts in the rest.
    error_autocorrelation : correlation of the noise from one step to the next.
    space_correlation : 0 for independent sensors, near 1 for a noise shared by whole districts.
    noise : standard deviation of the noise, as a share of the flow, on an average hour.
    weather : share of the flow that the worst weather takes away.
    holidays : days of the year, "month-day"; a made-up calendar by default.
    """
    _check_network(n_sensors, n_times, error_autocorrelation, space_correlation)
    _checks.whole("seed", seed, 0)
    for name, value in {"noise": noise, "weather": weather}.items():
        _checks.share(name, value)
    city, profiles, sky, errors, holes, planted = np.random.default_rng(seed).spawn(6)
    panel = network(city, n_sensors, n_times, step, start)
    phase_of, levels = levels_of(profiles, panel.times, n_sensors, holidays)
    dullness = rain(sky, n_times, panel.step)
    sensitivity = weather * sky.uniform(0.5, 1.0, n_sensors)
    typical = levels.mean(axis=0)
    values = np.empty((n_times, n_sensors))
    for rows, error in correlated_errors(
        errors, n_times, mixing(panel, space_correlation), error_autocorrelation
    ):
        flow = levels[phase_of[rows]] * (1.0 - dullness[rows, None] * sensitivity)
        values[rows] = np.round(np.maximum(flow + noise * np.sqrt(flow * typical) * error, 0.0), 1)
    bursts = missing / 10 if bursts is None else bursts
    dead = missing / 2 if dead is None else dead
    punch(values, holes, missing, bursts, dead)
    free = are_holidays(panel.times, holidays)
    return plant_in(panel.with_values(values), planted, anomalies, kinds, clean_until, free)


def simulate_null(
    n_sensors: int = 10,
    n_times: int = 5000,
    step: str = "1h",
    start: str = "2025-01-06",
    *,
    missing: float = 0.0,
    error_autocorrelation: float = 0.6,
    space_correlation: float = 0.5,
    noise: float = 30.0,
    seed: int = 0,
) -> Panel:
    """Readings without any anomaly: a fixed weekly profile plus stationary Gaussian AR(1) errors, exactly.

    Nothing is clipped or rounded (a reading may be negative), there is no weather and no holiday, and every sensor's
    errors have the same standard deviation, `noise`, at all hours. Any share of p <= alpha away from alpha is
    therefore the detector's doing. Holes come at random; to give training and test different ones, make it without and
    use `with_holes` on each part. Not right for asking what a detector finds: there is nothing to find.
    """
    _check_network(n_sensors, n_times, error_autocorrelation, space_correlation)
    _checks.whole("seed", seed, 0)
    city, profiles, _, errors, holes, _ = np.random.default_rng(seed).spawn(6)
    panel = network(city, n_sensors, n_times, step, start)
    phase_of, levels = levels_of(profiles, panel.times, n_sensors, holidays=())
    values = np.empty((n_times, n_sensors))
    for rows, error in correlated_errors(
        errors, n_times, mixing(panel, space_correlation), error_autocorrelation
    ):
        values[rows] = levels[phase_of[rows]] + noise * error
    punch(values, holes, missing, bursts=0.0, dead=0.0)
    return panel.with_values(values)


def _check_network(
    n_sensors: int, n_times: int, error_autocorrelation: float, space_correlation: float
) -> None:
    if not 1 <= n_sensors <= 10_000:
        raise SettingError(f"n_sensors={n_sensors} must be from 1 to 10,000")
    if n_times < 1:
        raise SettingError(f"n_times={n_times} must be at least 1")
    if not -1.0 < error_autocorrelation < 1.0:
        raise SettingError(f"error_autocorrelation={error_autocorrelation} must lie between -1 and 1")
    _checks.share("space_correlation", space_correlation)
