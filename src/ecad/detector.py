"""panel -> Report: ECAD as a scikit-learn estimator.

What it learns stands in `training`, how it judges in `judging`.
"""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import BaseEstimator

from . import _checks, _threads, settings
from .continuation import continue_after
from .errors import SettingError
from .judging import VERDICT_COLUMNS, Judged, Memory, Model, judge
from .panel import Panel, as_panel
from .report import Report, StandIn
from .training import train

if TYPE_CHECKING:
    from .stream import Stream

Array = np.ndarray[Any, Any]

BLOCK_ROWS = 1 << 15  # (tick, sensor) rows that are judged at once


class ECAD(BaseEstimator):
    """Ensemble conformal anomaly detection over a panel of sensors.

    B bootstrap members predict each reading from the recent past of its sensor and of that sensor's neighbours. How far
    a reading lies from what was expected is ranked among past residuals, each made by members that had not seen the
    reading: the rank is a p-value. An alarm is exactly `p <= alpha`.

    Right when readings, given their recent past, miss their expectation today as they did in the reference window:
    then a share alpha of quiet readings alarms, in the long run and on average over sensors and hours. Not right as a
    promise for every hour of the day or for every single sensor, after the relation between past and present has
    changed, or for the first ticks after a gap; see "What the p-value promises" in the docs.

    Parameters are described in the settings table (`ecad.settings.SETTINGS`, and in the docs). The most used:

    Parameters
    ----------
    regressor : "ridge" or a scikit-learn regressor
        The members. Ridge has strength 1 and is fitted for all members in one pass.
    n_members : int
        B, how many bootstrap members.
    lags, neighbours : int
        A prediction looks at the newest `lags` readings of the `neighbours` nearest sensors, itself included.
    impute : "gaussian", "seasonal", "iterative", "keep" or None
        How holes are filled in features. A filled cell is never judged and never calibrates.
    score : "absolute", "signed" or "studentised"
    reference : "window", "seasonal" or "local"
        Which past scores a score is ranked among.
    alpha : float
        The share of false alarms asked for.
    random_state : int or None

    Attributes
    ----------
    in_bag_ : (B, T') array
        How often each member drew each training time.
    train_times_ : (T',) array
        The training times with at least one usable row.
    calibration_scores_ : (T', sensor) array
        Leave-one-out scores of training, NaN where there is none.
    n_never_left_out_ : int
        Training times that every member saw; they have no leave-one-out prediction.
    """

    def __init__(
        self,
        regressor: Any = "ridge",
        n_members: int = 25,
        aggregation: Any = "mean",
        lags: int = 5,
        neighbours: int = 5,
        impute: str | None = "gaussian",
        train_on: str = "observed",
        bootstrap: str = "block",
        centre: str = "ensemble",
        score: str = "absolute",
        reference: str = "window",
        pool: str = "sensor",
        classes: str | None = "own_last",
        absorb: str = "runs",
        half_life: float | None = None,
        p_value: str = "conformal",
        tail: str = "both",
        alpha: float = 0.05,
        random_state: Any = None,
        n_jobs: int | None = None,
        *,
        seasonal_lags: Any = "auto",
        calendar: Any = "auto",
        season: str | None = "auto",
        same_tick: bool = False,
        scale: str | None = "sensor",
        silent_after: Any = "auto",
        groups: Any = "shared",
        centre_level: float | None = None,
        local: str = "and",
        rule: str = "fixed",
        unreachable: str = "refuse",
        dtype: str = "float64",
        progress: bool | None = None,
    ) -> None:
        self.regressor = regressor
        self.n_members = n_members
        self.aggregation = aggregation
        self.lags = lags
        self.neighbours = neighbours
        self.impute = impute
        self.train_on = train_on
        self.bootstrap = bootstrap
        self.centre = centre
        self.score = score
        self.reference = reference
        self.pool = pool
        self.classes = classes
        self.absorb = absorb
        self.half_life = half_life
        self.p_value = p_value
        self.tail = tail
        self.alpha = alpha
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.seasonal_lags = seasonal_lags
        self.calendar = calendar
        self.season = season
        self.same_tick = same_tick
        self.scale = scale
        self.silent_after = silent_after
        self.groups = groups
        self.centre_level = centre_level
        self.local = local
        self.rule = rule
        self.unreachable = unreachable
        self.dtype = dtype
        self.progress = progress

    @classmethod
    def paper(cls, regressor: Any = "lstm", **overrides: Any) -> Self:
        """The paper's settings, and the authors' code where the paper is silent; `overrides` change single ones.

        Kept for comparison. Its filled targets, its small local reference set and its p-value without the tested score
        do not hold the false-alarm rate that they are asked for; `ECAD()` does.
        """
        unknown = sorted(set(overrides) - set(inspect.signature(cls).parameters))
        if unknown:
            raise SettingError(f"ECAD.paper() was given {unknown[0]!r}, which is no setting of ECAD.")
        return cls(**{"regressor": regressor, **settings.PAPER, **overrides})

    def fit(self, panel: Any, y: None = None) -> Self:
        """Learn from a training panel (Panel, frame or (time, sensor) array); all or nothing is learned."""
        plan = settings.checked(**self.get_params(deep=False))
        panel = as_panel(panel)
        trained = train(plan, panel)
        self.model_: Model = trained.model
        self.memory_: Memory = trained.memory
        self.last_tick_: Panel = panel[-1:]
        self.in_bag_ = trained.in_bag
        self.train_ticks_ = trained.train_times
        self.train_times_ = panel.times[trained.train_times]
        self.calibration_scores_ = trained.calibration_scores
        self.seed_ = trained.seed
        return self

    @property
    def sensors_(self) -> tuple[str, ...]:
        """The fitted sensors, in the order of every array."""
        return self.last_tick_.sensors

    @property
    def neighbours_(self) -> Array:
        """(sensor, neighbour) index, itself first."""
        return self.model_.neighbours

    @property
    def unfitted_sensors_(self) -> tuple[str, ...]:
        """Sensors that had no reading in training."""
        return tuple(np.array(self.sensors_)[~self.model_.fitted].tolist())

    @property
    def n_never_left_out_(self) -> int:
        """Training times that every member saw."""
        return int(self.in_bag_.shape[1] - self.model_.oob.n_predictors)

    def detect(self, later: Any) -> Report:
        """Judge readings that follow the fitted ones; nothing of the detector changes, twice gives the same.

        A gap after the fitted data becomes rows of missing readings; an overlap or an earlier time is an error.
        """
        _checks.fitted(self, "model_")
        panel = as_panel(later, like=self.last_tick_)
        values, times = continue_after(panel, self.last_tick_)
        judged_panel = replace(
            self.last_tick_, values=values, times=times, repairs=panel.repairs, frame=panel.frame
        )
        parts = self._judge_blocks(judged_panel)
        columns: dict[str, Any] = {
            name: np.concatenate([getattr(part, name) for part in parts]) for name in VERDICT_COLUMNS
        }
        return Report(
            panel=judged_panel,
            **columns,
            alpha=self.model_.reference.alpha,
            neighbours=self.neighbours_,
            stand_ins=_stand_ins(parts, judged_panel, self.neighbours_),
        )

    def _judge_blocks(self, panel: Panel) -> list[Judged]:
        memory = self.memory_.copy()
        threads = _threads.available(self.n_jobs)
        seconds = panel.week_seconds
        size = max(1, BLOCK_ROWS // panel.n_sensors)
        parts = []
        with _threads.one_blas_thread():
            for start in range(0, panel.n_times, size):
                block = slice(start, start + size)
                week_seconds = None if seconds is None else seconds[block]
                parts.append(judge(self.model_, memory, panel.values[block], week_seconds, threads))
        return parts

    def stream(self) -> Stream:
        """A stream that goes on from the end of the fitted data, one tick at a time."""
        from .stream import Stream

        _checks.fitted(self, "model_")
        return Stream(self.model_, self.memory_.copy(), self.last_tick_)


def _stand_ins(parts: list[Judged], panel: Panel, usual: Array) -> tuple[StandIn, ...]:
    """Who stood in for whom, as spans of time, read off the neighbourhoods of each block."""
    spans: dict[tuple[int, int, int], list[list[int]]] = {}
    start = 0
    for part in parts:
        if len(part.neighbours) > 1 or (part.neighbours[0] != usual).any():
            for t, k, a in np.argwhere(part.neighbours != usual).tolist():
                runs = spans.setdefault((k, int(usual[k, a]), int(part.neighbours[t, k, a])), [])
                if runs and runs[-1][1] == start + t - 1:
                    runs[-1][1] = start + t
                else:
                    runs.append([start + t, start + t])
        start += len(part.p_values)
    names, times = panel.sensors, panel.times
    found = [
        (first, StandIn(names[k], names[old], names[new], times[first], times[last]))
        for (k, old, new), runs in spans.items()
        for first, last in runs
    ]
    return tuple(stand_in for _, stand_in in sorted(found, key=lambda pair: (pair[0], *pair[1][:3])))
