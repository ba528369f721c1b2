"""shares and spans of time -> words, the same under every picture."""

from __future__ import annotations

import numpy as np

from .judged import Judged


def percent(share: float) -> str:
    """Two digits that mean something; a level that was asked for is told as it was given."""
    if share < 0.01:
        return f"{100 * share:.2g} %"
    return f"{100 * share:.1f} %" if share < 0.0995 else f"{100 * share:.0f} %"


def asked(report: Judged) -> str:
    """The alarm level as it was given."""
    return f"{100 * report.alpha:g} %"


def duration(span: np.timedelta64 | int) -> str:
    """A span of time in the largest unit that it fills, or in ticks."""
    if not isinstance(span, np.timedelta64):
        return f"{span:,} tick{'s' if span != 1 else ''}"
    seconds = float(span / np.timedelta64(1, "s"))
    for size, name in ((86400.0, "day"), (3600.0, "hour"), (60.0, "minute"), (1.0, "second")):
        if seconds >= size:
            n = seconds / size
            return f"{n:.3g} {name}{'s' if n != 1 else ''}"
    return f"{seconds:g} seconds"
