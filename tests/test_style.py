"""Laws of the house that no linter knows."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[1] / "src" / "ecad"
MODULES = sorted(SOURCE.rglob("*.py"))
ROOMS = [path for path in MODULES if path.name not in ("__init__.py", "_version.py", "errors.py")]
PLACES = {"utils", "helpers", "common", "core", "manager", "engine", "misc"}
MOST_LINES = 80


def named(path: Path) -> str:
    return str(path.relative_to(SOURCE))


def lines_of_body(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines without signature and docstring: a parameter of the public surface deserves its sentence."""
    first, *rest = function.body
    is_docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    body = rest if is_docstring else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


@pytest.mark.parametrize("path", ROOMS, ids=named)
def test_the_first_line_of_a_room_is_an_arrow(path: Path) -> None:
    docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    assert "->" in docstring.partition("\n")[0]


@pytest.mark.parametrize("path", MODULES, ids=named)
def test_no_function_is_longer_than_a_screen(path: Path) -> None:
    functions = [
        node
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    long = {f.name: lines_of_body(f) for f in functions if lines_of_body(f) > MOST_LINES}
    assert long == {}


def test_a_room_is_named_after_what_leaves_it() -> None:
    assert [named(path) for path in MODULES if path.stem.strip("_") in PLACES] == []
