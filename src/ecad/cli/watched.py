"""ticks on stdin -> verdicts on stdout (`watch`)."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import EcadError, PanelError, SettingError
from .command import command
from .options import ModelFile
from .telling import say
from .words import load_stream

if TYPE_CHECKING:
    from ..report import Verdict
    from ..stream import Stream
    from ..ticks import Tick


@command()
def watch(
    model: ModelFile,
    save: Annotated[str | None, typer.Option(help="At the end, write the state of the stream here.")] = None,
    on_error: Annotated[
        str, typer.Option(metavar="stop|skip", help="After a line that cannot be used.")
    ] = "stop",
    longest_gap: Annotated[
        int | None,
        typer.Option(
            metavar="TICKS",
            min=0,
            help="Ticks that may be skipped; a time further ahead is an error (default: as many as were fitted on).",
        ),
    ] = None,
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
    stream = load_stream(model)
    gap = stream.memory.window.places if longest_gap is None else longest_gap
    watched = _Watched(stream, gap, skip=on_error == "skip", per_tick=per == "tick", alarms_only=alarms_only)
    try:
        watched.run()
    except (EcadError, BrokenPipeError):  # what was judged until then is whole, and is kept
        watched.end(save)
        raise
    watched.end(save)


class _Watched:
    """stdin -> ticks -> verdicts -> stdout."""

    def __init__(
        self, stream: Stream, longest_gap: int, skip: bool, per_tick: bool, alarms_only: bool
    ) -> None:
        from ..ticks import TickReader

        self.stream, self.reader = stream, TickReader(stream.last_tick)
        self.longest_gap, self.skip, self.per_tick, self.alarms_only = (
            longest_gap,
            skip,
            per_tick,
            alarms_only,
        )
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
            gap = self.stream.ahead(time) - 1
            if gap > self.longest_gap:
                raise PanelError(
                    f"it is {gap + 1:,} ticks after the newest one, more than --longest-gap {self.longest_gap:,} lets "
                    "through: a wrong time, or a reason to fit again."
                )
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
            say(f"ecad: error: {sentence}")

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
        from ..modelfile import save

        skipped = f", {_count(self.n_skipped, 'line')} skipped" if self.n_skipped else ""
        if path is not None:
            save(self.stream, path)
        kept = f"; the stream's state is in {path}" if path is not None else ""
        say(f"ecad: {_count(self.n_ticks, 'tick')} judged, {_count(self.n_alarms, 'alarm')}{skipped}{kept}")


def _count(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"


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
