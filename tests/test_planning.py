"""What is expected of a fit, beside what it takes."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import ecad
from ecad import planning

SIZES = [(20, 4_000), (100, 3_000), (300, 2_000)]
EXPECT = """
import json, sys
from ecad import ECAD
from ecad.planning import Sizes, expect
found = [expect(ECAD(), Sizes(*size, later=size[1])) for size in json.loads(sys.argv[1])]
print(json.dumps([{**e._asdict(), "process_bytes": e.process_bytes} for e in found]))
"""
TAKE = """
import json, re, resource, sys, time, tracemalloc
from pathlib import Path
from ecad import ECAD, datasets
n_sensors, n_times = json.loads(sys.argv[1])
earlier, later = datasets.simulate(4, 500).panel.split(0.5)
ECAD(random_state=0).fit(earlier).detect(later).p_values  # compiled loops are loaded
earlier, later = datasets.simulate(n_sensors, 2 * n_times, anomalies=0.0).panel.split(0.5)

def timed(work):
    begun = time.perf_counter()
    result = work()
    return result, time.perf_counter() - begun

def traced(work):
    tracemalloc.start()
    result = work()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return result, peak

detector, fit_seconds = timed(lambda: ECAD(random_state=0).fit(earlier))
report, detect_seconds = timed(lambda: detector.detect(later))
status = Path("/proc/self/status")
if status.exists():  # ru_maxrss remembers the process that started this one
    process_bytes = 1024 * int(re.search(r"VmHWM:\\s+(\\d+)", status.read_text())[1])
else:
    process_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
_, fit_bytes = traced(lambda: ECAD(random_state=0).fit(earlier))
_, detect_bytes = traced(lambda: detector.detect(later))
print(json.dumps({"fit_seconds": fit_seconds, "detect_seconds": detect_seconds, "process_bytes": process_bytes,
                  "fit_bytes": fit_bytes, "detect_bytes": detect_bytes}))
"""


def python(script: str, words: object) -> object:
    command = [sys.executable, "-W", "ignore", "-c", script, json.dumps(words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.slow
def test_memory_is_expected_within_a_factor_of_two(capsys: pytest.CaptureFixture[str]) -> None:
    expected = python(EXPECT, SIZES)
    for size, wanted in zip(SIZES, expected):
        taken = python(TAKE, size)
        with capsys.disabled():
            print(f"\n  {size[0]} sensors x {size[1]:,} times, expected / taken: ", end="")
            print(", ".join(f"{name} {wanted[name]:.3g} / {taken[name]:.3g}" for name in taken))
        for name in ("process_bytes", "fit_bytes", "detect_bytes"):
            assert 0.5 < wanted[name] / taken[name] < 2.0, (size, name, wanted[name], taken[name])


@pytest.mark.parametrize(
    "settings",
    [
        {"score": "studentised"},
        {"centre": "quantile", "impute": "seasonal"},
        {"groups": "sensor", "season": None},
        {"reference": "local", "alpha": 0.05},
        {"groups": {"S01": "a"}, "dtype": "float32"},
    ],
)
def test_every_kind_of_setting_can_be_planned(settings: dict[str, object]) -> None:
    expected = planning.expect(ecad.ECAD(**settings), planning.Sizes(4, 500, 500))
    assert all(value > 0 for value in expected)


def test_more_readings_take_more() -> None:
    small, large = (planning.expect(ecad.ECAD(), planning.Sizes(10, n, n)) for n in (1_000, 1_000_000))
    assert large.fit_bytes > 10 * small.fit_bytes
    assert large.model_bytes > 10 * small.model_bytes
    assert large.fit_seconds > 5 * small.fit_seconds


def test_ticks_without_a_clock_have_no_season() -> None:
    expected = planning.expect(ecad.ECAD(), planning.Sizes(3, 500, 500, step=None))
    assert expected.fit_bytes > 0


def test_another_regressor_is_tried_on_a_small_fit() -> None:
    from sklearn.tree import DecisionTreeRegressor

    ridge = planning.expect(ecad.ECAD(), planning.Sizes(5, 4_000, 100))
    trees = planning.expect(ecad.ECAD(DecisionTreeRegressor()), planning.Sizes(5, 4_000, 100))
    assert trees.fit_seconds > 3 * ridge.fit_seconds
    assert trees.model_bytes > 10 * ridge.model_bytes
