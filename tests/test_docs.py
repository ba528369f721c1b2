"""pages of documentation -> runs: README.md and docs/ are tests.

The fenced blocks of a page are run in their order, in one temporary folder and one namespace, so that a page
reads, and runs, as one session:

- `python`   is executed;
- `output`   directly after a `python` block is what that block printed, compared as a doctest would;
- `pycon`    is a doctest (ELLIPSIS, NORMALIZE_WHITESPACE);
- `console`  each `$ ` line in which `ecad` is called is run and must end with exit code 0; others
             (`$ make demo`, `$ pip install ...`) are not. Lines below a command, where there are any, are
             what it prints, compared as a doctest would.

Any other kind is only read. `<!-- not run: reason -->` on the line before a fence leaves its block out.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import ecad

PROJECT = Path(__file__).resolve().parents[1]
PAGES = [PROJECT / "README.md", *sorted(PROJECT.glob("docs/**/*.md"))]
FENCE = re.compile(
    r"(?P<skip>^ *<!-- not run: [^\n]+ -->\n+)?"
    r"^(?P<indent> *)```(?P<kind>\w+)[^\n]*\n(?P<body>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)
RUN = re.compile(r"(^|[|;&]\s*)ecad\b")
CHECKER = doctest.OutputChecker()
AS_DOCTEST = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
COMMAND_SECONDS = 300


@dataclass(frozen=True)
class Block:
    page: Path
    line: int  # of the first line inside the fence, counted from 1
    kind: str
    body: str
    run: bool

    def __str__(self) -> str:
        return f"{self.page.relative_to(PROJECT)}:{self.line}"


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    found = []
    for match in FENCE.finditer(text):
        lines = match["body"].splitlines(keepends=True)
        body = "".join(line.removeprefix(match["indent"]) for line in lines)
        line = text.count("\n", 0, match.start("body")) + 1
        found.append(Block(page, line, match["kind"], body, run=match["skip"] is None))
    return found


def compare(block: Block, what: str, want: str, got: str) -> None:
    if not CHECKER.check_output(want, got, AS_DOCTEST):
        example = doctest.Example(what, want)
        pytest.fail(f"{block}: {what}\n{CHECKER.output_difference(example, got, AS_DOCTEST)}", pytrace=False)


def run_python(block: Block, namespace: dict[str, Any]) -> str:
    """What the block printed."""
    source = "\n" * (block.line - 1) + block.body  # a traceback then names the line of the page
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(source, str(block.page), "exec", dont_inherit=True), namespace)
    return printed.getvalue()


def run_pycon(block: Block, namespace: dict[str, Any]) -> None:
    session = doctest.DocTestParser().get_doctest(block.body, {}, str(block), str(block.page), block.line - 1)
    session.globs = namespace  # not the copy that DocTest made: later blocks see what this one defines
    failures: list[str] = []
    runner = doctest.DocTestRunner(optionflags=AS_DOCTEST)
    runner.run(session, out=failures.append, clear_globs=False)
    if failures:
        pytest.fail("".join(failures), pytrace=False)


def commands(body: str) -> list[tuple[str, str]]:
    """(command, the output written below it) of a console block; a trailing backslash continues a command."""
    found: list[tuple[str, str]] = []
    for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
        command, _, output = part.replace("\\\n", " ").partition("\n")
        found.append((command.strip(), output.strip("\n")))
    return found


def run_console(block: Block, folder: Path) -> None:
    beside_python = str(Path(sys.executable).parent)  # where this environment's `ecad` is
    environment = os.environ | {
        "PATH": beside_python + os.pathsep + os.environ["PATH"],
        "COLUMNS": "120",
        "NO_COLOR": "1",
        "TERM": "dumb",
    }
    for command, want in commands(block.body):
        if not RUN.search(command):
            continue
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", command],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        if done.returncode != 0:
            said = f"{done.stdout}{done.stderr}"
            pytest.fail(f"{block}: `{command}` ended with exit code {done.returncode}\n{said}", pytrace=False)
        if want:
            compare(block, command, want + "\n", done.stdout)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_every_example_runs_and_prints_what_the_page_says(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {"__name__": "__main__"}
    printed: str | None = None
    for block in blocks(page):
        if not block.run:
            printed = None
        elif block.kind == "output":
            assert printed is not None, f"{block}: an output block follows a python block that is run"
            compare(block, "the python block above", block.body, printed)
        elif block.kind == "python":
            printed = run_python(block, namespace)
        elif block.kind == "pycon":
            run_pycon(block, namespace)
            printed = None
        elif block.kind == "console":
            run_console(block, tmp_path)
            printed = None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))
def test_every_link_within_the_project_leads_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\((?!\w+:|#)([^)#\s]+)", page.read_text(encoding="utf-8"))
    assert [target for target in targets if not (page.parent / target).exists()] == []


def test_nothing_public_is_undocumented() -> None:
    words = set(re.findall(r"\w+", " ".join(page.read_text(encoding="utf-8") for page in PAGES)))
    assert sorted(set(ecad.__all__) - words - {"__version__"}) == []
