"""seed -> settings: a sample of the detector's many combinations, the same for the tests of batch and stream.

What cannot stand together is not drawn; `test_detector` counts that every choice of every setting comes up.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ecad import Panel
from panels import SmallPanel, small_panel

N_TRAIN = 150  # ticks
N_LATER = 30
SEEDS = range(40)

CHOICES: dict[str, tuple[Any, ...]] = {
    "aggregation": ("mean", "median", "trimmed_mean", "largest"),
    "centre": ("ensemble", "quantile"),
    "score": ("absolute", "signed", "studentised"),
    "reference": ("window", "window", "pool", "seasonal", "local and", "local or"),
    "impute": ("gaussian", "gaussian", "seasonal", None),
    "classes": ("own_last", "hour", None),
    "absorb": ("runs", "all"),
    "p_value": ("conformal", "paper"),
    "tail": ("both", "high", "low"),
    "half_life": (None, 60.0),
    "train_on": ("observed", "observed", "all"),
    "bootstrap": ("block", "iid"),
    "groups": ("shared", "sensor", "two"),
    "same_tick": (False, True),
    "scale": ("sensor", None),
    "season": ("auto", None),
    "calendar": ("auto", False),
    "seasonal_lags": ("auto", None, (12,)),
    "rule": ("fixed", "bh"),
    "silent_after": ("auto", None, 10),
}


def largest(predictions: np.ndarray) -> np.ndarray:
    """A callable aggregation."""
    return np.max(predictions, axis=0)


def draw(seed: int) -> dict[str, Any]:
    """A choice for each setting, by name."""
    random = np.random.RandomState(seed)
    drawn = {name: options[random.randint(len(options))] for name, options in CHOICES.items()}
    drawn["reference"] = CHOICES["reference"][seed % 6]
    if drawn["reference"] == "pool":
        drawn["score"] = "studentised"
    if drawn["score"] != "signed":
        drawn["tail"] = "both"
    if drawn["impute"] is None:
        drawn["train_on"] = "observed"
    return drawn


def combination(seed: int) -> dict[str, Any]:
    """Settings of the detector."""
    drawn = draw(seed)
    if drawn["aggregation"] == "largest":
        drawn["aggregation"] = largest
    if drawn["groups"] == "two":
        drawn["groups"] = {"s0": "a", "s1": "b", "s2": "a", "s3": "b"}
    if drawn["reference"] == "pool":
        drawn.update(reference="window", pool="network")
    elif drawn["reference"].startswith("local"):
        drawn["reference"], drawn["local"] = drawn["reference"].split()
    width = 4 if drawn["impute"] is not None or drawn["reference"] == "local" else 2
    return {**drawn, "lags": 4, "neighbours": width, "alpha": 0.15, "n_members": 7, "random_state": seed}


def named(seed: int) -> str:
    """What is particular about a combination."""
    drawn = draw(seed)
    return "-".join(
        [str(seed), *(str(drawn[name]) for name in ("aggregation", "centre", "score", "reference", "impute"))]
    )


def panel_for(seed: int) -> SmallPanel:
    """Readings with random holes, bursts, empty ticks, stuck runs, often many ties, mostly a dead sensor."""
    complete_rows_only = draw(seed)["impute"] is None
    return small_panel(
        seed % 4,
        N_TRAIN + N_LATER,
        4,
        whole_numbers=seed % 4 == 1,
        holes=0.03 if complete_rows_only else 0.1,
        dead=not complete_rows_only,
        geometry="xy" if seed % 4 == 2 else "lonlat",
    )


def panel_of(small: SmallPanel) -> Panel:
    """The same readings as a panel of the package."""
    return Panel(
        values=small.values,
        sensors=small.sensors,
        times=small.times,
        step=np.timedelta64(small.step_seconds, "s"),
        positions=small.positions,
        geometry=small.geometry,
    )
