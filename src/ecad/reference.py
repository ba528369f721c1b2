"""settings, training panel -> Reference: the rules of ranking, once it is certain that alpha is within their reach.

A p-value of n scores is at least 1 / (n + 1). Where that is above alpha for the largest set of past scores that can
ever be collected, no reading could alarm, and a detector that is silent for ever would look like a quiet network.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _kernels, ensemble, pvalues
from .errors import FitError, SettingError, warn
from .panel import Panel

Array = np.ndarray[Any, Any]

MORE_LEFT_OUT = 'Fit on more than two days, or use bootstrap="iid".'


def reference_of(plan: Any, panel: Panel, n_times: int, neighbours: int) -> pvalues.Reference:
    """The rules of ranking after `n_times` training times; refuses where no p-value could be as small as alpha."""
    if plan.reference == "seasonal" and panel.ticks_per_day is None:
        raise SettingError(
            'reference="seasonal" needs a clock and a step that divides a day: use reference="window".'
        )
    if plan.classes == "hour" and panel.week_seconds is None:
        raise SettingError('classes="hour" needs a panel with a clock, and this one has tick numbers only.')
    sides = {"both": _kernels.BOTH, "high": _kernels.HIGH, "low": _kernels.LOW}
    reference = pvalues.Reference(
        kind=plan.reference,
        pool=plan.pool,
        classes=plan.classes is not None and plan.reference != "local",
        absorb=plan.absorb,
        half_life=plan.half_life,
        form=plan.p_value,
        side=sides[plan.tail] if plan.score == "signed" else _kernels.HIGH,
        alpha=plan.alpha,
        lags=plan.lags,
        everywhere=plan.local == "or",
    )
    ages, counts = _largest_set(plan, panel, n_times, neighbours)
    n, smallest = int(counts.sum()), reference.smallest_p(ages, counts)
    if smallest > plan.alpha:
        _out_of_reach(
            plan,
            f"a reference set has at most {n} scores here, and the smallest p-value that they can give is "
            f"{smallest if n >= reference.need else 1 / (n + 1):.3g}. {_remedy(plan, reference)}",
        )
    return reference


def require_left_out(plan: Any, oob: ensemble.OutOfBag, reference: pvalues.Reference) -> None:
    """Times that every member saw have no score; a window must not begin with next to none."""
    n_times, n = oob.masks.shape[1], oob.n_predictors
    if n == 0 and plan.centre == "quantile":
        raise FitError(
            f"Every member saw each of the {n_times} training times, so there is no leave-one-out prediction to take "
            f"a quantile of. {MORE_LEFT_OUT}"
        )
    if reference.kind == "window" and n < reference.need:
        _out_of_reach(
            plan,
            f"of {n_times} training times only {n} were left out by a member and so have a score, and {reference.need} "
            f"are needed. {MORE_LEFT_OUT}",
        )


def _out_of_reach(plan: Any, why: str) -> None:
    text = f"alpha={plan.alpha:g} cannot be reached: {why}"
    if plan.unreachable == "refuse":
        raise FitError(text)
    warn(text)


def _largest_set(plan: Any, panel: Panel, n_times: int, neighbours: int) -> tuple[Array, Array]:
    """Ages (in ticks, the newest is 0) of the scores of the largest reference set, and how many there are of each."""
    if plan.reference == "seasonal":
        assert panel.ticks_per_day is not None
        ages = _seasonal_ages(panel.ticks_per_day)
        return ages, np.ones_like(ages)
    if plan.reference == "window":
        return np.arange(n_times), np.full(n_times, panel.n_sensors if plan.pool == "network" else 1)
    if plan.local == "and":
        return np.arange(plan.lags), np.full(plan.lags, neighbours)
    counts = np.full(max(n_times, plan.lags), neighbours)
    counts[: plan.lags] = panel.n_sensors
    return np.arange(len(counts)), counts


def _seasonal_ages(day: int) -> Array:
    """Those of the hour of the day that finds the most in 28 days of ticks."""
    hours = (np.arange(day) * 24 // day).astype(np.int8)
    past = np.arange(1, pvalues.SEASONAL_DAYS * day + 1)
    sets = [
        past[_kernels.near_on_circle(hours[(tick - past) % day], int(hours[tick]), 24)]
        for tick in np.unique(np.linspace(0, day - 1, 24).astype(np.int64))
    ]
    largest = max(sets, key=len)
    return largest - largest[0]


def _remedy(plan: Any, reference: pvalues.Reference) -> str:
    if plan.half_life is not None and plan.reference == "window":
        return f"Give a longer half_life than {plan.half_life:g}, or a larger alpha."
    if plan.reference == "window":
        return f"Fit on at least {reference.need} usable ticks (twice that with two tails), or give a larger alpha."
    return 'Use reference="window", or give a larger alpha.'
