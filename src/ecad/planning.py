"""sizes -> memory and time: what a fit and a detection will take on this machine, before anything is fitted.

Small panels of the same kind (settings, step, holes) are made up, fitted and judged; what that took is extrapolated by
how each part of the method grows:

    fit, model file   a + b K + c K T: a line in time, and beyond `JOINTLY_UP_TO` sensors one in sensors, too
    EM of the holes   the same, but never more than `EM_TICKS` ticks
    season's tables   memory that grows with K only; the fit needs them or its rows, whichever is more
    other regressors  one member on two sizes, a power of the rows, times B members
    detection         a + b K T1, and what a longer window costs: ranks and quantile centres are tried at full length

Up to `JOINTLY_UP_TO` sensors the trial has as many as asked for, since the cost of a tick grows with their square.
"""

from __future__ import annotations

import os
import pickle
import tempfile
import time
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from . import _threads, datasets, ensemble, imputation, pvalues, seasonality, settings
from .detector import BLOCK_ROWS, ECAD
from .learners.ridge import strength_of
from .learners.sklearn import weights_are_counts
from .modelfile import save
from .panel import Panel, ticks_per_day
from .preparing import prepare, seasonal_lags
from .training import refuse_unknown

Array = np.ndarray[Any, Any]

# Readings of a trial: at least, and where a fortieth of what is asked for is more, at most. With fewer than ten
# ticks a sensor the EM of the holes goes round and round, and a long panel would be expected to do the same.
READINGS = (120_000, 300_000)
FEWEST_TICKS = 240
MOST_PLACES = 100_000  # of a window that is tried; beyond, its cost is proportional
MOST_SCORES = 1_000_000  # of all windows that are tried: more than a cache holds
REPEATS = 2
OUTPUTS = 2 * (6 * 8 + 2)  # bytes of verdicts for each reading: in blocks, and put together
WINDOW = 22  # bytes of the window for each training reading: in order of time, and sorted
TABLES_KEPT = 0.3  # share of what the season's tables need while they are made
WORK = 25  # numbers for each reading of a block that is judged, beside features and predictions


class Sizes(NamedTuple):
    """What is going to be fitted and judged."""

    sensors: int
    times: int
    later: int
    step: str | None = "1h"  # None: tick numbers, no clock
    missing: float = 0.1


class Expected(NamedTuple):
    """Seconds and bytes. Those of a step are on top of the readings, which are in memory already."""

    fit_seconds: float
    fit_bytes: float
    detect_seconds: float
    detect_bytes: float
    tick_seconds: float
    model_bytes: float  # of the model file
    base_bytes: float  # Python and its libraries
    panel_bytes: float  # the readings

    @property
    def process_bytes(self) -> float:
        """The whole process at its peak."""
        return self.base_bytes + self.panel_bytes + max(self.fit_bytes, self.model_bytes + self.detect_bytes)


class _Trial(NamedTuple):
    """What one small fit took."""

    sensors: int
    times: int
    seconds: float  # without the EM
    em_seconds: float
    table_bytes: float  # of a fit so small that the season's tables need more than its rows
    model_bytes: float
    detector: ECAD
    later: Panel


def expect(detector: ECAD, sizes: Sizes) -> Expected:
    """What fitting `detector` and judging with it will take; a few seconds of trials."""
    refuse_unknown(detector.regressor)
    _trial(detector, sizes, min(sizes.sensors, 5), FEWEST_TICKS)  # loads what has to be compiled
    base_bytes = _memory_now()
    trials = [_trial(detector, sizes, *size) for size in _trial_sizes(sizes)]
    readings, later = sizes.sensors * sizes.times, sizes.sensors * sizes.later
    em_ticks = min(sizes.times, imputation.EM_TICKS)
    fit_seconds = _line(trials, "seconds", sizes, sizes.times) + _line(trials, "em_seconds", sizes, em_ticks)
    fit_bytes = _fit_bytes(trials, sizes)
    model_bytes = _line(trials, "model_bytes", sizes, sizes.times)
    per_reading, overhead, tick = _judging(trials[1], sizes)
    foreign = _foreign(detector, trials[1], sizes)
    if foreign is not None:
        fit_seconds += foreign.fit_seconds + readings * foreign.row_seconds
        fit_bytes += foreign.fit_bytes
        model_bytes += foreign.model_bytes
        per_reading += foreign.row_seconds
        tick += foreign.call_seconds
    return Expected(
        fit_seconds=fit_seconds,
        fit_bytes=fit_bytes,
        detect_seconds=overhead + later * per_reading,
        detect_bytes=_detect_bytes(trials[1].detector, sizes),
        tick_seconds=tick,
        model_bytes=model_bytes,
        base_bytes=base_bytes,
        panel_bytes=8.0 * (readings + later),
    )


