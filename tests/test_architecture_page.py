"""docs/architecture.md draws the tree as it is."""

from __future__ import annotations

import re
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
SOURCE = PROJECT / "src" / "ecad"
PAGE = (PROJECT / "docs" / "architecture.md").read_text(encoding="utf-8")
TREE = PAGE.partition("## The tree")[2].partition("## ")[0]


def test_every_module_stands_in_the_tree() -> None:
    named = set(re.findall(r"\w+\.py\b", TREE))
    modules = {path.name for path in SOURCE.rglob("*.py")}
    assert sorted(modules - named) == []


def test_every_module_of_the_tree_exists() -> None:
    of_source = TREE.partition("tests/")[0]
    assert [name for name in re.findall(r"\w+\.py\b", of_source) if not list(SOURCE.rglob(name))] == []


def test_the_layers_are_those_that_are_checked() -> None:
    layers = re.search(
        r"^layers = \[\n(.*?)^\]", (PROJECT / "pyproject.toml").read_text(encoding="utf-8"), re.M | re.S
    )
    assert layers is not None
    checked = [re.findall(r"\w+", line) for line in re.findall(r'"(.*)"', layers[1])]
    drawn = PAGE.partition("## Imports")[2].partition("```text\n")[2].partition("```")[0]
    assert [re.findall(r"\w+", line) for line in drawn.splitlines()] == checked
