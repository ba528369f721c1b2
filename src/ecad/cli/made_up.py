"""seed -> a made-up network with known anomalies, as files (`simulate`), or judged and drawn as well (`demo`)."""

from __future__ import annotations

import time as clock
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import SettingError
from .command import command
from .models import timed_fit
from .options import AsJson, Row, Words
from .telling import (
    busy,
    panel_facts,
    report_facts,
    share,
    span,
    strongest_lines,
    table_text,
    tell,
    written_lines,
)
from .words import listed_texts, value_of

if TYPE_CHECKING:
    from ..datasets import Simulation
    from ..report import Report

MADE_UP = (
    Row("step", "--step", "time from tick to tick", "1h"),
    Row("start", "--start", "first time", "2025-01-06"),
    Row("missing", "--missing", "share of readings lost at random", "0.1"),
    Row("bursts", "--bursts", "share of readings lost in runs of 3 to 48 ticks", "a tenth of --missing"),
    Row("dead", "--dead", "share of sensors that fall silent for good", "half of --missing"),
    Row("anomalies", "--anomalies", "share of readings that belong to a planted event", "0.01"),
    Row("kinds", "--kinds", "kinds of planted events, with commas between them", "all"),
    Row("clean_until", "--clean-until", "share of the times, from the start, without events", "0"),
    Row("error_autocorrelation", "--error-autocorrelation", "of the noise, from tick to tick", "0.6"),
    Row(
        "space_correlation",
        "--space-correlation",
        "0: independent sensors; near 1: noise of whole districts",
        "0.5",
    ),
    Row("noise", "--noise", "standard deviation of the noise, as a share of the flow", "0.1"),
    Row("weather", "--weather", "share of the flow that the worst weather takes away", "0.2"),
    Row("seed", "--seed", "the same seed, the same numbers", "0"),
)


@command(made_up=("What is made up", MADE_UP))
def simulate(
    folder: Annotated[
        str, typer.Argument(metavar="FOLDER", help="Where the files go; made when it is not there.")
    ],
    sensors: Annotated[int, typer.Option(help="How many sensors.")] = 20,
    times: Annotated[int, typer.Option(help="How many times.")] = 4380,
    form: Annotated[
        str, typer.Option("--format", metavar="csv|parquet|feather", help="Of the files.")
    ] = "csv",
    as_json: AsJson = False,
    *,
    made_up: Words,
) -> None:
    """Make up a city's traffic with known anomalies: files of readings, positions, edges, truth and events."""
    from .. import datasets

    if form not in ("csv", "parquet", "feather"):
        raise SettingError(f"--format {form!r} is not known: it takes csv, parquet or feather.")
    readers: dict[str, Callable[[str], Any]] = {"step": str, "start": str, "kinds": listed_texts}
    made = {name: readers.get(name, value_of)(text) for name, text in made_up.items()}
    for name, value in made.items():
        if name not in readers and isinstance(value, str | bool | None):
            raise SettingError(
                f"--{name.replace('_', '-')} {made_up[name]!r} is not known: it takes a number."
            )
    simulation = datasets.simulate(sensors, times, **made)
    written = _write_simulation(simulation, folder, form)
    n_true = int(simulation.truth.sum())
    facts = {**panel_facts(simulation.panel), "events": len(simulation.events), "true_readings": n_true}
    told = f"{len(simulation.events):,} planted events, {n_true:,} anomalous readings"
    tell({**facts, "files": written}, [simulation.panel.describe(), told, *written_lines(written)], as_json)


