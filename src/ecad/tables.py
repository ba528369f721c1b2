"""Report, Simulation -> tables for files; and a table of verdicts -> the report that it came from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from . import datasets, metrics, neighbourhood
from .errors import PanelError
from .panel import Panel, make_frame, read_panel
from .report import STATUS, Report

if TYPE_CHECKING:
    from .datasets import Simulation

Array = np.ndarray[Any, Any]

USUAL_LEVELS = (0.05, 0.01, 0.1, 0.001, 0.02, 0.005, 0.002, 0.0001)
NUMBERS = {
    "p_value": "p_values", "score": "scores", "expected": "expected", "lower": "lower", "upper": "upper",
    "strength": "strength",
}  # fmt: skip


def episode_frame(report: Report) -> Any:
    """One row for each episode, in the kind of frame that the readings came in."""
    found = report.episodes
    kind = report.times.dtype

    def times(moments: list[Any]) -> Array:
        return np.array(moments, dtype=kind)

    def texts(words: list[str]) -> tuple[Array, list[str]]:
        return np.arange(len(words)), words

    return make_frame(
        {
            "start": times([episode.start for episode in found]),
            "end": times([episode.end for episode in found]),
            "sensors": texts([";".join(episode.sensors) for episode in found]),
            "n_alarms": np.array([episode.n_alarms for episode in found], dtype=np.int64),
            "min_p": np.array([episode.min_p for episode in found]),
            "peak_time": times([episode.peak[0] for episode in found]),
            "peak_sensor": texts([episode.peak[1] for episode in found]),
            "peak_strength": np.array([episode.peak_strength for episode in found]),
            "direction": texts([episode.direction for episode in found]),
            "observed": np.array([episode.observed for episode in found]),
            "expected": np.array([episode.expected for episode in found]),
            "sentence": texts([episode.sentence() for episode in found]),
        },
        report.panel.frame,
        report.panel.time_zone,
    )


def report_of(
    verdicts: Any,
    *,
    alpha: float | None = None,
    neighbours: int = 5,
    positions: Any = None,
    adjacency: Any = None,
    geometry: Any = None,
    time_zone: str | None = None,
) -> Report:
    """The report behind `report.to_frame()`, also when that was written to a file and read again.

    A table of verdicts knows neither positions nor neighbours: without them each sensor is on its own, and so are its
    episodes. Without `alpha`, it is the roundest level that these alarms can have had.
    """
    _require_columns(verdicts)
    codes = {word: float(code) for code, word in enumerate(STATUS.tolist())}
    numbers = verdicts.assign(
        alarm=verdicts["alarm"].astype(float), status_code=verdicts["status"].astype(str).map(codes)
    )

    def grid(column: str) -> Panel:
        return read_panel(numbers, layout="long", value=column, time_zone=time_zone)

    panel = read_panel(
        numbers, positions, adjacency, geometry=geometry, layout="long", value="value", time_zone=time_zone
    )
    parts: dict[str, Any] = {field: grid(column).values for column, field in NUMBERS.items()}
    alarms = grid("alarm").values == 1.0
    return Report(
        panel,
        **parts,
        alarms=alarms,
        status_codes=np.nan_to_num(grid("status_code").values, nan=1.0).astype(np.uint8),
        alpha=alpha if alpha is not None else _level(parts["p_values"], alarms),
        neighbours=_neighbours(panel, neighbours),
    )


def _require_columns(verdicts: Any) -> None:
    wanted = ["time", "sensor", "value", *NUMBERS, "alarm", "status"]
    absent = [name for name in wanted if name not in getattr(verdicts, "columns", ())]
    if absent:
        raise PanelError(
            f"The table has no column {absent[0]!r}, so it is no table of verdicts; needed is one as "
            "report.to_frame() and `ecad detect --out` give it."
        )


def _level(p_values: Array, alarms: Array) -> float:
    """The most usual level between the largest p that alarmed and the smallest that did not, or else the roundest."""
    largest = float(np.max(p_values, where=alarms & np.isfinite(p_values), initial=0.0))
    smallest = float(np.min(p_values, where=~alarms & np.isfinite(p_values), initial=1.0))
    usual = [level for level in USUAL_LEVELS if largest <= level < smallest]
    if usual:
        return usual[0]
    for digits in range(1, 7):
        unit = 10.0 ** (np.floor(np.log10(max(largest, 1e-12))) - digits + 1)
        rounded = float(f"{np.ceil(round(largest / unit, 6)) * unit:.{digits}g}")
        if largest <= rounded < smallest:
            return rounded
    return largest


def _neighbours(panel: Panel, n: int) -> Array:
    n = min(n, panel.n_sensors)
    if panel.positions is not None and panel.geometry is not None:
        return neighbourhood.order_by_position(panel.positions, panel.geometry, n)
    if panel.adjacency is not None:
        return neighbourhood.order_by_path(panel.n_sensors, *panel.adjacency, n)
    return np.arange(panel.n_sensors)[:, None]


def simulation_frames(simulation: Simulation) -> dict[str, Any]:
    """name -> frame: readings, positions and edges as `read_panel` takes them; the truth, and the events behind it."""
    panel = simulation.panel
    frames = {"readings": panel.to_frame()}
    everybody = (np.arange(panel.n_sensors), panel.sensors)
    if panel.positions is not None:
        east, north = ("x", "y") if panel.geometry == "xy" else ("lon", "lat")
        places = {"sensor": everybody, east: panel.positions[:, 0], north: panel.positions[:, 1]}
        frames["positions"] = make_frame(places, panel.frame)
    if panel.adjacency is not None:
        a, b, weight = panel.adjacency
        edges = {"a": (a, panel.sensors), "b": (b, panel.sensors), "weight": weight}
        frames["edges"] = make_frame(edges, panel.frame)
    t, k = np.nonzero(simulation.truth)
    true = {"time": panel.times[t], "sensor": (k, panel.sensors), "event": simulation.event_numbers[t, k]}
    frames["truth"] = make_frame(true, panel.frame, panel.time_zone)
    frames["events"] = _event_frame(simulation)
    return frames


def _event_frame(simulation: Simulation) -> Any:
    events, panel = simulation.events, simulation.panel
    number = np.arange(len(events))
    return make_frame(
        {
            "event": number + 1,
            "kind": (number, [event.kind for event in events]),
            "sensors": (number, [";".join(event.sensors) for event in events]),
            "start": np.array([event.start for event in events], dtype=panel.times.dtype),
            "end": np.array([event.end for event in events], dtype=panel.times.dtype),
            "size": np.array([event.size for event in events], dtype=np.float64),
            "effect": np.array([event.effect for event in events], dtype=np.float64),
        },
        panel.frame,
        panel.time_zone,
    )


def planted_and_found(simulation: Simulation, report: Report) -> dict[str, Any]:
    """Planted events of the judged times, by kind, and how many have an alarm; false alarms, by kind of day.

    Holidays are counted apart, and the day after each, whose features still hold it: nobody planted them, but a
    detector without a calendar is right to call them strange.
    """
    judged = slice(-len(report.times), None)
    truth, numbers = simulation.truth[judged], simulation.event_numbers[judged]
    kind_of = np.array(["", *(event.kind for event in simulation.events)])[numbers]
    observed = ~np.isnan(report.values)

    def score(of: Array) -> dict[str, Any]:
        counted = metrics.score_alarms(report.alarms & of, truth & of, observed, numbers * of)
        return {"events": counted.n_events, "found": counted.n_found, "ticks_until_found": counted.delay}

    day = simulation.panel.times.astype("datetime64[D]")
    free = np.unique(day[simulation.holidays])
    holiday = (np.isin(day, free) | np.isin(day - 1, free))[judged, None]
    quiet = ~truth & np.isfinite(report.p_values)
    return {
        "kinds": {kind: score(kind_of == kind) for kind in datasets.KINDS},
        "all": score(np.ones_like(truth)),
        "false_alarms": {
            name: {"readings": int(of.sum()), "share": float(report.alarms[of].mean()) if of.any() else None}
            for name, of in {"ordinary_days": quiet & ~holiday, "holidays": quiet & holiday}.items()
        },
    }
