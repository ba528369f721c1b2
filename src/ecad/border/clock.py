"""a step, a time, a zone -> what a clock says of it: ticks, seconds of the week, names and texts."""

from __future__ import annotations

import datetime as dt
import re
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt

from ..errors import PanelError, SettingError
from .arrays import IntArray, Step

DAY = 86_400_000_000  # microseconds
UNITS = {
    "ns": 0.001, "us": 1.0, "ms": 1e3, "s": 1e6, "min": 6e7, "h": 3.6e9, "D": float(DAY),
}  # fmt: skip
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def week_seconds(times: Any, time_zone: str | None = None) -> IntArray:
    """Seconds since Monday 00:00 on the local clock, of one time or many, which are UTC when there is a zone."""
    seconds = local_times(times, time_zone).astype(np.int64) // 1_000_000
    return np.asarray((seconds + 3 * 86_400) % (7 * 86_400), dtype=np.int64)  # 1970 began on a Thursday


def local_times(times: Any, time_zone: str | None = None) -> npt.NDArray[np.datetime64]:
    """Times on the wall clock, of one time or many, which are UTC when there is a zone."""
    array = np.asarray(times, dtype="datetime64[us]")
    zone = None if time_zone is None or time_zone == "UTC" else tzinfo_of(time_zone)
    if zone is None:
        return array
    if array.size == 1 or isinstance(zone, dt.timezone):
        # a stream asks at every tick: no pandas for one time
        moment = _EPOCH + dt.timedelta(microseconds=int(array.reshape(-1)[:1].astype(np.int64).sum()))
        offset = moment.astimezone(zone).utcoffset() or dt.timedelta()
        return np.asarray(array + np.timedelta64(offset, "us"))
    import pandas as pd

    local = pd.DatetimeIndex(array.reshape(-1)).tz_localize("UTC").tz_convert(zone).tz_localize(None)
    return np.asarray(local.as_unit("us").to_numpy().reshape(array.shape))


def ticks_per_day(step: Step) -> int | None:
    """Ticks in a day; None without a clock or when the step does not divide a day."""
    if not isinstance(step, np.timedelta64):
        return None
    size = step_ticks(step)
    return DAY // size if DAY % size == 0 else None


def show_time(time: Any, time_zone: str | None = None) -> str:
    """A time as people write it, on the local clock: 2025-01-31 13:00:00+01:00, or 'tick 7'."""
    if not isinstance(time, np.datetime64):
        return f"tick {int(time)}"
    text = str(time.astype("datetime64[us]")).replace("T", " ")
    if time_zone is not None:
        moment = _EPOCH + dt.timedelta(microseconds=int(time.astype("datetime64[us]").astype(np.int64)))
        text = moment.astimezone(tzinfo_of(time_zone)).isoformat(" ", "microseconds")
    return text.replace(".000000", "")


def step_text(step: Step) -> str:
    """A step as it may be stated: '15min', '1h', or a number of ticks."""
    size = step_ticks(step)
    if not isinstance(step, np.timedelta64):
        return str(size)
    units = (
        ("D", DAY),
        ("h", 3_600_000_000),
        ("min", 60_000_000),
        ("s", 1_000_000),
        ("ms", 1_000),
        ("us", 1),
    )
    return next(f"{size // unit}{name}" for name, unit in units if size % unit == 0)


def stated_step(step: Any, clock: bool) -> int | None:
    """A stated step -> microseconds or ticks; None when none was stated."""
    import pandas as pd

    if step is None:
        return None
    whole = isinstance(step, (int, np.integer)) and not isinstance(step, (bool, np.timedelta64))
    if not clock:
        if whole and int(step) > 0:
            return int(step)
        if whole or isinstance(step, (float, bool)):
            raise SettingError(f"step={step!r} must be a whole number of ticks, at least 1.")
        raise PanelError(
            f"step={step!r} is a time, but the data has tick numbers and no clock; give a whole number, "
            f"or time_unit= or start= for a clock."
        )
    if whole or isinstance(step, (float, bool)) or (isinstance(step, str) and step.strip().isdigit()):
        raise SettingError(
            f"step={step!r} has no unit, but the times have a clock; say step='1h' or the like."
        )
    try:
        text = step.strip() if isinstance(step, str) else step
        size = pd.Timedelta(f"1{text}" if isinstance(text, str) and text.isalpha() else text)
    except (ValueError, TypeError, OverflowError) as error:
        raise SettingError(
            f"step={step!r} is no length of time ({error}); say '15min', '1h', '1D' or the like."
        ) from error
    if pd.isna(size) or size <= pd.Timedelta(0) or size.nanoseconds:
        raise SettingError(f"step={step!r} must be longer than nothing, in whole microseconds.")
    return int(size.as_unit("us")._value)


def step_ticks(step: Any) -> int:
    """A step as a whole number: microseconds, or ticks."""
    return (
        int(step.astype("timedelta64[us]").astype(np.int64))
        if isinstance(step, np.timedelta64)
        else int(step)
    )


@lru_cache(maxsize=64)
def tzinfo_of(name: str) -> dt.tzinfo:
    """A zone by its name: IANA, UTC, or a fixed offset."""
    if name.upper() in ("UTC", "Z"):
        return dt.UTC
    if re.fullmatch(r"[+-]\d{2}:\d{2}", name):
        size = dt.timedelta(hours=int(name[1:3]), minutes=int(name[4:6]))
        if size < dt.timedelta(hours=24):
            return dt.timezone(-size if name[0] == "-" else size)
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise SettingError(
            f"time_zone={name!r} is not known; give an IANA name such as 'Europe/Berlin', 'UTC', or an offset such "
            "as '+01:00'."
        ) from error


def zone_name(zone: Any) -> str:
    """The name of a zone, however it is given."""
    if isinstance(zone, str):
        tzinfo_of(zone)
        return "UTC" if zone.upper() in ("UTC", "Z") else zone
    name = getattr(zone, "key", None) or getattr(zone, "zone", None)
    if isinstance(name, str):
        return zone_name(name)
    offset = zone.utcoffset(None) if isinstance(zone, dt.tzinfo) else None
    if offset is None or offset.total_seconds() % 60:
        raise SettingError(
            f"The time zone {zone!r} has no IANA name; use zoneinfo.ZoneInfo, UTC or a fixed offset."
        )
    minutes = int(offset.total_seconds()) // 60
    return (
        "UTC"
        if not minutes
        else f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02d}:{abs(minutes) % 60:02d}"
    )
