"""docs/settings.md says what the settings say."""

from __future__ import annotations

from pathlib import Path

from ecad import settings

PAGE = Path(__file__).resolve().parents[1] / "docs" / "settings.md"


def test_the_page_of_settings_is_up_to_date() -> None:
    page = PAGE.read_text(encoding="utf-8")
    table = page.partition("<!-- settings:begin -->")[2].partition("<!-- settings:end -->")[0]
    assert table.strip() == settings.markdown().strip(), "run scripts/docs"


def test_every_setting_stands_on_the_page_under_a_heading() -> None:
    lines = settings.markdown().splitlines()
    assert lines[0].startswith("## ")
    assert sum(line.startswith("| `") for line in lines) == len(settings.SETTINGS)
    assert sum(line.startswith("## ") for line in lines) == len(settings._HEADINGS)
