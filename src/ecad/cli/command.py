"""function, tables of options -> a command of `ecad`, whose errors are one line on stderr and an exit code."""

from __future__ import annotations

import functools
import inspect
import os
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import typer

from .._version import __version__
from ..errors import EcadError, EcadWarning, MissingExtra, ModelFileError, SettingError
from .options import PLACES, READING, SETTINGS, Row
from .telling import say

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
    say(f"ecad: error: {_as_options(sentence)}")
    return typer.Exit(code)


def _show_warning(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    ours = issubclass(category, EcadWarning)
    say(f"ecad: warning: {'' if ours else category.__name__ + ': '}{_as_options(str(message))}")


def _as_options(sentence: str) -> str:
    """The library names its parameters (`time_zone=`); here they are options (`--time-zone`)."""
    names = {row.name: row.option for row in (*READING, *PLACES, *SETTINGS)}
    sentence = sentence.replace("panel.between(...)", "those that --from leaves").replace(
        "panel.drop(...) or ", ""
    )
    spelled = re.sub(rf"\b({'|'.join(names)})=(?=\S)", lambda found: f"{names[found[1]]} ", sentence)
    return re.sub(rf"\b({'|'.join(names)})=", lambda found: names[found[1]], spelled).replace(" ,", ",")
