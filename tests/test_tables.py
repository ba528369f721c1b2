"""Reports and simulations as tables, and back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import ecad
from ecad import datasets, io, tables

FIELDS = ("values", "p_values", "scores", "expected", "lower", "upper", "strength", "alarms", "status_codes")


@pytest.fixture(scope="module")
def report() -> ecad.Report:
    earlier, later = datasets.simulate(5, 900, seed=2).panel.split(0.7)
    return ecad.ECAD(random_state=0, alpha=0.05).fit(earlier).detect(later)


@pytest.mark.parametrize("ending", ["csv", "parquet", "feather"])
def test_a_written_report_is_read_again(report: ecad.Report, tmp_path: Path, ending: str) -> None:
    io.write_frame(report.to_frame(), tmp_path / f"v.{ending}")
    places = {
        "sensor": list(report.sensors),
        "lon": report.panel.positions[:, 0],
        "lat": report.panel.positions[:, 1],
    }
    again = tables.report_of(io.read_frame(tmp_path / f"v.{ending}"), positions=places)
    assert again.sensors == report.sensors and again.alpha == report.alpha
    assert np.array_equal(again.times, report.times) and np.array_equal(again.neighbours, report.neighbours)
    for name in FIELDS:
        found, wanted = getattr(again, name), getattr(report, name)
        assert np.array_equal(found, wanted, equal_nan=wanted.dtype.kind == "f"), name
    assert [e.sentence() for e in again.episodes] == [e.sentence() for e in report.episodes]


def test_without_places_each_sensor_is_on_its_own(report: ecad.Report) -> None:
    again = tables.report_of(report.to_frame())
    assert all(len(episode.sensors) == 1 for episode in again.episodes)


def test_the_level_is_read_off_the_alarms() -> None:
    p = np.array([[0.0009, 0.0097, 0.0103, 0.5, np.nan]])
    assert tables._level(p, p <= 0.01) == 0.01
    assert tables._level(p, p <= 0.001) == 0.001
    assert tables._level(p, p < 0) == 0.0001
    assert tables._level(p[:, 3:], p[:, 3:] < 0) == 0.05
    assert tables._level(p, np.isfinite(p)) == 0.5
    assert tables._level(p, p < 0.01) == 0.01
    assert tables._level(np.array([[0.013, 0.019]]), np.array([[True, False]])) == 0.013


def test_a_table_without_verdicts_is_refused(report: ecad.Report) -> None:
    with pytest.raises(ecad.EcadError, match="no column 'p_value'"):
        tables.report_of(report.panel.to_frame("long"))


def test_no_alarm_is_an_empty_table(report: ecad.Report) -> None:
    from dataclasses import replace

    quiet = replace(report, alarms=np.zeros_like(report.alarms))
    frame = tables.episode_frame(quiet)
    assert len(frame) == 0 and "sentence" in frame.columns
