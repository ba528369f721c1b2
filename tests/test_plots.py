"""Pictures of a report: complete, readable by themselves, and never in the way of an unusual report."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import matplotlib.figure
import numpy as np
import pytest

from ecad import plots
from ecad.datasets import simulate
from ecad.episodes import describe
from ecad.errors import MissingExtra, SettingError
from ecad.plots.choice import chosen, window
from ecad.plots.judged import checked
from ecad.plots.marks import EXCUSED, FALSE, HIT, MISSED
from ecad.plots.words import percent

VOID = {"meta", "br", "hr", "img", "input", "link"}


def made_up(n_sensors: int = 8, n_times: int = 400, alpha: float = 0.02, **settings: Any) -> Any:
    """A report with made-up p-values: the readings against the same city without noise, ranked."""
    made = simulate(n_sensors, n_times, seed=3, **{"anomalies": 0.03, **settings})
    quiet = {"anomalies": 0.0, "missing": 0.0, "noise": 0.0}
    expected = simulate(n_sensors, n_times, seed=3, **{**settings, **quiet}).panel.values
    score = np.abs(made.panel.values - expected)
    rank = np.argsort(np.argsort(-np.nan_to_num(score, nan=-1.0), axis=0), axis=0) + 1.0
    p = np.where(np.isnan(score), np.nan, rank / n_times)
    report = SimpleNamespace(
        times=made.panel.times,
        sensors=made.panel.sensors,
        values=made.panel.values,
        p_values=p,
        expected=expected,
        lower=expected - 90.0,
        upper=expected + 90.0,
        strength=-np.log(p),
        alarms=p <= alpha,
        alpha=alpha,
        panel=made.panel,
        neighbours=(np.arange(n_sensors)[:, None] + np.arange(3)) % n_sensors,
    )
    return with_episodes(report), made.truth


def with_episodes(report: Any) -> Any:
    names = ("alarms", "values", "expected", "p_values", "strength", "times", "sensors", "neighbours")
    zone = report.panel.time_zone
    report.episodes = describe(**{name: getattr(report, name) for name in names}, time_zone=zone)
    return report


def on_panel(report: Any, **changes: Any) -> Any:
    panel = replace(report.panel, **changes)
    return with_episodes(SimpleNamespace(**{**vars(report), "panel": panel, "times": panel.times}))


@pytest.fixture(scope="module")
def judged() -> Any:
    return made_up()


@pytest.fixture(scope="module")
def html(judged: Any, tmp_path_factory: pytest.TempPathFactory) -> str:
    report, truth = judged
    path = tmp_path_factory.mktemp("plots") / "page.html"
    title = "A <city> & its roads"
    return plots.page(report, path, truth, title, unit="vehicles/h").read_text(encoding="utf-8")


class Tags(HTMLParser):
    """Every tag that opens must close, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


# -- the page --------------------------------------------------------------------------------------------------------


def test_a_page_is_well_formed(html: str) -> None:
    tags = Tags()
    tags.feed(html)
    assert tags.open == []


def test_a_page_needs_nothing_else(html: str) -> None:
    tags = Tags()
    tags.feed(html)
    assert not {tag for tag, _ in tags.seen} & {"script", "link", "iframe", "object"}
    links = [
        value
        for _, attributes in tags.seen
        for name, value in attributes.items()
        if name in ("src", "href", "xlink:href")
    ]
    assert all(link and link.startswith(("#", "data:")) for link in links)
    assert "@import" not in html and not re.search(r"url\((?!#)", html)


def test_a_page_is_the_same_twice(judged: Any, tmp_path: Path) -> None:
    report, truth = judged
    first, second = (plots.page(report, tmp_path / name, truth).read_bytes() for name in "ab")
    assert first == second


def test_a_page_says_what_was_judged_and_what_was_asked(judged: Any, html: str) -> None:
    report, _ = judged
    n_tested = int(np.isfinite(report.p_values).sum())
    assert "8 sensors, one reading every hour, 2025-01-06 00:00 to 2025-01-22 15:00" in html
    assert f"<b>{n_tested:,}</b><span>readings judged</span>" in html
    assert f"<b>{report.alarms.sum():,}</b><span>alarms</span>" in html
    assert "<b>2 %</b><span>alarm level asked</span>" in html
    assert "vehicles/h" in html


def test_names_and_titles_are_escaped(html: str) -> None:
    assert "A &lt;city&gt; &amp; its roads" in html and "<city>" not in html


def test_every_episode_is_told(judged: Any, html: str) -> None:
    assert len(judged[0].episodes) > 5
    assert all(episode.sentence() in html for episode in judged[0].episodes)


