"""facts -> what is told: lines, JSON, tables, sizes and spans; and that work is going on.

Results go to stdout, all else to stderr.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..panel import Panel
    from ..report import Report


def say(line: str) -> None:
    """A line for people, on stderr."""
    print(" ".join(line.split()), file=sys.stderr, flush=True)


def tell(facts: Mapping[str, Any], lines: Iterable[str], as_json: bool) -> None:
    """What was found, on stdout: its facts as one JSON document, or its lines."""
    if as_json:
        print(json.dumps(plain(facts), indent=2, allow_nan=False))
        return
    for line in lines:
        print(line)


def plain(value: Any) -> Any:
    """Anything that a result holds -> what JSON knows; what is unknown is null."""
    if isinstance(value, Mapping):
        return {str(name): plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if hasattr(value, "tolist"):  # numpy, without importing it
        value = str(value) if value.dtype.kind in "mM" else value.tolist()
        return plain(value)
    if isinstance(value, float):
        return value if value - value == 0 else None
    return value if isinstance(value, str | int | bool | None) else str(value)


def table_text(
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
def busy(what: str) -> Iterator[None]:
    """Something moves at a terminal, and nothing elsewhere."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(f"{what} ..."):
        yield


def share(part: float | None) -> str:
    """A share as people say it, in per cent with two digits."""
    return "unknown" if part is None or part != part else f"{_two(100 * part)} %"


def size(n: float) -> str:
    """Bytes as people say them, with two digits."""
    for unit, name in ((1e9, "GB"), (1e6, "MB")):
        if n >= 0.995 * unit:
            return f"{_two(n / unit)} {name}"
    return f"{_two(n / 1e3)} kB"


def span(seconds: float) -> str:
    """Seconds as people say them, with two digits."""
    for unit, name in ((3600.0, "h"), (60.0, "min"), (1.0, "s"), (1e-3, "ms")):
        if seconds >= 0.995 * unit:
            return f"{_two(seconds / unit)} {name}"
    return f"{_two(1e6 * seconds)} µs"


def _two(number: float) -> str:
    return f"{float(f'{number:.2g}'):,g}"


def written_lines(files: Mapping[str, str]) -> list[str]:
    """The files that were written, one a line."""
    return [f"{name + ':':11}{path}" for name, path in files.items()]


def panel_facts(panel: Panel) -> dict[str, Any]:
    """What JSON says of a panel."""
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
    from ..panel import show_time

    return show_time(time, panel.time_zone).replace(" ", "T") if panel.has_clock else int(time)


def report_facts(report: Report) -> dict[str, Any]:
    """What JSON says of a report."""
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
        **panel_facts(report.panel),
        "alpha": report.alpha,
        "tested": int((report.p_values == report.p_values).sum()),
        "alarms": int(report.alarms.sum()),
        "status": counts,
        "episodes": [
            {**told(asdict(episode)), "sentence": episode.sentence()} for episode in report.episodes
        ],
        "stand_ins": [told(stand_in._asdict()) for stand_in in report.stand_ins],
    }


def strongest_lines(report: Report, n: int) -> list[str]:
    """The n strongest episodes, a sentence each."""
    strongest = sorted(report.episodes, key=lambda episode: -episode.peak_strength)[:n]
    if not strongest:
        return []
    all_told = len(strongest) == len(report.episodes)
    heading = "Episodes:" if all_told else f"The {n} strongest of {len(report.episodes):,} episodes:"
    return [heading, *(f"  {episode.sentence()}" for episode in strongest)]
