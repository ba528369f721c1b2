"""roads, clock -> what they carry: profiles by kind of day, rain, and errors correlated in space and time."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, diags_array, eye_array

from ..errors import SettingError
from ..panel import Panel
from .roads import graph, seconds_of

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]

BLOCK = 2_000_000  # readings made at once: memory beyond the panel stays flat


def levels_of(
    rng: np.random.Generator, times: NDArray[np.datetime64], n_sensors: int, holidays: Sequence[str]
) -> tuple[Integers, Floats]:
    """The profile of each road, once for each kind of day and time of day: levels[phase_of[t], k]."""
    day = times.astype("datetime64[D]")
    weekday = (day.astype(np.int64) + 3) % 7  # 1970-01-01 was a Thursday
    kind_of_day = np.where(weekday == 6, 2, np.where(weekday == 5, 1, 0))
    kind_of_day[are_holidays(times, holidays)] = 2
    second = (times - day).astype("timedelta64[s]").astype(np.int64)
    phases, phase_of = np.unique(kind_of_day * 86400 + second, return_inverse=True)
    shape = _shapes(rng, phases // 86400, (phases % 86400) / 3600.0, n_sensors)
    return phase_of.ravel(), shape * rng.lognormal(np.log(420.0), 0.45, n_sensors)


def _shapes(rng: np.random.Generator, kind_of_day: Integers, hour: Floats, n_sensors: int) -> Floats:
    """(phase, sensor) around 1: some roads lead into town in the morning, others out of it in the evening."""

    def bump(peak: Floats, width: Floats | float) -> Floats:
        apart = (hour[:, None] - peak + 12.0) % 24.0 - 12.0
        return np.asarray(np.exp(-0.5 * (apart / width) ** 2))

    inwards = rng.uniform(0.0, 1.0, n_sensors)
    morning = (0.5 + 1.4 * inwards) * bump(rng.normal(7.8, 0.3, n_sensors), rng.uniform(0.9, 1.4, n_sensors))
    evening = (1.9 - 1.4 * inwards) * bump(rng.normal(17.2, 0.4, n_sensors), rng.uniform(1.3, 2.0, n_sensors))
    noon = rng.uniform(0.8, 1.2, n_sensors) * bump(rng.normal(12.9, 0.4, n_sensors), 3.2)
    leisure = rng.uniform(0.7, 1.3, n_sensors) * bump(rng.normal(14.8, 0.6, n_sensors), 4.0)
    night = rng.uniform(0.06, 0.14, n_sensors)
    weekday = night + morning + evening + noon
    saturday = 1.4 * night + 0.25 * (morning + evening) + 1.05 * leisure
    sunday = 1.6 * night + 0.08 * (morning + evening) + 0.8 * leisure
    kind = kind_of_day[:, None]
    return np.where(kind == 0, weekday, np.where(kind == 1, saturday, sunday))


def are_holidays(times: NDArray[np.datetime64], holidays: Sequence[str]) -> Booleans:
    """(time,) whether the day of each time is one of the `holidays`."""
    for text in holidays:
        if not re.fullmatch(r"\d\d-\d\d", text):
            raise SettingError(f"holidays has {text!r}: give days as 'month-day', like '05-01'")
    dates = np.datetime_as_string(times, unit="D").tolist()
    return np.isin([date[5:] for date in dates], list(holidays))


def rain(rng: np.random.Generator, n_times: int, step: np.timedelta64 | int) -> Floats:
    """(time,) in [0, 1): mostly dry, with spells that come and go within about a day."""
    memory = float(np.exp(-seconds_of(step) / 86400.0))
    slow = _autoregress(rng.standard_normal((n_times, 1)), memory)[0][:, 0]
    return np.asarray(-np.expm1(-np.maximum(slow - 0.4, 0.0)))


def mixing(panel: Panel, space_correlation: float) -> csr_array:
    """(sensor, sensor), sparse: white noise -> noise of variance 1, correlated by the distance on the roads.

    Each of three hops along the roads passes on a share that fades with the length; sensors further apart than six
    hops are independent. A covariance by all distances would be K x K, and on a graph not even positive definite.
    """
    n = panel.n_sensors
    if n == 1 or panel.adjacency is None:
        return csr_array(eye_array(n))
    hop = graph(panel.adjacency, n)
    hop.data = np.exp(-0.5 * hop.data)
    spread = csr_array(eye_array(n) + hop)
    spread = csr_array(diags_array(1.0 / spread.sum(axis=1)) @ spread)
    spread = spread @ spread @ spread
    spread = diags_array(1.0 / _row_norms(spread)) @ spread
    mixed = csr_array(np.sqrt(space_correlation) * spread + np.sqrt(1.0 - space_correlation) * eye_array(n))
    return csr_array(diags_array(1.0 / _row_norms(mixed)) @ mixed)


def _row_norms(matrix: csr_array) -> Floats:
    return np.asarray(np.sqrt(matrix.multiply(matrix).sum(axis=1))).ravel()


def correlated_errors(
    rng: np.random.Generator, n_times: int, mixing: csr_array, autocorrelation: float
) -> Iterator[tuple[slice, Floats]]:
    """Blocks of rows of a stationary AR(1) of variance 1 whose innovations are mixed over space."""
    n = mixing.shape[0]
    block = max(1, BLOCK // n)
    state: Floats | None = None
    for first in range(0, n_times, block):
        rows = slice(first, min(first + block, n_times))
        white = rng.standard_normal((rows.stop - first, n))
        error, state = _autoregress(np.asarray((mixing @ white.T).T), autocorrelation, state)
        yield rows, error


def _autoregress(white: Floats, autocorrelation: float, state: Floats | None = None) -> tuple[Floats, Floats]:
    """e[t] = a e[t - 1] + sqrt(1 - a^2) white[t]; without a state, the first is white[0]: stationary from the start."""
    gain = np.sqrt(1.0 - autocorrelation**2)
    if state is None:
        state = (1.0 - gain) * white[:1]
    from scipy.signal import lfilter  # a second of imports that only simulation needs

    error, state = lfilter([gain], [1.0, -autocorrelation], white, axis=0, zi=state)
    return np.asarray(error), np.asarray(state)
