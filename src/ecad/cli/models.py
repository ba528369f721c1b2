"""readings -> a model file (`fit`); what that will take (`plan`), and what is in one (`info`)."""

from __future__ import annotations

import time as clock
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from .command import command
from .options import TABLES, AsJson, ModelFile, Paper, Words
from .telling import busy, panel_facts, plain, size, span, table_text, tell
from .words import detector_of, files_of, load_model, panel_of, refuse_overwriting

if TYPE_CHECKING:
    from ..detector import ECAD
    from ..panel import Panel

Data = Annotated[str, typer.Argument(metavar="DATA", help="CSV, Parquet or Feather file, wide or long.")]


@command(**TABLES)
def fit(
    data: Data,
    model: Annotated[str, typer.Option("--model", "-m", help="Write the fitted model here.")] = "model.ecad",
    paper: Paper = False,
    as_json: AsJson = False,
    *,
    reading: Words,
    places: Words,
    method: Words,
) -> None:
    """Learn from a history of readings, and write what was learned to a model file."""
    from ..modelfile import save

    refuse_overwriting([data, *files_of(places, method)], {"--model": model})
    detector = detector_of(method, paper)
    panel = panel_of(data, reading, places)
    seconds = timed_fit(detector, panel)
    save(detector, model)
    facts = {
        **panel_facts(panel),
        "members": detector.n_members,
        "training_times": len(detector.train_times_),
        "never_left_out": detector.n_never_left_out_,
        "seconds": round(seconds, 3),
        "model": model,
    }
    lines = [
        panel.describe(),
        f"fitted {detector.n_members} members to {len(detector.train_times_):,} times in {span(seconds)}",
        *_never_left_out(detector),
        f"written: {model} ({size(Path(model).stat().st_size)})",
    ]
    tell(facts, lines, as_json)


def timed_fit(detector: ECAD, panel: Panel) -> float:
    """Seconds that it took; the library has a progress bar of its own."""
    begun = clock.perf_counter()
    detector.fit(panel)
    return clock.perf_counter() - begun


def _never_left_out(detector: ECAD) -> list[str]:
    n = detector.n_never_left_out_
    return [f"{n:,} times were drawn by every member, and have no leave-one-out score"] if n else []


@command(method=TABLES["method"])
def plan(
    sensors: Annotated[int, typer.Option(help="How many sensors.", min=1)],
    times: Annotated[int, typer.Option(help="How many training times.", min=2)],
    later: Annotated[
        int | None,
        typer.Option(help="How many times are judged; as many as in training when not stated.", min=1),
    ] = None,
    step: Annotated[
        str, typer.Option(help='Time from tick to tick, like "15min"; "none" for tick numbers.')
    ] = "1h",
    missing: Annotated[float, typer.Option(help="Share of readings that are missing.", min=0, max=0.9)] = 0.1,
    paper: Paper = False,
    as_json: AsJson = False,
    *,
    method: Words,
) -> None:
    """Say what a fit will take, in memory and time, before it is made; tries small ones on this machine."""
    from .. import planning

    sizes = planning.Sizes(sensors, times, later or times, None if step == "none" else step, missing)
    with busy("trying small runs"):
        expected = planning.expect(detector_of(method, paper), sizes)
    rows = [
        (what, "" if seconds is None else span(seconds), "" if n is None else size(n))
        for what, seconds, n in (
            (f"fit {times:,} times of {sensors:,} sensors", expected.fit_seconds, expected.fit_bytes),
            (f"judge {sizes.later:,} later times", expected.detect_seconds, expected.detect_bytes),
            ("judge one tick of a stream", expected.tick_seconds, None),
            ("model file", None, expected.model_bytes),
            ("the whole process, at its peak", None, expected.process_bytes),
        )
    ]
    title = "Expected on this machine, within a factor of 2"
    lines = [
        table_text(title, ["", "time", "memory"], rows, right=["time", "memory"]),
        "Reading a file comes before, writing a table of verdicts after; neither is counted.",
    ]
    tell(expected._asdict() | {"process_bytes": expected.process_bytes}, lines, as_json)


@command()
def info(model: ModelFile, as_json: AsJson = False) -> None:
    """Say what is in a model file."""
    from ..panel import show_time, step_text

    loaded = load_model(model)
    last = loaded.last_tick if hasattr(loaded, "last_tick") else getattr(loaded, "last_tick_", None)
    facts: dict[str, Any] = {
        "model": model,
        "bytes": Path(model).stat().st_size,
        "kind": type(loaded).__name__,
    }
    if last is not None:
        newest = getattr(loaded, "time", last.times[-1])
        facts |= {
            "sensors": list(last.sensors),
            "step": step_text(last.step),
            "newest_time": show_time(newest, last.time_zone),
            "time_zone": last.time_zone,
            "positions": last.geometry,
            "adjacency": last.adjacency is not None,
        }
    if hasattr(loaded, "get_params"):
        facts["training_times"] = len(loaded.train_times_) if hasattr(loaded, "train_times_") else None
        facts["settings"] = {name: _setting(value) for name, value in loaded.get_params(deep=False).items()}
    lines = [
        f"{name.replace('_', ' '):16} {_told(value)}" for name, value in facts.items() if name != "settings"
    ]
    lines += [f"  {name:14} {_told(value)}" for name, value in facts.get("settings", {}).items()]
    tell(facts, lines, as_json)


def _setting(value: Any) -> Any:
    """As JSON; what is no plain value (a regressor) by how it would be written."""
    return value if isinstance(value, str | int | float | bool | list | dict | None) else str(value)


def _told(value: Any) -> Any:
    if isinstance(value, list) and len(value) > 8:
        return f"{', '.join(map(str, value[:5]))}, ... ({len(value):,})"
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    return ", ".join(map(str, value)) if isinstance(value, list) else plain(value)