def test_the_strongest_episode_comes_first(judged: Any, html: str) -> None:
    strongest = max(judged[0].episodes, key=lambda episode: episode.peak_strength)
    assert html.index(strongest.sentence()) == min(html.index(e.sentence()) for e in judged[0].episodes)


def test_every_sensor_on_the_map_says_its_name_and_its_share(judged: Any, html: str) -> None:
    report, _ = judged
    tips = re.findall(r"<title>(S\d\d): ([\d,]+) alarms in ([\d,]+) readings", html)
    assert [name for name, _, _ in tips] == list(report.sensors)
    assert [int(n) for _, n, _ in tips] == report.alarms.sum(axis=0).tolist()


def test_with_the_truth_right_and_wrong_alarms_are_told_apart(judged: Any, html: str, tmp_path: Path) -> None:
    report, truth = judged
    hits, n_true = int((report.alarms & truth).sum()), int((truth & np.isfinite(report.p_values)).sum())
    assert f"{hits:,} of {n_true:,} readings" in html
    assert {mark.colour for mark in (HIT, FALSE, MISSED)} <= set(re.findall(r"#\w{6}", html))
    without = plots.page(report, tmp_path / "page.html").read_text(encoding="utf-8")
    assert "anomalies caught" in html and "anomalies caught" not in without
    assert "false alarm</span>" in html and "false alarm</span>" not in without


def test_marks_differ_in_colour_and_in_shape() -> None:
    marks = (HIT, FALSE, MISSED, EXCUSED)
    assert len({mark.colour for mark in marks}) == len({mark.shape for mark in marks}) == 4


def test_alarms_on_holidays_are_neither_right_nor_false(judged: Any, tmp_path: Path) -> None:
    report, truth = judged
    holidays = np.zeros(len(truth), dtype=bool)
    holidays[np.flatnonzero((report.alarms & ~truth).any(axis=1))] = True
    page = plots.page(report, tmp_path / "page.html", truth, holidays=holidays).read_text(encoding="utf-8")
    false = (report.alarms & ~truth).sum() / (np.isfinite(report.p_values) & ~truth).sum()
    assert "<b>0 %</b><span>false alarms seen</span>" in page
    assert f"{percent(float(false))} with holidays" in page
    assert "alarm on a holiday" in page and "nothing known" not in page
    plain = plots.page(report, tmp_path / "page.html", holidays=holidays).read_text(encoding="utf-8")
    assert "alarm on a holiday" in plain and "false alarms seen" not in plain


def test_times_are_shown_on_the_wall_clock(judged: Any, tmp_path: Path) -> None:
    report = on_panel(judged[0], time_zone="Asia/Tokyo")
    page = plots.page(report, tmp_path / "page.html").read_text(encoding="utf-8")
    assert "2025-01-06 09:00 to 2025-01-23 00:00 (Asia/Tokyo)" in page


# -- which sensors ---------------------------------------------------------------------------------------------------


def test_two_sensors_that_are_no_neighbours_are_shown(judged: Any) -> None:
    first, second = chosen(judged[0], None, checked(judged[0], None, None))
    assert second not in judged[0].neighbours[first]


def test_what_is_shown_does_not_depend_on_what_was_found(judged: Any) -> None:
    report, truth = judged
    blind = without_alarms(report)
    known = checked(report, truth, None)
    assert chosen(report, None, known) == chosen(blind, None, known)
    for sensor in range(len(report.sensors)):
        assert window(report, sensor, known) == window(blind, sensor, known)


def test_the_page_says_how_its_sensors_were_chosen(judged: Any, html: str, tmp_path: Path) -> None:
    plain = plots.page(judged[0], tmp_path / "page.html").read_text(encoding="utf-8")
    assert "the days with the most known anomalies, found or not." in html
    assert "the days with the strongest alarms." in plain


def test_sensors_can_be_chosen(judged: Any, tmp_path: Path) -> None:
    page = plots.page(judged[0], tmp_path / "page.html", sensors=["S05"]).read_text(encoding="utf-8")
    assert re.findall(r"<figcaption><b>(\w+)</b>", page) == ["S05"]


@pytest.mark.parametrize(("sensors", "named"), [(["S05", "S99"], "'S99'"), ([], "empty")])
def test_sensors_that_are_not_there_are_refused(judged: Any, sensors: list[str], named: str) -> None:
    with pytest.raises(SettingError, match=named):
        plots.figure(judged[0], sensors)


