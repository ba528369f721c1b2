"""one tick -> Verdict: the same stages as over a history, one tick at a time, with memory that does not grow."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np

from . import _threads
from .errors import PanelError
from .judging import VERDICT_COLUMNS, Judged, Memory, Model, judge
from .panel import MOST_CELLS, Panel, beside_tick, show_time, step_text, week_seconds
from .report import StandIn, Verdict

Array = np.ndarray[Any, Any]

GAP_BLOCK = 1024  # skipped ticks that are passed through at once


class Stream:
    """Judges ticks as they come. Each is scored before it is learned; what was fitted never changes.

    Made by `detector.stream()`, which goes on right after the fitted data. Its verdicts are those that
    `detector.detect` gives for the same readings.
    """

    def __init__(self, model: Model, memory: Memory, last_tick: Panel) -> None:
        self.model = model
        self.memory = memory
        self.last_tick = last_tick  # sensors, step and clock of the fitted panel
        self._step = _number(last_tick.step)
        self._last = _number(memory.last_time)
        self._place = {name: k for k, name in enumerate(last_tick.sensors)}

    def __repr__(self) -> str:
        return f"<Stream: {len(self.sensors)} sensors, newest tick {show_time(self.time, self.last_tick.time_zone)}>"

    @property
    def sensors(self) -> tuple[str, ...]:
        """The sensors, in the order of every array."""
        return self.last_tick.sensors

    @property
    def time(self) -> Any:
        """The newest tick that was judged, or the last one of the fitted data."""
        return np.datetime64(self._last, "us") if self.last_tick.has_clock else self._last

    def update(self, time: Any, values: Any) -> Verdict:
        """Judge the readings of one tick: values in the order of sensors, or a mapping sensor -> value.

        NaN, None and sensors that a mapping leaves out are not observed. Skipped ticks count as not observed. A time
        that is not after the last one is an error, and changes nothing.
        """
        row = self._row(values)
        ahead = self.ahead(time)
        moment = self._last + ahead * self._step
        with _threads.one_blas_thread():
            self._skip(ahead - 1)
            judged = self._judge(row[None, :], moment)
        self._last = moment
        self.memory.last_time = self.time
        columns: dict[str, Any] = {name: getattr(judged, name)[0] for name in VERDICT_COLUMNS}
        return Verdict(
            time=self.time,
            sensors=self.sensors,
            values=row,
            **columns,
            stand_ins=self._stand_ins(judged),
            gap=ahead - 1,
            time_zone=self.last_tick.time_zone,
        )

    def ahead(self, time: Any) -> int:
        """How many ticks after the newest one a time is; one that is on no tick, or not after it, is an error."""
        given = self._moment(time)
        moment = beside_tick(given, self._last, self._step, self.last_tick.has_clock)
        if moment is None or moment <= self._last:
            self._refuse(given, moment is None)
        ahead = (moment - self._last) // self._step
        if (ahead - 1) * len(self.sensors) > MOST_CELLS:
            self._refuse(given, False)
        return ahead

    def _judge(self, values: Array, first: int) -> Judged:
        seconds = None
        if self.last_tick.has_clock:
            moments = first + self._step * np.arange(len(values))
            seconds = week_seconds(moments.astype("datetime64[us]"), self.last_tick.time_zone)
        return judge(self.model, self.memory, values, seconds)

    def _skip(self, n: int) -> None:
        """Pass ticks through that nobody reported."""
        for start in range(0, n, GAP_BLOCK):
            length = min(GAP_BLOCK, n - start)
            nothing = np.full((length, len(self.sensors)), np.nan)
            self._judge(nothing, self._last + self._step * (start + 1))

    def _row(self, values: Any) -> Array:
        if isinstance(values, Mapping) or self._is_labelled(values):
            row = np.full(len(self.sensors), np.nan)
            for name, value in values.items():
                place = self._place.get(str(name))
                if place is None:
                    raise PanelError(
                        f"The tick has a reading of {name!r}, and no sensor of that name was fitted."
                    )
                row[place] = _reading(str(name), value)
            return row
        try:
            row = np.array(values, dtype=np.float64)
        except (TypeError, ValueError):
            row = np.array(
                [_reading(self.sensors[min(k, len(self.sensors) - 1)], v) for k, v in enumerate(values)]
            )
        if row.shape != (len(self.sensors),):
            raise PanelError(
                f"The tick has values of shape {row.shape}, and {len(self.sensors)} sensors were fitted: "
                "give one value for each, in their order, or a mapping sensor -> value."
            )
        row[np.isinf(row)] = np.nan  # as in a panel, an infinite value is no reading
        return row

    def _is_labelled(self, values: Any) -> bool:
        """Whether this is a series whose index names sensors."""
        return hasattr(values, "items") and any(str(name) in self._place for name, _ in values.items())

    def _moment(self, time: Any) -> int:
        if type(time) is np.datetime64 and self.last_tick.has_clock and not np.isnat(time):
            return int(time.astype("datetime64[us]").astype(np.int64))
        if (
            type(time) is dt.datetime
            and time.tzinfo is None
            and self.last_tick.time_zone is None
            and self.last_tick.has_clock
        ):
            return int(np.datetime64(time, "us").astype(np.int64))
        return _number(self.last_tick.moment(time))

    def _refuse(self, moment: int, off: bool) -> NoReturn:
        zone = self.last_tick.time_zone
        given = show_time(np.datetime64(moment, "us") if self.last_tick.has_clock else moment, zone)
        newest = show_time(self.time, zone)
        if off and moment > self._last:
            raise PanelError(
                f"The tick at {given} is not on the panel's step: one comes every {step_text(self.last_tick.step)} "
                f"after {newest}."
            )
        if moment > self._last:
            raise PanelError(
                f"From {newest} to {given} more ticks are missing than can be passed through: fit again on later data."
            )
        raise PanelError(
            f"The tick at {given} is not after the newest one, {newest}: every tick is judged once, in order."
        )

    def _stand_ins(self, judged: Judged) -> tuple[StandIn, ...]:
        usual = self.model.neighbours
        index = judged.neighbours[0]
        if (index == usual).all():
            return ()
        names = self.sensors
        return tuple(
            StandIn(names[k], names[usual[k, a]], names[index[k, a]], self.time, self.time)
            for k, a in np.argwhere(index != usual).tolist()
        )


def _reading(sensor: str, value: Any) -> float:
    if value is None:
        return np.nan
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise PanelError(
            f"The reading of {sensor!r} is {value!r}, and a number is needed (None where not observed)."
        ) from None
    return number if np.isfinite(number) else np.nan


def _number(moment: Any) -> int:
    """Microseconds, or the tick number itself."""
    if isinstance(moment, np.datetime64):
        return int(moment.astype("datetime64[us]").astype(np.int64))
    if isinstance(moment, np.timedelta64):
        return int(moment.astype("timedelta64[us]").astype(np.int64))
    return int(moment)
