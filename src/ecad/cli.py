"""words typed -> calls of the library -> lines printed. The only place where a command line is parsed.

Nothing is decided here that the library does not decide: the options of `ecad fit` are rows of `settings.SETTINGS`,
those for reading data are the parameters of `read_panel`, and every number that is printed comes from a report, a
verdict or a model. Results go to stdout; warnings, errors and progress go to stderr.
"""

from __future__ import annotations

import functools
import inspect
import json
import os
import re
import signal
import sys
import time as clock
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from . import settings
from ._version import __version__
from .errors import EcadError, EcadWarning, MissingExtra, ModelFileError, PanelError, SettingError

if TYPE_CHECKING:
    from .datasets import Simulation
    from .detector import ECAD
    from .panel import Panel
    from .report import Report, Verdict
    from .stream import Stream
    from .ticks import Tick

EXIT_CODES = {
    0: "done",
    1: "a bug in ECAD; the traceback says where",
    2: "the command was not understood, or a setting cannot work",
    3: "the data cannot be used, or a file cannot be read or written",
    4: "the model file is damaged, too new, no model file, or cannot be written",
    5: "an optional package is missing",
    10: "there are alarms, and --fail-on-alarm was given",
    130: "interrupted",
}
DATA, MODEL, EXTRA, ALARMS, INTERRUPTED = 3, 4, 5, 10, 130
MOST_EPISODES = 10  # told on a screen; files have them all

