"""Given on the caller's clock -> Given in UTC: hours that a clock skips, and hours that it shows twice."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..errors import PanelError, SettingError
from .arrays import IntArray
from .clock import tzinfo_of
from .given import Earlier, Given
from .options import Options
from .stamps import NOT_A_TIME, Stamps


def on_utc(given: Given, options: Options, like: Earlier | None, repairs: dict[str, int]) -> Given:
    """Aware times stay (they are UTC already); naive ones go there when a zone was stated."""
    stamps = given.stamps
    if not stamps.clock:
        if like is not None and like.has_clock and not stamps.rows:
            raise PanelError(
                "The times are tick numbers, but the fitted data has a clock; give dates with times."
            )
        if options.zone is not None and like is None:
            raise SettingError(
                f"time_zone={options.zone!r} needs a clock, but the times are tick numbers; say time_unit= if they "
                "count seconds or the like since 1970."
            )
        return given
    if like is not None and not like.has_clock:
        raise PanelError(
            "The times have a clock, but the fitted data has tick numbers; give tick numbers or an array."
        )
    if like is not None and like.time_zone is None and stamps.zone is not None:
        raise PanelError(
            f"The times are in the zone {stamps.zone}, but the fitted data has a clock without a zone; "
            f"take the zone off, or read the fitted data with time_zone=."
        )
    if stamps.zone is not None:
        return replace(given, stamps=replace(stamps, zone=options.zone or stamps.zone))
    if options.zone is None:
        return given
    return _localised(given, options.zone, repairs)


def _localised(given: Given, zone: str, repairs: dict[str, int]) -> Given:
    """Local clock -> UTC. In the hour shown twice, the second reading of a sensor is the second hour's."""
    import pandas as pd

    codes, unique = pd.factorize(given.stamps.ticks)
    clock = pd.DatetimeIndex(unique.view("datetime64[us]"))
    flags = np.ones(len(clock), dtype=bool)
    early, late = (
        clock.tz_localize(tzinfo_of(zone), ambiguous=first, nonexistent="NaT").as_unit("us").asi8
        for first in (flags, ~flags)
    )
    skipped = (early == NOT_A_TIME)[codes]
    if (lost := skipped & given.has_reading()).any():
        row = int(np.argmax(lost))
        raise PanelError(
            f"Sensor {given.first_reading(row)!r} has a reading at {given.stamps.show(row)}, which the clock of "
            f"{zone} skips; say time_zone='UTC' or the fixed offset the times are in, such as '+01:00'."
        )
    ticks = early[codes]
    rows = np.flatnonzero((early != late)[codes] & ~skipped)
    if len(rows):
        ticks[rows] = _hours_shown_twice(given, codes[rows], rows, early, late, repairs)
    repairs["skipped hours"] = int(skipped.sum())
    given = replace(given, stamps=Stamps(ticks, clock=True, zone=zone)).kept(~skipped)
    if not len(given.stamps.ticks):
        raise PanelError(f"No row has a time that the clock of {zone} shows; give readings at other times.")
    return given


def _hours_shown_twice(
    given: Given, codes: IntArray, rows: IntArray, early: IntArray, late: IntArray, repairs: dict[str, int]
) -> IntArray:
    import pandas as pd

    sensor = np.zeros(len(rows), dtype=np.int64) if given.codes is None else given.codes[rows]
    seen = pd.Series(codes * max(len(given.sensors), 1) + sensor)
    second = seen.groupby(seen).cumcount().to_numpy() > 0
    ticks = np.where(second, late[codes], early[codes])
    order = np.argsort(sensor, kind="stable")
    back = (np.diff(sensor[order]) == 0) & (np.diff(ticks[order]) < 0)
    if second.any() and back.any():
        row = int(rows[order][int(np.argmax(back))])
        raise PanelError(
            f"The clock shows {given.stamps.show(row)} twice, and the rows around it are not in the order of time, "
            "so the two cannot be told apart; sort the rows, or give the times in UTC."
        )
    repairs["ambiguous hours"] = len(np.unique(codes[~np.isin(seen, seen[second])]))
    return ticks