def test_a_truth_of_another_shape_is_refused(judged: Any, tmp_path: Path) -> None:
    with pytest.raises(SettingError, match=r"\(400, 8\)"):
        plots.page(judged[0], tmp_path / "page.html", judged[1][:10])
    with pytest.raises(SettingError, match="400 times"):
        plots.page(judged[0], tmp_path / "page.html", holidays=judged[1])


# -- the figure ------------------------------------------------------------------------------------------------------


def test_figure_gives_a_matplotlib_figure_with_readings_p_values_and_map(judged: Any) -> None:
    figure = plots.figure(judged[0])
    assert isinstance(figure, matplotlib.figure.Figure)
    labels = [axes.get_ylabel() for axes in figure.get_axes()]
    assert labels.count("reading") == labels.count("p-value") == 2


def test_p_values_are_on_a_log_scale_with_strange_up(judged: Any) -> None:
    below = next(axes for axes in plots.figure(judged[0]).get_axes() if axes.get_ylabel() == "p-value")
    bottom, top = below.get_ylim()
    assert below.get_yscale() == "log" and bottom > 1.0 > top


def test_save_picture_writes_a_png(judged: Any, tmp_path: Path) -> None:
    path = plots.save_picture(plots.figure(judged[0], truth=judged[1]), tmp_path / "figure.png", dpi=60)
    assert path.read_bytes().startswith(b"\x89PNG")


def test_without_matplotlib_the_extra_is_named(
    judged: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtra, match=r"ecad\[plot\]"):
        plots.figure(judged[0])
    with pytest.raises(MissingExtra, match="matplotlib"):
        plots.page(judged[0], tmp_path / "page.html")


# -- unusual reports -------------------------------------------------------------------------------------------------


def without_places(report: Any) -> Any:
    return on_panel(report, positions=None, geometry=None, adjacency=None)


def without_a_clock(report: Any) -> Any:
    return on_panel(report, times=np.arange(len(report.times)), step=1)


def on_a_plane(report: Any) -> Any:
    return on_panel(report, positions=report.panel.positions * 1000.0, geometry="xy", adjacency=None)


def across_the_date_line(report: Any) -> Any:
    lon, lat = report.panel.positions.T
    return on_panel(report, positions=np.column_stack([(lon - 10.0 + 360.0) % 360.0 - 180.0, lat]))


def without_alarms(report: Any) -> Any:
    return with_episodes(SimpleNamespace(**{**vars(report), "alarms": np.zeros_like(report.alarms)}))


def without_readings(report: Any) -> Any:
    nothing = np.full_like(report.values, np.nan)
    names = ("values", "p_values", "expected", "lower", "upper", "strength")
    return without_alarms(SimpleNamespace(**{**vars(report), **dict.fromkeys(names, nothing)}))


def one_tick(report: Any) -> Any:
    names = ("values", "p_values", "expected", "lower", "upper", "strength", "alarms", "times")
    first = {name: getattr(report, name)[:1] for name in (*names, "panel")}
    return with_episodes(SimpleNamespace(**{**vars(report), **first}))


def a_wild_reading(report: Any) -> Any:
    values = report.values.copy()
    values[np.flatnonzero(report.alarms[:, 0])[0], 0] = 1e6
    return with_episodes(SimpleNamespace(**{**vars(report), "values": values}))


def negative_readings(report: Any) -> Any:
    names = ("values", "expected", "lower", "upper")
    return SimpleNamespace(**{**vars(report), **{n: getattr(report, n) - 900.0 for n in names}})


UNUSUAL = [
    without_places, without_a_clock, on_a_plane, across_the_date_line, without_alarms,
    without_readings, one_tick, a_wild_reading, negative_readings,
]  # fmt: skip


@pytest.mark.parametrize("changed", UNUSUAL, ids=lambda change: change.__name__)
def test_an_unusual_report_is_drawn_all_the_same(
    judged: Any, changed: Callable[[Any], Any], tmp_path: Path
) -> None:
    tags = Tags()
    tags.feed(plots.page(changed(judged[0]), tmp_path / "page.html").read_text(encoding="utf-8"))
    assert tags.open == []
    plots.save_picture(plots.figure(changed(judged[0])), tmp_path / "figure.png", dpi=40)


@pytest.mark.parametrize("n_sensors", [1, 2, 450])
def test_any_number_of_sensors_is_drawn(n_sensors: int, tmp_path: Path) -> None:
    report, truth = made_up(n_sensors, n_times=60)
    assert plots.page(report, tmp_path / "page.html", truth).stat().st_size < 3e6


def test_a_long_history_stays_a_small_page(tmp_path: Path) -> None:
    report, truth = made_up(2, n_times=60_000, step="5min", alpha=0.001)
    assert plots.page(report, tmp_path / "page.html", truth).stat().st_size < 3e6