app = typer.Typer(
    name="ecad",
    help="A p-value for every reading of a sensor network, with a false-alarm rate that you choose.",
    epilog="Exit codes: " + "; ".join(f"{code}: {meaning}" for code, meaning in EXIT_CODES.items()) + ".",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """The command `ecad`."""
    app(prog_name="ecad")


# -- what every command shares -----------------------------------------------------------------------------------------


class Row(NamedTuple):
    """One option of a table of options."""

    name: str
    option: str
    meaning: str
    default: str | None = None  # as shown


READING = (
    Row("layout", "--layout", '"wide" (one column a sensor) or "long" (time, sensor, value)', "auto"),
    Row("time", "--time-column", "name of the column of times, where it is not the usual one"),
    Row("sensor", "--sensor-column", "long data: name of the column of sensors", "sensor"),
    Row("value", "--value-column", "long data: name of the column of readings", "value"),
    Row("sensors", "--sensors", "names of the sensors to keep, with commas between them"),
    Row("step", "--step", 'time from tick to tick, like "15min"; inferred when not stated'),
    Row("time_zone", "--time-zone", 'zone of times that state none, like "Europe/Berlin"'),
    Row("time_unit", "--time-unit", 'unit of times that are numbers since 1970: "s", "ms", ...'),
    Row("time_format", "--time-format", 'how times are written, like "%d.%m.%Y %H:%M"'),
    Row(
        "duplicates",
        "--duplicates",
        'different readings for one sensor and time: "first", "last", "mean"',
        "error",
    ),
    Row("non_numeric", "--non-numeric", '"missing": cells that are no numbers count as missing', "error"),
    Row(
        "missing_values",
        "--missing-values",
        'readings that mean "missing", like -9999, with commas between them',
    ),
    Row("decimal", "--decimal", "decimal point in texts", "."),
    Row("thousands", "--thousands", "separator of thousands in texts"),
    Row("begin", "--from", "leave out times before this one"),
    Row("end", "--until", "leave out this time and later ones"),
)
PLACES = (
    Row("positions", "--positions", "file with sensor and lon, lat (or x, y)"),
    Row("adjacency", "--adjacency", "file of edges between sensors: a, b, and a weight, smaller is nearer"),
    Row("geometry", "--geometry", '"lonlat" or "xy", where the columns of the positions do not say'),
)
SETTINGS = tuple(
    Row(row.name, "--" + row.name.replace("_", "-"), row.meaning, str(row.default).lower())
    for row in settings.SETTINGS
)
Words = dict[str, str]  # options as typed

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document, for machines.")]


def command(**tables: tuple[str, Sequence[Row]]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A command of `ecad`: its errors become one line and an exit code.

    Each table (a heading and its rows) becomes options; what was typed arrives as one mapping under the table's name.
    """

    def register(function: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(function, eval_str=True)
        plain = [parameter for name, parameter in own.parameters.items() if name not in tables]
        rows = {(name, row.name): row for name, (_, table) in tables.items() for row in table}
        extra = [
            inspect.Parameter(
                _key(*key),
                inspect.Parameter.KEYWORD_ONLY,
                default=None,
                annotation=_option(row, tables[key[0]][0]),
            )
            for key, row in rows.items()
        ]

        @functools.wraps(function)
        def run(**typed: Any) -> None:
            given: dict[str, Any] = {name: {} for name in tables}
            for name, row in rows:
                word = typed.pop(_key(name, row))
                if word is not None:
                    given[name][row] = word
            with _telling_errors():
                function(**typed, **given)
                sys.stdout.flush()

        run.__signature__ = own.replace(parameters=[*plain, *extra], return_annotation=None)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in [*plain, *extra]}
        app.command(name=function.__name__)(run)
        return run

    return register


def _key(table: str, row: str) -> str:
    return f"{table}_{row}"


def _option(row: Row, heading: str) -> Any:
    default = "" if row.default is None else f" (default: {row.default})"
    meaning = (row.meaning + default).replace("[", "\\[")  # else taken for colours
    return Annotated[
        str | None,
        typer.Option(row.option, help=meaning, show_default=False, rich_help_panel=heading, metavar="..."),
    ]


@contextmanager
def _telling_errors() -> Iterator[None]:
    """Errors of ours, of files and of interruption -> one line on stderr and an exit code, never a traceback."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("default", UserWarning)
        warnings.simplefilter("always", EcadWarning)
        warnings.showwarning = _show_warning
        try:
            yield
        except EcadError as error:
            raise _failed(str(error), _code(error)) from None
        except BrokenPipeError:  # whoever reads has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from None
        except OSError as error:
            named = f"{error.filename}: " if error.filename else ""
            raise _failed(f"{named}{error.strerror or error}", DATA) from None
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None


def _code(error: EcadError) -> int:
    if isinstance(error, MissingExtra):
        return EXTRA
    if isinstance(error, ModelFileError):
        return MODEL
    return 2 if isinstance(error, SettingError) else DATA


def _failed(sentence: str, code: int) -> typer.Exit:
    _say(f"ecad: error: {_as_options(sentence)}")
    return typer.Exit(code)


def _show_warning(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    ours = issubclass(category, EcadWarning)
    _say(f"ecad: warning: {'' if ours else category.__name__ + ': '}{_as_options(str(message))}")


def _say(line: str) -> None:
    print(" ".join(line.split()), file=sys.stderr, flush=True)


def _as_options(sentence: str) -> str:
    """The library names its parameters (`time_zone=`); here they are options (`--time-zone`)."""
    names = {row.name: row.option for row in (*READING, *PLACES, *SETTINGS)}
    sentence = sentence.replace("panel.between(...)", "those that --from leaves").replace(
        "panel.drop(...) or ", ""
    )
    spelled = re.sub(rf"\b({'|'.join(names)})=(?=\S)", lambda found: f"{names[found[1]]} ", sentence)
    return re.sub(rf"\b({'|'.join(names)})=", lambda found: names[found[1]], spelled).replace(" ,", ",")


def _print(facts: Mapping[str, Any], lines: Iterable[str], as_json: bool) -> None:
    if as_json:
        print(json.dumps(_plain(facts), indent=2, allow_nan=False))
        return
    for line in lines:
        print(line)


def _plain(value: Any) -> Any:
    """Anything that a result holds -> what JSON knows; what is unknown is null."""
    if isinstance(value, Mapping):
        return {str(name): _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if hasattr(value, "tolist"):  # numpy, without importing it
        value = str(value) if value.dtype.kind in "mM" else value.tolist()
        return _plain(value)
    if isinstance(value, float):
        return value if value - value == 0 else None
    return value if isinstance(value, str | int | bool | None) else str(value)


def _table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[str] = ()
) -> str:
    """A table as text, in colour at a terminal."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, title_style="bold", pad_edge=False)
    for name in columns:
        table.add_column(name, justify="right" if name in right else "left")
    for row in rows:
        table.add_row(*row)
    at_terminal = sys.stdout.isatty()
    width = None if at_terminal else 118
    console = Console(highlight=False, markup=False, width=width, force_terminal=at_terminal or None)
    with console.capture() as captured:
        console.print(table)
    return "\n".join(line.rstrip() for line in captured.get().rstrip().splitlines())


@contextmanager
def _busy(what: str) -> Iterator[None]:
    """Something moves at a terminal, and nothing elsewhere."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(f"{what} ..."):
        yield


def _share(part: float | None) -> str:
    return "unknown" if part is None or part != part else f"{_two(100 * part)} %"


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"


def _size(n: float) -> str:
    """Bytes as people say them, with two digits."""
    for unit, name in ((1e9, "GB"), (1e6, "MB")):
        if n >= 0.995 * unit:
            return f"{_two(n / unit)} {name}"
    return f"{_two(n / 1e3)} kB"


def _span(seconds: float) -> str:
    """Seconds as people say them, with two digits."""
    for unit, name in ((3600.0, "h"), (60.0, "min"), (1.0, "s"), (1e-3, "ms")):
        if seconds >= 0.995 * unit:
            return f"{_two(seconds / unit)} {name}"
    return f"{_two(1e6 * seconds)} µs"


def _two(number: float) -> str:
    return f"{float(f'{number:.2g}'):,g}"


# -- words -> settings, panels, models ---------------------------------------------------------------------------------


def _value(text: str) -> Any:
    """none, true, false, a number, or the word itself."""
    known = {"none": None, "true": True, "false": False}
    if text.lower() in known:
        return known[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _settings(words: Words) -> dict[str, Any]:
    readers: dict[str, Callable[[str], Any]] = {
        "regressor": _regressor,
        "groups": _groups,
        "seasonal_lags": lambda text: _value(text) if text.lower() in ("auto", "none") else _listed(text),
    }
    return {name: readers.get(name, _value)(text) for name, text in words.items()}


def _listed(text: str) -> list[Any]:
    return [_value(part.strip()) for part in text.split(",") if part.strip()]


def _regressor(text: str) -> Any:
    """ridge, or any scikit-learn regressor by its name: random-forest, HistGradientBoosting(max_iter=50), ..."""
    if text in ("ridge", "lstm"):
        return text
    name, _, rest = text.partition("(")
    known = _regressors()
    kind = known.get(_bare(name))
    if kind is None:
        few = "ridge, linear, hist-gradient-boosting, random-forest, extra-trees, gradient-boosting, k-neighbors"
        raise SettingError(
            f"regressor={text!r} is not known: it takes {few}, or any scikit-learn regressor by its name."
        )
    try:
        return kind(**_arguments(rest))
    except (TypeError, ValueError, SyntaxError) as error:
        raise SettingError(f"regressor={text!r} cannot be made: {error}.") from error


def _regressors() -> dict[str, Any]:
    from sklearn.utils import all_estimators

    made_of_others = ("multioutput", "regressorchain", "voting", "stacking")
    found = {_bare(name): kind for name, kind in all_estimators(type_filter="regressor")}
    return {name: kind for name, kind in found.items() if name not in made_of_others}


def _bare(name: str) -> str:
    """RandomForestRegressor, random-forest, random_forest -> randomforest."""
    plain = re.sub(r"[-_ ]", "", name).lower()
    return re.sub(r"(regressor|regression)$", "", plain) or plain


def _arguments(rest: str) -> dict[str, Any]:
    """What stands between brackets, as keyword arguments; literals only, nothing is ever run."""
    import ast

    if not rest:
        return {}
    call = ast.parse(f"f({rest}", mode="eval").body
    if not isinstance(call, ast.Call) or call.args or any(word.arg is None for word in call.keywords):
        raise ValueError("arguments must be given by name, like random-forest(max_depth=8)")
    return {str(word.arg): ast.literal_eval(word.value) for word in call.keywords}


def _groups(text: str) -> Any:
    """shared, sensor, or a file with the columns sensor and group."""
    if text in ("shared", "sensor") or not Path(text).exists():
        return text
    from .io import read_frame

    frame = read_frame(text)
    if not {"sensor", "group"} <= set(frame.columns):
        raise PanelError(
            f"{text} has the columns {', '.join(map(str, frame.columns))}; needed are sensor and group."
        )
    return dict(zip(map(str, frame["sensor"].tolist()), frame["group"].tolist(), strict=True))


def _panel(path: str, words: Words, places: Words | None = None, like: Panel | None = None) -> Panel:
    """A file as a panel; with `like`, on its grid, as a continuation of it."""
    from .panel import as_panel, read_panel

    options: dict[str, Any] = {name: text for name, text in words.items() if name not in ("begin", "end")}
    for name, read in {"step": _value, "sensors": _listed_texts, "missing_values": _listed}.items():
        if name in options:
            options[name] = read(options[name])
    with _busy(f"reading {path}"):
        if like is not None and not options:
            panel = as_panel(path, like=like)
        else:
            known: dict[str, Any] = {} if like is None else {"step": like.step, "time_zone": like.time_zone}
            known |= {**options, **(places or {})}
            panel = read_panel(path, **known)
    if "begin" in words or "end" in words:
        panel = panel.between(_moment(panel, words.get("begin")), _moment(panel, words.get("end")))
    return panel


def _listed_texts(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _moment(panel: Panel, text: str | None) -> Any:
    """A time as typed; tick numbers are whole numbers."""
    return text if text is None or panel.has_clock else _value(text)


def _load(path: str) -> Any:
    from .modelfile import load

    try:
        with _busy(f"reading {path}"):
            return load(path)
    except OSError as error:
        raise ModelFileError(f"{path}: {error.strerror or error}") from error


def _load_detector(path: str) -> ECAD:
    from .detector import ECAD

    model = _load(path)
    if isinstance(model, ECAD):
        return model
    kind = type(model).__name__
    remedy = "use ecad watch, which goes on from there" if kind == "Stream" else "it has no panel of sensors"
    raise ModelFileError(f"{path} holds a {kind}, and a fitted ECAD is needed: {remedy}.")


def _load_stream(path: str) -> Stream:
    from .detector import ECAD
    from .stream import Stream

    model = _load(path)
    if isinstance(model, ECAD):
        return model.stream()
    if isinstance(model, Stream):
        return model
    raise ModelFileError(f"{path} holds a {type(model).__name__}, and an ECAD or a stream is needed.")


# -- fit, detect, watch ------------------------------------------------------------------------------------------------

Data = Annotated[str, typer.Argument(metavar="DATA", help="CSV, Parquet or Feather file, wide or long.")]
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
ModelFile = Annotated[
    str, typer.Argument(metavar="MODEL", help="What `ecad fit` or `ecad watch --save` wrote.")
]
Paper = Annotated[bool, typer.Option("--paper", help="Start from the paper's settings, for comparison.")]
Unit = Annotated[str, typer.Option(help='Unit of the readings, for pictures, like "vehicles/h".')]
Page = Annotated[str | None, typer.Option(help="Write one HTML page with pictures here.")]
Png = Annotated[str | None, typer.Option(help="Write one picture here.")]
TABLES: dict[str, tuple[str, Sequence[Row]]] = {
    "reading": ("How the data is written", READING),
    "places": ("Where the sensors are", PLACES),
    "method": ("Settings of the method", SETTINGS),
}


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
    from .modelfile import save

    detector = _detector(method, paper)
    panel = _panel(data, reading, places)
    seconds = _fit(detector, panel)
    save(detector, model)
    facts = {
        **_panel_facts(panel),
        "members": detector.n_members,
        "training_times": len(detector.train_times_),
        "never_left_out": detector.n_never_left_out_,
        "seconds": round(seconds, 3),
        "model": model,
    }
    lines = [
        panel.describe(),
        f"fitted {detector.n_members} members to {len(detector.train_times_):,} times in {_span(seconds)}",
        *_never_left_out(detector),
        f"written: {model} ({_size(Path(model).stat().st_size)})",
    ]
    _print(facts, lines, as_json)


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
    if len(files) == 2:
        _refuse_with_model({**places, **method}, paper, train_until, train_fraction)
        report = _judge(_load_detector(files[0]), files[1], reading)
    else:
        if len(files) != 1 or (train_until is None) == (train_fraction is None):
            raise SettingError(
                "ecad detect takes MODEL DATA; or DATA and one of --train-until and --train-fraction."
            )
        panel = _panel(files[0], reading, places)
        earlier, later = panel.split(train_fraction if train_until is None else _moment(panel, train_until))
        detector = _detector(method, paper)
        _fit(detector, earlier)
        with _busy("judging"):
            report = detector.detect(later)
    written = _write(report, out, episodes, page, png, unit)
    _print({**_report_facts(report), "files": written}, [*_report_lines(report), *_written(written)], as_json)
    if fail_on_alarm and report.alarms.any():
        raise typer.Exit(ALARMS)


@command()
def watch(
    model: ModelFile,
    save: Annotated[str | None, typer.Option(help="At the end, write the state of the stream here.")] = None,
    on_error: Annotated[
        str, typer.Option(metavar="stop|skip", help="After a line that cannot be used.")
    ] = "stop",
    per: Annotated[
        str,
        typer.Option(metavar="reading|tick", help="One line of output for each reading, or for each tick."),
    ] = "reading",
    alarms_only: Annotated[
        bool, typer.Option("--alarms-only", help="Print alarms, and nothing about quiet readings.")
    ] = False,
) -> None:
    """Judge a stream: ticks as JSON lines on stdin, verdicts as JSON lines on stdout."""
    for name, word, words in (("on-error", on_error, ("stop", "skip")), ("per", per, ("reading", "tick"))):
        if word not in words:
            raise SettingError(f"--{name} {word!r} is not known: it takes {' or '.join(words)}.")
    stream = _load_stream(model)
    watched = _Watched(stream, skip=on_error == "skip", per_tick=per == "tick", alarms_only=alarms_only)
    try:
        watched.run()
    except (EcadError, BrokenPipeError):  # what was judged until then is whole, and is kept
        watched.end(save)
        raise
    watched.end(save)


class _Watched:
    """stdin -> ticks -> verdicts -> stdout."""

    def __init__(self, stream: Stream, skip: bool, per_tick: bool, alarms_only: bool) -> None:
        from .ticks import TickReader

        self.stream, self.reader = stream, TickReader(stream.last_tick)
        self.skip, self.per_tick, self.alarms_only = skip, per_tick, alarms_only
        self.n_ticks = self.n_alarms = self.n_skipped = 0

    def run(self) -> None:
        for number, line in _lines():
            for tick in self._read(line, number):
                self._judge(tick)
        for tick in self.reader.close():
            self._judge(tick)

    def _read(self, line: bytes, number: int) -> list[Tick]:
        with self._at(number):
            return self.reader.read(line, number)
        return []

    def _judge(self, tick: Tick) -> None:
        with self._at(tick.line):
            time = self.stream.time + self.stream.last_tick.step if tick.time is None else tick.time
            verdict = self.stream.update(time, tick.values)
            self.n_ticks += 1
            self.n_alarms += int(verdict.alarms.sum())
            self._show(verdict)

    @contextmanager
    def _at(self, number: int) -> Iterator[None]:
        """An error names its line; then the stream stops, or goes on without it."""
        try:
            yield
        except EcadError as error:
            sentence = f"line {number}: {error}"
            if not self.skip:
                raise PanelError(sentence) from error
            self.n_skipped += 1
            _say(f"ecad: error: {sentence}")

    def _show(self, verdict: Verdict) -> None:
        records = verdict.to_records()
        if self.alarms_only:
            records = [record for record in records if record["alarm"]]
        if self.per_tick and (records or not self.alarms_only):
            n_alarms = int(verdict.alarms.sum())
            records = [
                {"time": verdict.time_text, "gap": verdict.gap, "alarms": n_alarms, "verdicts": records}
            ]
        sys.stdout.write("".join(json.dumps(record) + "\n" for record in records))
        sys.stdout.flush()

    def end(self, path: str | None) -> None:
        """Write the stream's state, where it was asked for, and say what was done."""
        from .modelfile import save

        skipped = f", {_count(self.n_skipped, 'line')} skipped" if self.n_skipped else ""
        if path is not None:
            save(self.stream, path)
        kept = f"; the stream's state is in {path}" if path is not None else ""
        _say(f"ecad: {_count(self.n_ticks, 'tick')} judged, {_count(self.n_alarms, 'alarm')}{skipped}{kept}")


class _Stopped(Exception):
    """A signal came while nothing was being judged."""


def _lines() -> Iterator[tuple[int, bytes]]:
    """Numbered lines of stdin, until its end or a signal; a tick in hand is finished before a signal counts."""
    waiting = stopped = False

    def stop(*_: Any) -> None:
        nonlocal stopped
        if stopped:  # asked twice: at once, then
            raise KeyboardInterrupt
        stopped = True
        if waiting:
            raise _Stopped

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    number = 0
    try:
        while not stopped:
            try:
                waiting = True
                line = sys.stdin.buffer.readline()
                waiting = False
            except _Stopped:
                break
            if not line:
                break
            number += 1
            yield number, line
    finally:
        for sign, handler in before.items():
            signal.signal(sign, handler)


# -- pictures, sizes, models -------------------------------------------------------------------------------------------


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
    if len(files) == 2:
        if places or model is not None or alpha is not None:
            raise SettingError(
                "Level and places are part of the model: leave --alpha, --model and the places out."
            )
        report = _judge(_load_detector(files[0]), files[1], reading)
    elif len(files) == 1:
        report = _saved_report(files[0], model, alpha, places, reading.get("time_zone"))
    else:
        raise SettingError("ecad plot takes MODEL DATA, or one table of verdicts.")
    if page is None and png is None:
        page = "page.html"
    shown = None if show is None else _listed_texts(show)
    written = _write(report, None, None, page, png, unit, shown, title)
    _print({"files": written}, _written(written), as_json)


@command(method=TABLES["method"])
def plan(
    sensors: Annotated[int, typer.Argument(metavar="SENSORS", help="How many sensors.", min=1)],
    times: Annotated[int, typer.Argument(metavar="TIMES", help="How many training times.", min=2)],
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
    from . import planning

    sizes = planning.Sizes(sensors, times, later or times, None if step == "none" else step, missing)
    with _busy("trying small runs"):
        expected = planning.expect(_detector(method, paper), sizes)
    rows = [
        (what, "" if seconds is None else _span(seconds), "" if n is None else _size(n))
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
        _table(title, ["", "time", "memory"], rows, right=["time", "memory"]),
        "Reading a file comes before, writing a table of verdicts after; neither is counted.",
    ]
    _print(expected._asdict() | {"process_bytes": expected.process_bytes}, lines, as_json)


@command()
def info(model: ModelFile, as_json: AsJson = False) -> None:
    """Say what is in a model file."""
    from .panel import show_time, step_text

    loaded = _load(model)
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
    _print(facts, lines, as_json)


def _setting(value: Any) -> Any:
    """As JSON; what is no plain value (a regressor) by how it would be written."""
    return value if isinstance(value, str | int | float | bool | list | dict | None) else str(value)


def _told(value: Any) -> Any:
    if isinstance(value, list) and len(value) > 8:
        return f"{', '.join(map(str, value[:5]))}, ... ({len(value):,})"
    if value is None or isinstance(value, bool):
        return {None: "none", True: "yes", False: "no"}[value]
    return ", ".join(map(str, value)) if isinstance(value, list) else _plain(value)


# -- made-up data ------------------------------------------------------------------------------------------------------

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
    from . import datasets

    if form not in ("csv", "parquet", "feather"):
        raise SettingError(f"--format {form!r} is not known: it takes csv, parquet or feather.")
    readers: dict[str, Callable[[str], Any]] = {"step": str, "start": str, "kinds": _listed_texts}
    made = {name: readers.get(name, _value)(text) for name, text in made_up.items()}
    for name, value in made.items():
        if name not in readers and isinstance(value, str | bool | None):
            raise SettingError(
                f"--{name.replace('_', '-')} {made_up[name]!r} is not known: it takes a number."
            )
    simulation = datasets.simulate(sensors, times, **made)
    written = _write_simulation(simulation, folder, form)
    n_true = int(simulation.truth.sum())
    facts = {**_panel_facts(simulation.panel), "events": len(simulation.events), "true_readings": n_true}
    told = f"{len(simulation.events):,} planted events, {n_true:,} anomalous readings"
    _print({**facts, "files": written}, [simulation.panel.describe(), told, *_written(written)], as_json)


@command()
def demo(
    out: Annotated[str, typer.Option(help="Folder for page, picture, data and model.")] = "demo",
    alpha: Annotated[float, typer.Option(help="The share of false alarms that is asked for.")] = 0.01,
    seed: Annotated[int, typer.Option(help="The same seed, the same city.")] = 0,
    as_json: AsJson = False,
) -> None:
    """Simulate a city's traffic, find what is strange in it, compare with the truth, and draw the picture."""
    from . import datasets
    from .detector import ECAD
    from .modelfile import save
    from .tables import planted_and_found

    # from May to October: of the made-up holidays one is judged, enough to tell about
    simulation = datasets.simulate(start="2025-05-05", anomalies=0.01, clean_until=0.5, seed=seed)
    earlier, later = simulation.panel.split(0.5)
    detector = ECAD(alpha=alpha, random_state=seed, progress=False)
    with _busy("fitting (the first time of all, loops are compiled: some seconds)"):
        seconds = _fit(detector, earlier)
    begun = clock.perf_counter()
    report = detector.detect(later)
    judged = clock.perf_counter() - begun
    found = planted_and_found(simulation, report)
    files = _write_simulation(simulation, out, "csv")
    files["model"] = str(Path(out) / "model.ecad")
    save(detector, files["model"])
    timed = f"fitted in {_span(seconds)}, judged in {_span(judged)}"
    lines = [
        f"Made up: {later.n_sensors} sensors on a city's roads, {simulation.panel.n_times:,} hours, with holes.",
        f"Fitted on the first {earlier.n_times:,} hours, where nothing is planted; judged the others ({timed}).",
        "",
        *_found_lines(found, alpha),
        "",
        *_strongest(report, 6),
    ]
    if not as_json:
        _print({}, [*lines, ""], as_json)
    pictures = _draw(simulation, report, out)
    facts = {
        **_report_facts(report),
        **found,
        "fit_seconds": round(seconds, 3),
        "detect_seconds": round(judged, 3),
    }
    _print({**facts, "files": files | pictures}, [*_written(files), *_written(pictures)], as_json)


def _draw(simulation: Simulation, report: Report, folder: str) -> dict[str, str]:
    from . import plots

    pictures = {"page": str(Path(folder) / "report.html"), "picture": str(Path(folder) / "report.png")}
    truth = simulation.truth[-len(report.times) :]
    title = "Traffic of a made-up city: what looked strange"
    with _busy("drawing"):
        plots.page(report, pictures["page"], truth, title, unit="vehicles/h")
        plots.save_png(
            plots.figure(report, truth=truth, title=title, unit="vehicles/h"), pictures["picture"], dpi=100
        )
    return pictures


def _found_lines(found: Mapping[str, Any], alpha: float) -> list[str]:
    from .datasets import KINDS

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
    lines = _table(title, columns, rows, right=columns[2:]).splitlines()
    lines.append("")
    lines.append(
        f"False alarms: {_share(quiet['share'])} of {quiet['readings']:,} quiet readings on ordinary days; "
        f"{_share(alpha)} was asked for."
    )
    if holidays["readings"]:
        lines += [
            f"On holidays and the day after, {_share(holidays['share'])}: the detector has no calendar of holidays,",
            "and a Friday with a Sunday's traffic is strange. What p promises, it promises for days like",
            "those it learned from.",
        ]
    return lines


def _write_simulation(simulation: Simulation, folder: str, form: str) -> dict[str, str]:
    from .io import write_frame
    from .tables import simulation_frames

    Path(folder).mkdir(parents=True, exist_ok=True)
    written = {}
    for name, frame in simulation_frames(simulation).items():
        written[name] = str(Path(folder) / f"{name}.{form}")
        write_frame(frame, written[name])
    return written


# -- shared steps ------------------------------------------------------------------------------------------------------


def _detector(method: Words, paper: bool) -> ECAD:
    from .detector import ECAD

    chosen = _settings(method)
    return ECAD.paper(**chosen) if paper else ECAD(**chosen)


def _fit(detector: ECAD, panel: Panel) -> float:
    """Seconds that it took; the library has a progress bar of its own."""
    begun = clock.perf_counter()
    detector.fit(panel)
    return clock.perf_counter() - begun


def _judge(detector: ECAD, path: str, reading: Words) -> Report:
    panel = _panel(path, reading, like=detector.last_tick_)
    with _busy("judging"):
        return detector.detect(panel)


def _refuse_with_model(words: Words, paper: bool, *train: Any) -> None:
    given = [f"--{name.replace('_', '-')}" for name in words]
    given += ["--paper"] * paper + ["--train-until or --train-fraction"] * (train != (None, None))
    if given:
        raise SettingError(
            f"{given[0]} belongs to fitting, and the model is fitted already: leave it out, or give DATA alone."
        )


def _saved_report(
    path: str, model: str | None, alpha: float | None, places: Words, time_zone: str | None
) -> Report:
    from dataclasses import replace

    from .io import read_frame
    from .tables import report_of

    with _busy(f"reading {path}"):
        if model is None:
            where: dict[str, Any] = dict(places)
            return report_of(read_frame(path), alpha=alpha, time_zone=time_zone, **where)
        detector = _load_detector(model)
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
    from . import plots
    from .io import write_frame
    from .tables import episode_frame

    written = {}
    with _busy("writing") if out or page or png else nullcontext():
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
            plots.save_png(plots.figure(report, shown, unit=unit), png)
            written["picture"] = png
    return written


def _written(files: Mapping[str, str]) -> list[str]:
    return [f"{name + ':':11}{path}" for name, path in files.items()]


def _panel_facts(panel: Panel) -> dict[str, Any]:
    return {
        "sensors": panel.n_sensors,
        "times": panel.n_times,
        "first": _time_text(panel, panel.times[0]),
        "last": _time_text(panel, panel.times[-1]),
        "observed": float(panel.observed.mean()),
        "repairs": panel.repairs,
    }


def _time_text(panel: Panel, time: Any) -> str | int:
    """As a verdict writes it: on the panel's own clock, or a tick number."""
    from .panel import show_time

    return show_time(time, panel.time_zone).replace(" ", "T") if panel.has_clock else int(time)


def _never_left_out(detector: ECAD) -> list[str]:
    n = detector.n_never_left_out_
    return [f"{n:,} times were drawn by every member, and have no leave-one-out score"] if n else []


def _report_facts(report: Report) -> dict[str, Any]:
    from dataclasses import asdict

    def told(record: dict[str, Any]) -> dict[str, Any]:
        times: dict[str, Any] = {name: _time_text(report.panel, record[name]) for name in ("start", "end")}
        if "peak" in record:
            times["peak"] = [_time_text(report.panel, record["peak"][0]), record["peak"][1]]
        return {**record, **times}

    words, counts = report.status, {}
    for word in sorted(set(words.ravel().tolist())):
        counts[word] = int((words == word).sum())
    return {
        **_panel_facts(report.panel),
        "alpha": report.alpha,
        "tested": int((report.p_values == report.p_values).sum()),
        "alarms": int(report.alarms.sum()),
        "status": counts,
        "episodes": [
            {**told(asdict(episode)), "sentence": episode.sentence()} for episode in report.episodes
        ],
        "stand_ins": [told(stand_in._asdict()) for stand_in in report.stand_ins],
    }


def _report_lines(report: Report) -> list[str]:
    from .panel import REPAIRS

    repairs = [
        f"{REPAIRS.get(name, name)}: {count:,}" for name, count in report.panel.repairs.items() if count
    ]
    return [*repairs, *report.summary().splitlines(), *_strongest(report, MOST_EPISODES)]


def _strongest(report: Report, n: int) -> list[str]:
    strongest = sorted(report.episodes, key=lambda episode: -episode.peak_strength)[:n]
    if not strongest:
        return []
    all_told = len(strongest) == len(report.episodes)
    heading = "Episodes:" if all_told else f"The {n} strongest of {len(report.episodes):,} episodes:"
    return [heading, *(f"  {episode.sentence()}" for episode in strongest)]


def _version(asked: bool) -> None:
    if asked:
        print(f"ecad {__version__}")
        raise typer.Exit


@app.callback()
def _every(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


ORDER = ("demo", "simulate", "fit", "detect", "watch", "plot", "plan", "info")
app.registered_commands.sort(key=lambda registered: ORDER.index(str(registered.name)))

if __name__ == "__main__":
    main()
