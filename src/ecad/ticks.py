"""lines of JSON -> ticks: whole ticks, or readings that are gathered until their tick is complete.

A line is one of

    {"time": "2025-01-06 13:00", "values": {"S01": 612.0, "S02": null}}
    {"time": "2025-01-06 13:00", "values": [612.0, null]}
    {"time": "2025-01-06 13:00", "sensor": "S01", "value": 612.0}

The last is one reading; its tick is complete when a later time comes, or the end. Where ticks are numbered and have no
clock, a whole tick may come without a time: it is the next one.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from .errors import PanelError
from .panel import Panel, show_time


class Tick(NamedTuple):
    """What is known of one tick."""

    time: Any  # None: the one after the newest
    values: Any  # a list in the order of sensors, or a mapping sensor -> reading
    line: int  # where it begins


class TickReader:
    """Remembers the readings of the tick that is not complete yet."""

    def __init__(self, fitted: Panel) -> None:
        self._fitted = fitted  # whose sensors and clock the ticks have
        self._sensors = frozenset(fitted.sensors)
        self._open: Tick | None = None

    def read(self, line: bytes, number: int) -> list[Tick]:
        """The ticks that are complete with this line: none, one or two. An error leaves the line out, and only it."""
        entry = _entry(line)
        if entry is None:
            return []
        if "values" in entry:
            return [*self.close(), self._whole(entry, number)]
        if "sensor" in entry and "value" in entry:
            return self._gather(entry, number)
        raise PanelError('a line needs "values", or "sensor" and "value".')

    def close(self) -> list[Tick]:
        """What is still open counts as complete."""
        last, self._open = self._open, None
        return [] if last is None else [last]

    def _whole(self, entry: dict[str, Any], number: int) -> Tick:
        if not isinstance(entry["values"], dict | list):
            raise PanelError(
                '"values" must be a mapping sensor -> value, or a list in the order of the sensors.'
            )
        if entry.get("time") is None and self._fitted.has_clock:
            raise PanelError('it has no "time", and the model has a clock.')
        time = None if entry.get("time") is None else self._moment(entry["time"])
        return Tick(time, entry["values"], number)

    def _gather(self, entry: dict[str, Any], number: int) -> list[Tick]:
        if entry.get("time") is None:
            raise PanelError('a single reading needs a "time", by which it finds its tick.')
        time, sensor = self._moment(entry["time"]), str(entry["sensor"])
        if sensor not in self._sensors:
            raise PanelError(f"it has a reading of {sensor!r}, and no sensor of that name was fitted.")
        value = _number(sensor, entry["value"])
        if self._open is not None and time == self._open.time:
            if sensor in self._open.values:
                raise PanelError(f"it is a second reading of {sensor!r} at {self._show(time)}.")
            self._open.values[sensor] = value
            return []
        if self._open is not None and time < self._open.time:
            raise PanelError(
                f"the reading of {sensor!r} at {self._show(time)} comes after one at {self._show(self._open.time)}: "
                "readings must be given tick by tick."
            )
        complete = self.close()
        self._open = Tick(time, {sensor: value}, number)
        return complete

    def _moment(self, time: Any) -> Any:
        return self._fitted.snapped(self._fitted.moment(time))

    def _show(self, time: Any) -> str:
        return show_time(time, self._fitted.time_zone)


def _entry(line: bytes) -> dict[str, Any] | None:
    """A line as a mapping; None for an empty one."""
    try:
        text = line.decode("utf-8-sig").strip()
        entry = json.loads(text) if text else None
    except UnicodeDecodeError as error:
        raise PanelError(f"it is not UTF-8 (byte {error.start + 1}).") from error
    except json.JSONDecodeError as error:
        raise PanelError(f"it is not JSON ({error.msg}, character {error.pos + 1}).") from error
    except RecursionError:
        raise PanelError(
            "it is not JSON that a tick could be: too many brackets within one another."
        ) from None
    if entry is not None and not isinstance(entry, dict):
        raise PanelError(
            f'it is a {type(entry).__name__}, and an object like {{"time": ..., "values": ...}} is needed.'
        )
    return entry


def _number(sensor: str, value: Any) -> float | None:
    try:
        return None if value is None else float(value)
    except (TypeError, ValueError):
        raise PanelError(
            f"the reading of {sensor!r} is {value!r}, and a number is needed (null where not observed)."
        ) from None