@command()
def demo(
    out: Annotated[str, typer.Option(help="Folder for page, picture, data and model.")] = "demo",
    alpha: Annotated[float, typer.Option(help="The share of false alarms that is asked for.")] = 0.01,
    seed: Annotated[int, typer.Option(help="The same seed, the same city.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Simulate a city's traffic, find what is strange in it, compare with the truth, and draw the picture."""
    from .. import datasets
    from ..detector import ECAD
    from ..modelfile import save
    from ..tables import planted_and_found

    # from May to October: of the made-up holidays one is judged, enough to tell about
    simulation = datasets.simulate(start="2025-05-05", anomalies=0.01, clean_until=0.5, seed=seed)
    earlier, later = simulation.panel.split(0.5)
    detector = ECAD(alpha=alpha, random_state=seed, progress=False)
    with busy("fitting (the first time of all, loops are compiled: some seconds)"):
        seconds = timed_fit(detector, earlier)
    begun = clock.perf_counter()
    report = detector.detect(later)
    judged = clock.perf_counter() - begun
    found = planted_and_found(simulation, report)
    files = _write_simulation(simulation, out, "csv")
    files["model"] = str(Path(out) / "model.ecad")
    save(detector, files["model"])
    timed = f"fitted in {span(seconds)}, judged in {span(judged)}"
    lines = [
        f"Made up: {later.n_sensors} sensors on a city's roads, {simulation.panel.n_times:,} hours, with holes.",
        f"Fitted on the first {earlier.n_times:,} hours, where nothing is planted; judged the others ({timed}).",
        "",
        *_found_lines(found, alpha),
        "",
        *strongest_lines(report, 6),
    ]
    if not as_json:
        tell({}, [*lines, ""], as_json)
    pictures = _draw(simulation, report, out)
    facts = {
        **report_facts(report),
        **found,
        "fit_seconds": round(seconds, 3),
        "detect_seconds": round(judged, 3),
    }
    tell({**facts, "files": files | pictures}, [*written_lines(files), *written_lines(pictures)], as_json)


def _draw(simulation: Simulation, report: Report, folder: str) -> dict[str, str]:
    from .. import plots

    pictures = {"page": str(Path(folder) / "report.html"), "picture": str(Path(folder) / "report.png")}
    judged = slice(-len(report.times), None)
    told: dict[str, Any] = {
        "truth": simulation.truth[judged],
        "holidays": simulation.holidays[judged],
        "title": "Traffic of a made-up city: what looked strange",
        "unit": "vehicles/h",
    }
    with busy("drawing"):
        plots.page(report, pictures["page"], **told)
        plots.save_picture(plots.figure(report, **told), pictures["picture"], dpi=100)
    return pictures


def _found_lines(found: Mapping[str, Any], alpha: float) -> list[str]:
    from ..datasets import KINDS

    rows = [
        (
            kind,
            meaning.replace("`size`", "s"),
            str(of["events"]),
            str(of["found"]),
            f"{of['ticks_until_found']:.1f}",
        )
        for kind, meaning in {**KINDS, "all": ""}.items()
        if (of := found["all"] if kind == "all" else found["kinds"][kind])["events"]
    ]
    title = "What was planted, and what was found"
    columns = ["kind", "what it is (s: its size)", "planted", "found", "hours until found"]
    quiet, holidays = (found["false_alarms"][name] for name in ("ordinary_days", "holidays"))
    lines = table_text(title, columns, rows, right=columns[2:]).splitlines()
    lines.append("")
    lines.append(
        f"False alarms: {share(quiet['share'])} of {quiet['readings']:,} quiet readings on ordinary days; "
        f"{share(alpha)} was asked for."
    )
    if holidays["readings"]:
        lines += [
            f"On holidays and the day after, {share(holidays['share'])}: the detector has no calendar of holidays,",
            "and a Friday with a Sunday's traffic is strange. What p promises, it promises for days like",
            "those it learned from.",
        ]
    return lines


def _write_simulation(simulation: Simulation, folder: str, form: str) -> dict[str, str]:
    from ..io import write_frame
    from ..tables import simulation_frames

    Path(folder).mkdir(parents=True, exist_ok=True)
    written = {}
    for name, frame in simulation_frames(simulation).items():
        written[name] = str(Path(folder) / f"{name}.{form}")
        write_frame(frame, written[name])
    return written
