"""p-values of a history -> Report; of one tick -> Verdict: what is handed to people, under the same names."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from . import episodes as _episodes
from .episodes import Episode
from .panel import Panel, make_frame, show_time

if TYPE_CHECKING:
    from pathlib import Path

Array = np.ndarray[Any, Any]

TESTED, MISSING, WARMING_UP, NO_FEATURES, ALL_CLASSES, NOT_FITTED = range(6)
STATUS = np.array(["tested", "missing", "warming up", "no features", "all classes", "not fitted"])

COLUMNS = ("value", "expected", "lower", "upper", "score", "p_value", "strength", "alarm", "status")
_FIELDS = {"value": "values", "score": "scores", "p_value": "p_values", "alarm": "alarms"}


class StandIn(NamedTuple):
    """From start to end (inclusive) `replacement` stood in for the silent `neighbour` of `sensor`."""

    sensor: str
    neighbour: str
    replacement: str
    start: Any
    end: Any


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Verdicts:
    """What is said of readings, in arrays of one shape: of a history, of a tick, or of rows."""

    p_values: Array
    scores: Array
    expected: Array
    lower: Array
    upper: Array
    strength: Array
    alarms: Array
    status_codes: Array

    @property
    def status(self) -> Array:
        """Words, those of STATUS. "all classes" is tested too, but its own class had too few scores."""
        return STATUS[self.status_codes]

    def columns(self) -> dict[str, Any]:
        """The columns of a table of verdicts: arrays by name; the status as its codes, and the words behind them."""
        numbers = {name: getattr(self, _FIELDS.get(name, name)).ravel() for name in COLUMNS[:-1]}
        return {**numbers, "status": (self.status_codes.ravel(), tuple(STATUS))}


@dataclass(frozen=True, eq=False, repr=False)
class Report(Verdicts):
    """Verdicts on a history; every array is (time, sensor) in the panel's sensor order.

    A reading that was not observed, or could not be judged, has NaN for its p-value and never alarms; `status` says
    why. `lower` and `upper` are the readings between which there is no alarm at alpha.
    """

    panel: Panel
    alpha: float
    neighbours: Array
    stand_ins: tuple[StandIn, ...] = ()

    @property
    def times(self) -> Array:
        """The judged ticks."""
        return self.panel.times

    @property
    def sensors(self) -> tuple[str, ...]:
        """The panel's sensors."""
        return self.panel.sensors

    @property
    def values(self) -> Array:
        """The judged readings, NaN where not observed."""
        return self.panel.values

    @cached_property
    def episodes(self) -> list[Episode]:
        """Alarms that touch in time and neighbourhood, as one event each."""
        return _episodes.describe(
            alarms=self.alarms,
            neighbours=self.neighbours,
            times=self.times,
            sensors=self.sensors,
            values=self.values,
            expected=self.expected,
            p_values=self.p_values,
            strength=self.strength,
            time_zone=self.panel.time_zone,
        )

    def to_frame(self) -> Any:
        """One row for each (time, sensor), in the kind of frame that the readings came in."""
        return self.panel.long_frame(self.columns())

    def plot(self, path: str | Path | None = None, sensors: Any = None) -> Any:
        """A figure of p-values, readings and bands; written to `path` when given (needs the extra `plot`)."""
        from . import plots

        figure = plots.figure(self, sensors=sensors)
        if path is not None:
            plots.save_picture(figure, path)
        return figure

    def summary(self) -> str:
        """A few sentences: what was judged, and what was found."""
        tested = np.isfinite(self.p_values)
        n_tested, n_alarms = int(tested.sum()), int(self.alarms.sum())
        share = f" ({n_alarms / n_tested:.2%})" if n_tested else ""
        lines = [
            f"{len(self.times):,} ticks of {len(self.sensors):,} sensors: {n_tested:,} readings tested at alpha = "
            f"{self.alpha:g}, {_counted(n_alarms, 'alarm')}{share} in {_counted(len(self.episodes), 'episode')}."
        ]
        for code in (MISSING, WARMING_UP, NO_FEATURES, NOT_FITTED):
            n = int(np.sum(self.status_codes == code))
            if n:
                lines.append(f"{n:,} readings have no verdict: {STATUS[code]}.")
        if self.stand_ins:
            silent = sorted({stand_in.neighbour for stand_in in self.stand_ins})
            named = ", ".join(silent[:5]) + (" and others" if len(silent) > 5 else "")
            lines.append(f"Silent sensors replaced by a stand-in in their neighbourhoods: {named}.")
        return "\n".join(lines)

    def __repr__(self) -> str:
        size = f"{len(self.times)} ticks x {len(self.sensors)} sensors"
        return f"<Report: {size}, {_counted(int(self.alarms.sum()), 'alarm')} at {self.alpha:g}>"


@dataclass(frozen=True, eq=False, repr=False)
class RowReport(Verdicts):
    """Verdicts on rows (X, y); the names are those of a Report, every array is (row,)."""

    values: Array
    alpha: float

    def to_frame(self) -> Any:
        """One row for each row, a pandas frame."""
        return make_frame(self.columns(), "pandas", None)

    def __repr__(self) -> str:
        return f"<RowReport: {len(self.values)} rows, {_counted(int(self.alarms.sum()), 'alarm')} at {self.alpha:g}>"


@dataclass(frozen=True, eq=False, repr=False)
class Verdict(Verdicts):
    """Verdicts on one tick; the names are those of a Report, every array is (sensor,)."""

    time: Any
    sensors: tuple[str, ...]
    values: Array
    stand_ins: tuple[StandIn, ...] = ()
    gap: int = 0  # ticks that were skipped before this one, taken as not observed
    time_zone: str | None = None

    def __repr__(self) -> str:
        tested, alarms = int(np.isfinite(self.p_values).sum()), _counted(int(self.alarms.sum()), "alarm")
        return f"<Verdict: {self.time_text}, {tested} of {len(self.sensors)} sensors tested, {alarms}>"

    @property
    def time_text(self) -> int | str:
        """The time as it is written in JSON: on the panel's own clock, or a tick number."""
        return (
            show_time(self.time, self.time_zone).replace(" ", "T")
            if isinstance(self.time, np.datetime64)
            else int(self.time)
        )

    def to_records(self) -> list[dict[str, Any]]:
        """One dict for each sensor, ready for JSON: what is unknown is None."""
        time = self.time_text
        columns = [_plain(getattr(self, _FIELDS.get(name, name))) for name in COLUMNS]
        return [
            {"time": time, "sensor": sensor, **dict(zip(COLUMNS, row, strict=True))}
            for sensor, *row in zip(self.sensors, *columns, strict=True)
        ]


def _plain(column: Array) -> list[Any]:
    if column.dtype.kind == "f":
        return [x if np.isfinite(x) else None for x in column.tolist()]
    return list(column.tolist())


def _counted(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"
