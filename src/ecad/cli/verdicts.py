"""readings, model -> verdicts, told and written to files (`detect`), or drawn (`plot`)."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import PanelError, SettingError
from .command import ALARMS, command
from .models import timed_fit
from .options import TABLES, AsJson, Paper, Words
from .telling import busy, report_facts, strongest_lines, tell, written_lines
from .words import detector_of, files_of, listed_texts, load_detector, moment, panel_of, refuse_overwriting

if TYPE_CHECKING:
    from ..detector import ECAD
    from ..report import Report

MOST_EPISODES = 10  # told on a screen; files have them all

ModelAndData = Annotated[
    list[str],
    typer.Argument(
        metavar="[MODEL] DATA",
        help="A model file and later data; or data alone, with --train-until or --train-fraction.",
    ),
]
ModelAndDataOrVerdicts = Annotated[
    list[str],
    typer.Argument(
        metavar="MODEL DATA | VERDICTS",
        help="A model file and later data; or a table of verdicts from `ecad detect --out`.",
    ),
]
Unit = Annotated[str, typer.Option(help='Unit of the readings, for pictures, like "vehicles/h".')]
Page = Annotated[str | None, typer.Option(help="Write one HTML page with pictures here.")]
Png = Annotated[str | None, typer.Option(help="Write one picture here.")]


@command(**TABLES)
def detect(
    files: ModelAndData,
    train_until: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Data alone: fit on what is before this time, judge the rest."),
    ] = None,
    train_fraction: Annotated[
        float | None,
        typer.Option(metavar="SHARE", help="Data alone: fit on this share of the times, judge the rest."),
    ] = None,
    paper: Paper = False,
    out: Annotated[
        str | None, typer.Option(help="Write a table of verdicts here: .csv, .parquet or .feather.")
    ] = None,
    episodes: Annotated[str | None, typer.Option(help="Write a table of episodes here.")] = None,
    page: Page = None,
    png: Png = None,
    unit: Unit = "",
    fail_on_alarm: Annotated[
        bool, typer.Option("--fail-on-alarm", help=f"End with exit code {ALARMS} where there are alarms.")
    ] = False,
    as_json: AsJson = False,
    *,
    reading: Words,
    places: Words,
    method: Words,
) -> None:
    """Judge readings: with a model, those that follow what it was fitted on; or fit and judge one file."""
    written = {"--out": out, "--episodes": episodes, "--page": page, "--png": png}
    refuse_overwriting([*files, *files_of(places, method)], written)
    if len(files) == 2:
        _refuse_with_model({**places, **method}, paper, train_until, train_fraction)
        report = _judge(load_detector(files[0]), files[1], reading)
    else:
        if len(files) != 1 or (train_until is None) == (train_fraction is None):
            raise SettingError(
                "ecad detect takes MODEL DATA; or DATA and one of --train-until and --train-fraction."
            )
        panel = panel_of(files[0], reading, places)
        earlier, later = panel.split(train_fraction if train_until is None else moment(panel, train_until))
        detector = detector_of(method, paper)
        timed_fit(detector, earlier)
        with busy("judging"):
            report = detector.detect(later)
    made = _write(report, out, episodes, page, png, unit)
    tell({**report_facts(report), "files": made}, [*_report_lines(report), *written_lines(made)], as_json)
    if fail_on_alarm and report.alarms.any():
        raise typer.Exit(ALARMS)


@command(reading=TABLES["reading"], places=TABLES["places"])
def plot(
    files: ModelAndDataOrVerdicts,
    page: Page = None,
    png: Png = None,
    show: Annotated[
        str | None, typer.Option(metavar="NAMES", help="Sensors to show in detail, with commas between them.")
    ] = None,
    title: Annotated[str, typer.Option(help="Title of the page.")] = "What looked strange, and when",
    unit: Unit = "",
    model: Annotated[
        str | None,
        typer.Option(help="Table of verdicts: take level, places and neighbours from this model file."),
    ] = None,
    alpha: Annotated[
        float | None,
        typer.Option(help="Table of verdicts: the level of its alarms; read off them when not stated."),
    ] = None,
    as_json: AsJson = False,
    *,
    reading: Words,
    places: Words,
) -> None:
    """Draw a report: one HTML page, one picture, or both."""
    if page is None and png is None:
        page = "page.html"
    refuse_overwriting([*files, model, *files_of(places)], {"--page": page, "--png": png})
    if len(files) == 2:
        if places or model is not None or alpha is not None:
            raise SettingError(
                "Level and places are part of the model: leave --alpha, --model and the places out."
            )
        report = _judge(load_detector(files[0]), files[1], reading)
    elif len(files) == 1:
        report = _saved_report(files[0], model, alpha, places, reading.get("time_zone"))
    else:
        raise SettingError("ecad plot takes MODEL DATA, or one table of verdicts.")
    shown = None if show is None else listed_texts(show)
    written = _write(report, None, None, page, png, unit, shown, title)
    tell({"files": written}, written_lines(written), as_json)


def _refuse_with_model(words: Words, paper: bool, *train: Any) -> None:
    given = [f"--{name.replace('_', '-')}" for name in words]
    given += ["--paper"] * paper + ["--train-until or --train-fraction"] * (train != (None, None))
    if given:
        raise SettingError(
            f"{given[0]} belongs to fitting, and the model is fitted already: leave it out, or give DATA alone."
        )


def _judge(detector: ECAD, path: str, reading: Words) -> Report:
    panel = panel_of(path, reading, like=detector.last_tick_)
    with busy("judging"):
        return detector.detect(panel)


def _saved_report(
    path: str, model: str | None, alpha: float | None, places: Words, time_zone: str | None
) -> Report:
    from dataclasses import replace

    from ..io import read_frame
    from ..tables import report_of

    with busy(f"reading {path}"):
        if model is None:
            where: dict[str, Any] = dict(places)
            return report_of(read_frame(path), alpha=alpha, time_zone=time_zone, **where)
        detector = load_detector(model)
        last = detector.last_tick_
        report = report_of(read_frame(path), alpha=alpha or detector.alpha, time_zone=last.time_zone)
        if report.sensors != last.sensors:
            raise PanelError(
                f"{path} and {model} have different sensors: give the model that made the verdicts."
            )
        panel = replace(
            report.panel, positions=last.positions, geometry=last.geometry, adjacency=last.adjacency
        )
        return replace(report, panel=panel, neighbours=detector.neighbours_)


def _write(
    report: Report,
    out: str | None,
    episodes: str | None,
    page: str | None,
    png: str | None,
    unit: str,
    shown: list[str] | None = None,
    title: str = "What looked strange, and when",
) -> dict[str, str]:
    """Every file that was asked for."""
    from .. import plots
    from ..io import write_frame
    from ..tables import episode_frame

    written = {}
    with busy("writing") if out or page or png else nullcontext():
        if out is not None:
            write_frame(report.to_frame(), out)
            written["verdicts"] = out
        if episodes is not None:
            write_frame(episode_frame(report), episodes)
            written["episodes"] = episodes
        if page is not None:
            plots.page(report, page, title=title, sensors=shown, unit=unit)
            written["page"] = page
        if png is not None:
            plots.save_picture(plots.figure(report, shown, unit=unit), png)
            written["picture"] = png
    return written


def _report_lines(report: Report) -> list[str]:
    from ..panel import REPAIRS

    repairs = [
        f"{REPAIRS.get(name, name)}: {count:,}" for name, count in report.panel.repairs.items() if count
    ]
    return [*repairs, *report.summary().splitlines(), *strongest_lines(report, MOST_EPISODES)]