# -- trials ------------------------------------------------------------------------------------------------------------


def _trial_sizes(sizes: Sizes) -> list[tuple[int, int]]:
    """(sensors, times): two lengths, and for many sensors one of them again with twice as many."""
    few = imputation.JOINTLY_UP_TO + 10
    sensors = min(sizes.sensors, few)
    readings = int(np.clip(sizes.sensors * sizes.times // 40, *READINGS))
    long = max(FEWEST_TICKS, min(sizes.times, readings // sensors))
    short = max(FEWEST_TICKS // 2, long // 3)
    third = [(2 * few, short)] if sizes.sensors > few else []
    return [(sensors, short), (sensors, long), *third]


def _trial(detector: ECAD, sizes: Sizes, sensors: int, times: int) -> _Trial:
    panel = _made_up(sizes, sensors, 2 * times)
    earlier, later = panel[:times], panel[times:]
    small: ECAD = clone(detector).set_params(**_alike(detector, sizes))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tables = _peak(lambda: small.fit(earlier))
        seconds = _fastest(lambda: small.fit(earlier))
    em_seconds = _em_seconds(small, earlier)
    return _Trial(
        sensors, times, max(seconds - em_seconds, 0.1 * seconds), em_seconds, tables, _file_size(small), small, later
    )  # fmt: skip


def _made_up(sizes: Sizes, sensors: int, times: int) -> Panel:
    panel = datasets.simulate(sensors, times, sizes.step or "1h", missing=sizes.missing, anomalies=0.0).panel
    if sizes.step is not None:
        return panel
    return Panel(panel.values, panel.sensors, np.arange(times), 1, panel.positions, panel.geometry)


def _alike(detector: ECAD, sizes: Sizes) -> dict[str, Any]:
    """Settings under which a short panel is treated like a long one: as many features, the same tables."""
    step = _made_up(sizes, 1, 1).step
    params: dict[str, Any] = {
        "regressor": "ridge",
        "unreachable": "warn",
        "progress": False,
        "random_state": 0,
    }
    if detector.season == "auto":
        seconds = sizes.times * (step / np.timedelta64(1, "s")) if isinstance(step, np.timedelta64) else 0.0
        params["season"] = seasonality.choose_period(seconds, "auto")
    lags = seasonal_lags(detector, ticks_per_day(step), sizes.times)
    params["seasonal_lags"] = [detector.lags + 1 + i for i in range(len(lags))] or None
    if detector.impute == "keep":
        params["impute"] = "gaussian"
    if not isinstance(detector.groups, str):
        params["groups"] = "shared"
    return params


def _em_seconds(detector: ECAD, panel: Panel) -> float:
    """Those of the fit's own EM: from the levels of training, which have not seen the readings."""
    if not isinstance(detector.model_.filling, imputation.Gaussian):
        return 0.0
    with _threads.one_blas_thread():
        prepared = prepare(settings.checked(**detector.get_params(deep=False)), panel, 0)
        level, _ = prepared.usual.levels(np.arange(panel.n_times), panel.week_seconds)
        deviations = (panel.values - level) / prepared.usual.scale
        return _fastest(lambda: imputation.fit_gaussian(deviations, prepared.order))


def _line(trials: list[_Trial], name: str, sizes: Sizes, times: int) -> float:
    """a + b K + c K T through the trials, at the sizes asked for; no part of it shrinks."""
    one, two, *three = trials
    y = [float(getattr(trial, name)) for trial in trials]
    slope = (
        max(0.0, (y[1] - y[0]) / (two.sensors * (two.times - one.times))) if two.times > one.times else 0.0
    )
    each = 0.0
    if three:
        each = max(0.0, (y[2] - y[0]) / (three[0].sensors - one.sensors) - slope * one.times)
    more = sizes.sensors - one.sensors
    return y[1] + each * more + slope * (sizes.sensors * times - two.sensors * two.times)


def _fit_bytes(trials: list[_Trial], sizes: Sizes) -> float:
    """The season's tables, or rows and tables: whichever is more."""
    tables = _line(trials, "table_bytes", sizes, trials[0].times)
    trial = trials[1]
    # one thread, so that it can be repeated: others add a block of rows each, which is little
    plain = clone(trial.detector).set_params(season=None, n_jobs=1)
    lengths = [trial.times, 2 * trial.times]
    panel = _made_up(sizes, trial.sensors, lengths[1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one, two = (_peak(lambda n=n: plain.fit(panel[:n])) for n in lengths)  # type: ignore[misc]
    each = max(0.0, two - one) / (trial.sensors * trial.times)
    rows = one + each * (sizes.sensors * sizes.times - trial.sensors * trial.times)
    return max(tables, rows + TABLES_KEPT * tables)


def _judging(trial: _Trial, sizes: Sizes) -> tuple[float, float, float]:
    """Seconds for each reading, for a detection as such, and for one tick of a stream."""
    detector, later = trial.detector, trial.later
    third = later[: max(1, later.n_times // 3)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        short, long = _fastest(lambda: detector.detect(third)), _fastest(lambda: detector.detect(later))
        stream = detector.stream()
        ticks = [_seconds(lambda t=t: stream.update(later.times[t], later.values[t])) for t in range(30)]  # type: ignore[misc]
    n_short, n_long = trial.sensors * third.n_times, trial.sensors * later.n_times
    per_reading = max((long - short) / (n_long - n_short), 0.5 * long / n_long)
    centre = _longer(_centre_seconds, detector, trial, sizes)
    per_reading += centre + _longer(_rank_seconds, detector, trial, sizes)
    each = (
        float(np.median(ticks)) / trial.sensors + centre + _longer(_tick_rank_seconds, detector, trial, sizes)
    )
    more = per_reading * max(sizes.sensors - trial.sensors, 0)
    return per_reading, max(short - per_reading * n_short, 0.0), max(each * trial.sensors + more, 0.0)


def _longer(seconds: Callable[[ECAD, int, int], float], detector: ECAD, trial: _Trial, sizes: Sizes) -> float:
    """What a reading takes more among as many past ones as there will be than among those of the trial."""
    return max(
        seconds(detector, sizes.times, sizes.sensors) - seconds(detector, trial.times, trial.sensors), 0.0
    )


def _rank_seconds(detector: ECAD, places: int, n_sensors: int, at_once: int = 50) -> float:
    """Seconds to rank a score in a window of so many places, and to enter it."""
    reference = detector.model_.reference
    if reference.kind != "window" or reference.pool != "sensor":
        return 0.0
    tried, n_ticks = min(places, MOST_PLACES), 50
    n_sensors = int(np.clip(MOST_SCORES // tried, 2, n_sensors + 1))
    scores = np.random.default_rng(0).exponential(size=(tried + n_ticks, n_sensors))
    classes = np.zeros(scores.shape, dtype=np.uint8)
    window = pvalues.open_window(
        scores[:tried], classes[:tried], np.arange(tried), tried, reference, None, None
    )
    ones, order = np.ones(n_sensors), np.arange(n_sensors)[:, None]

    def rank() -> None:
        for first in range(tried, tried + n_ticks, at_once):
            part = slice(first, first + at_once)
            pvalues.rank(scores[part], classes[part], window, reference, 1e-9 * ones, ones, order)

    return _seconds(rank) / (n_sensors * n_ticks) * (places / tried)


def _tick_rank_seconds(detector: ECAD, places: int, n_sensors: int) -> float:
    """The same tick by tick, as a stream does: no window of a sensor stays in the cache until its next score."""
    return _rank_seconds(detector, places, n_sensors, 1)


def _centre_seconds(detector: ECAD, n_predictors: int, n_sensors: int) -> float:
    """Seconds for the quantile centre of a reading among so many leave-one-out predictors."""
    if detector.centre != "quantile":
        return 0.0
    tried, n_rows = min(n_predictors, MOST_PLACES // 5), 64
    in_bag = ensemble.draw(tried, detector.n_members, 0)
    oob = ensemble.out_of_bag(in_bag, detector.aggregation)
    rank = ensemble.quantile_rank(detector.centre_level or detector.alpha, oob.n_predictors)
    centre = ensemble.QuantileCentre(oob, rank, detector.dtype)
    predictions = np.random.default_rng(0).normal(size=(detector.n_members, n_rows))
    return _fastest(lambda: centre.of(predictions)) / n_rows * (n_predictors / tried)


def _detect_bytes(detector: ECAD, sizes: Sizes) -> float:
    later = sizes.sensors * sizes.later
    stand_ins = 8.0 * detector.model_.layout.neighbours
    rows = min(BLOCK_ROWS, later)
    block = 8.0 * rows * (detector.model_.layout.n_features + detector.n_members + WORK)
    return later * (OUTPUTS + stand_ins) + sizes.sensors * sizes.times * WINDOW + block


# -- regressors other than ridge ---------------------------------------------------------------------------------------


class _Foreign(NamedTuple):
    """What members of another kind take, on top of all that is done around them."""

    fit_seconds: float
    fit_bytes: float
    row_seconds: float  # to predict one row by all members
    call_seconds: float  # to predict one tick by all members
    model_bytes: float


def _foreign(detector: ECAD, trial: _Trial, sizes: Sizes) -> _Foreign | None:
    """One member is fitted to rows of two sizes; its cost grows as a power of the rows."""
    if strength_of(detector.regressor) is not None or detector.regressor == "lstm":
        return None
    d, n_members = trial.detector.model_.layout.n_features, detector.n_members
    n_groups = _n_groups(detector.groups, sizes.sensors)
    n_rows = max(2, int(sizes.sensors * sizes.times * (1 - sizes.missing) / n_groups))
    share = 0.63 if weights_are_counts(detector.regressor) else 1.0  # rows drawn at least once, or repeated
    sizes_tried = [min(n_rows, 1_000), min(n_rows, 4_000)]
    X = np.random.default_rng(0).normal(size=(sizes_tried[1], d))
    y = X[:, 0] + 0.5 * np.abs(X[:, 1]) + np.random.default_rng(1).normal(size=len(X))
    seconds, held = [], []
    with _threads.one_blas_thread():
        clone(detector.regressor).fit(X[:100], y[:100])  # the first of its kind also loads its libraries
        for n in sizes_tried:
            member = clone(detector.regressor)
            seconds.append(_fastest(lambda n=n, member=member: member.fit(X[:n], y[:n])))  # type: ignore[misc]
            held.append(len(pickle.dumps(member)))
    growth = np.log(n_rows / sizes_tried[1])
    one_fit = seconds[1] * np.exp(growth * _power(seconds, sizes_tried)) * share
    one_size = held[1] * np.exp(growth * _power(held, sizes_tried))
    rows = X[: min(len(X), max(1, trial.sensors))]
    jobs = max(1, detector.n_jobs or 1)
    return _Foreign(
        fit_seconds=one_fit * n_members * n_groups / jobs,
        fit_bytes=n_rows * n_groups * d * 8.0 * 4 + one_size * n_members * n_groups,
        row_seconds=_fastest(lambda: member.predict(X)) / len(X) * n_members,
        call_seconds=_fastest(lambda: member.predict(rows)) * n_members * sizes.sensors / len(rows),
        model_bytes=one_size * n_members * n_groups,
    )


def _n_groups(groups: Any, n_sensors: int) -> int:
    if isinstance(groups, str):
        return n_sensors if groups == "sensor" else 1
    return len(set(groups.values()))


def _power(values: list[Any], sizes: list[int]) -> float:
    """values ~ size ** power, between flat and quadratic."""
    if sizes[1] <= sizes[0]:
        return 1.0
    return float(np.clip(np.log(values[1] / values[0]) / np.log(sizes[1] / sizes[0]), 0.0, 2.0))


# -- measuring ---------------------------------------------------------------------------------------------------------


def _seconds(work: Callable[[], Any]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def _fastest(work: Callable[[], Any], repeats: int = REPEATS) -> float:
    return min(_seconds(work) for _ in range(repeats))


def _peak(work: Callable[[], Any]) -> float:
    """Bytes that were needed at most, on top of those before."""
    with _traced():
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        work()
        return float(tracemalloc.get_traced_memory()[1] - before)


@contextmanager
def _traced() -> Iterator[None]:
    """tracemalloc, also where somebody else is tracing already."""
    ours = not tracemalloc.is_tracing()
    if ours:
        tracemalloc.start()
    try:
        yield
    finally:
        if ours:
            tracemalloc.stop()


def _file_size(detector: ECAD) -> float:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.ecad")
        save(detector, path)
        return float(os.path.getsize(path))


def _memory_now() -> float:
    """Bytes that the process holds in memory."""
    try:
        with open("/proc/self/statm") as statm:
            return float(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 300e6  # where the system does not say: what it is elsewhere, with every library loaded
