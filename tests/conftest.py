"""What every test may rely on: the shared data, no windows, and no silent skips where tests are judged."""

from __future__ import annotations

import os
from collections.abc import Generator
from pathlib import Path

import hypothesis
import pytest

PROJECT = Path(__file__).resolve().parents[1]
IN_CI = bool(os.environ.get("CI"))
SKIPS_ALLOWED_IN_CI = ("missing data", "missing hardware")

os.environ.setdefault("MPLBACKEND", "Agg")  # a test never opens a window

# The first call of a compiled loop takes seconds: a deadline for each example would measure the compiler.
hypothesis.settings.register_profile("ecad", deadline=None, derandomize=IN_CI, print_blob=True)
hypothesis.settings.load_profile("ecad")


@pytest.fixture(scope="session")
def project() -> Path:
    """The root of the project."""
    return PROJECT


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of real readings (pems10, ...), or a skip that says where it was looked for."""
    folder = Path(os.environ.get("ECAD_DATA") or PROJECT.parent / "shared" / "data")
    if not folder.is_dir():
        pytest.skip(f"missing data: {folder} is not a folder; set ECAD_DATA to the folder of the shared data")
    return folder


def _refuse_skip(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Where the tests are judged, a skip is a failure unless data or hardware is missing; so is an expected failure."""
    if not (IN_CI and report.skipped):
        return
    reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    if not reason.removeprefix("Skipped: ").startswith(SKIPS_ALLOWED_IN_CI):
        report.outcome = "failed"
        report.longrepr = f"skipped, which CI allows only for {' or '.join(SKIPS_ALLOWED_IN_CI)}: {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    _refuse_skip(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _refuse_skip(report)
    return report
