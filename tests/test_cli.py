"""The command line: the library's numbers, one clean line for each error, and exit codes that mean something."""

from __future__ import annotations

import inspect
import json
import os
import re
import signal
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from typer.testing import CliRunner, Result

import ecad
from ecad import cli, datasets, io, settings
from ecad.panel import read_panel

CUT = "2025-02-03 00:00"  # the fourth week is judged


def run(*words: str | Path, stdin: str | bytes | None = None) -> Result:
    return CliRunner().invoke(cli.app, [str(word) for word in words], input=stdin, prog_name="ecad")


def process(*words: str | Path, stdin: str = "", **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "ecad.cli", *map(str, words)]
    return subprocess.run(
        command, input=stdin, capture_output=True, text=True, check=False, timeout=120, **options
    )


@pytest.fixture(scope="module")
def city(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of simulated files, and a model fitted on the first four weeks."""
    folder = tmp_path_factory.mktemp("city")
    done = run("simulate", folder, "--sensors", "6", "--times", "840", "--seed", "3", "--missing", "0.05")
    assert done.exit_code == 0, done.stderr
    assert fit(folder, "--until", CUT).exit_code == 0
    return folder


def fit(city: Path, *more: str) -> Result:
    return run(
        "fit", city / "readings.csv", "--positions", city / "positions.csv", "--model", city / "model.ecad",
        "--random-state", "0", "--alpha", "0.02", *more,
    )  # fmt: skip


@pytest.fixture(scope="module")
def panel(city: Path) -> ecad.Panel:
    return read_panel(city / "readings.csv", city / "positions.csv")


@pytest.fixture(scope="module")
def report(panel: ecad.Panel) -> ecad.Report:
    """What the library says of the judged week."""
    earlier, later = panel.split(CUT)
    return ecad.ECAD(random_state=0, alpha=0.02).fit(earlier).detect(later)


def lines_of(panel: ecad.Panel, shape: str) -> list[str]:
    """Ticks as somebody would send them."""
    out = []
    for time, row in zip(panel.times, panel.values.tolist()):
        values = [None if value != value else value for value in row]
        named = dict(zip(panel.sensors, values))
        if shape == "mapping":
            out.append(
                {
                    "time": str(time),
                    "values": {name: value for name, value in named.items() if value is not None},
                }
            )
        elif shape == "list":
            out.append({"time": str(time), "values": values})
        else:
            out.extend({"time": str(time), "sensor": name, "value": value} for name, value in named.items())
    return [json.dumps(entry) for entry in out]


def records(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


# -- help and options --------------------------------------------------------------------------------------------------


def test_help_names_every_command_and_every_exit_code() -> None:
    said = " ".join(run("--help").stdout.split())
    assert [name for name in cli.ORDER if name not in said] == []
    assert [code for code in cli.EXIT_CODES if f"{code}: " not in said] == []


def test_without_words_there_is_help() -> None:
    assert "Usage" in run().output


def test_the_version_is_that_of_the_library() -> None:
    assert run("--version").stdout.strip() == f"ecad {ecad.__version__}"


@pytest.mark.parametrize("command", ["fit", "detect", "plan"])
def test_every_setting_is_an_option(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    said = run(command, "--help").stdout
    assert [row.name for row in settings.SETTINGS if f"--{row.name.replace('_', '-')} " not in said] == []


def test_every_option_for_reading_is_a_parameter_of_read_panel() -> None:
    known = inspect.signature(read_panel).parameters
    rows = [row.name for row in (*cli.READING, *cli.PLACES) if row.name not in ("begin", "end")]
    assert [name for name in rows if name not in known] == []
    assert sorted(set(known) - set(rows) - {"source", "start"}) == []  # start= is for arrays


def test_every_option_and_exit_code_is_in_the_docs(project: Path) -> None:
    page = (project / "docs" / "command-line.md").read_text(encoding="utf-8")
    commands: Any = typer.main.get_command(cli.app)
    options = {
        option: name
        for name, command in commands.commands.items()
        for parameter in command.params
        for option in parameter.opts
        if option.startswith("--") and option not in {row.option for row in cli.SETTINGS}
    }
    assert {option: name for option, name in options.items() if not re.search(rf"{option}\b", page)} == {}
    plain = page.replace("`", "")
    assert [code for code, meaning in cli.EXIT_CODES.items() if f"| {code} | {meaning} |" not in plain] == []


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ({"alpha": "0.01"}, {"alpha": 0.01}),
        ({"impute": "none"}, {"impute": None}),
        ({"calendar": "false"}, {"calendar": False}),
        ({"half_life": "inf"}, {"half_life": float("inf")}),
        ({"seasonal_lags": "24,168"}, {"seasonal_lags": [24, 168]}),
        ({"seasonal_lags": "24"}, {"seasonal_lags": [24]}),
        ({"seasonal_lags": "None"}, {"seasonal_lags": None}),
        ({"seasonal_lags": "auto"}, {"seasonal_lags": "auto"}),
        ({"regressor": "ridge"}, {"regressor": "ridge"}),
        ({"groups": "sensor"}, {"groups": "sensor"}),
    ],
)
def test_words_become_settings(words: dict[str, str], wanted: dict[str, Any]) -> None:
    assert cli.words._settings(words) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("linear", "LinearRegression()"),
        ("random-forest", "RandomForestRegressor()"),
        ("HistGradientBoostingRegressor(max_iter=20)", "HistGradientBoostingRegressor(max_iter=20)"),
        ("ridge(alpha=10)", "Ridge(alpha=10)"),
        (
            "k-neighbors(n_neighbors=3, weights='distance')",
            "KNeighborsRegressor(n_neighbors=3, weights='distance')",
        ),
    ],
)
def test_any_regressor_of_scikit_learn_has_a_name(text: str, wanted: str) -> None:
    assert str(cli.words._settings({"regressor": text})["regressor"]) == wanted


@pytest.mark.parametrize(
    "text", ["forest", "linear(3)", "linear(a=", "linear(**{})", "linear(fit_intercept=print())"]
)
def test_a_regressor_that_cannot_be_made_is_a_matter_of_usage(text: str) -> None:
    done = run("plan", "--sensors", "5", "--times", "300", "--regressor", text)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("ecad: error: --regressor ")


def test_groups_may_come_from_a_file(tmp_path: Path) -> None:
    table = tmp_path / "groups.csv"
    table.write_text("sensor,group\nA,north\nB,south\n")
    assert cli.words._settings({"groups": str(table)})["groups"] == {"A": "north", "B": "south"}


# -- the same numbers as the library -----------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_fit_and_detect_give_the_numbers_of_the_library(
    city: Path, report: ecad.Report, tmp_path: Path, ending: str
) -> None:
    out = tmp_path / f"verdicts.{ending}"
    done = run("detect", city / "model.ecad", city / "readings.csv", "--from", CUT, "--out", out)
    assert done.exit_code == 0, done.stderr
    found, wanted = io.read_frame(out), report.to_frame()
    assert list(found.columns) == list(wanted.columns)
    assert len(found) == report.values.size
    for name in ("value", "expected", "lower", "upper", "score", "p_value", "strength"):
        assert np.array_equal(found[name].to_numpy(), wanted[name].to_numpy(), equal_nan=True), name
    for name in ("time", "sensor", "alarm", "status"):
        assert found[name].tolist() == wanted[name].tolist(), name


def test_one_file_is_fitted_and_judged_at_once(city: Path, report: ecad.Report) -> None:
    words = ["--positions", city / "positions.csv", "--random-state", "0", "--alpha", "0.02", "--json"]
    by_time = run("detect", city / "readings.csv", "--train-until", CUT, *words)
    by_share = run("detect", city / "readings.csv", "--train-fraction", "0.8", *words)
    with_model = run("detect", city / "model.ecad", city / "readings.csv", "--from", CUT, "--json")
    assert json.loads(by_time.stdout) == json.loads(by_share.stdout) == json.loads(with_model.stdout)
    facts = json.loads(by_time.stdout)
    assert facts["alarms"] == int(report.alarms.sum())
    assert facts["tested"] == int(np.isfinite(report.p_values).sum())
    assert [episode["sentence"] for episode in facts["episodes"]] == [e.sentence() for e in report.episodes]
    assert sum(facts["status"].values()) == report.values.size


def test_episodes_become_a_table(city: Path, report: ecad.Report, tmp_path: Path) -> None:
    out = tmp_path / "episodes.csv"
    assert (
        run("detect", city / "model.ecad", city / "readings.csv", "--from", CUT, "--episodes", out).exit_code
        == 0
    )
    found = io.read_frame(out)
    assert found["sentence"].tolist() == [episode.sentence() for episode in report.episodes]
    assert found["sensors"].tolist() == [";".join(episode.sensors) for episode in report.episodes]


def test_the_papers_settings_are_a_word_away(city: Path, panel: ecad.Panel, tmp_path: Path) -> None:
    words = ["--paper", "--regressor", "ridge", "--train-until", CUT, "--positions", city / "positions.csv"]
    done = run("detect", city / "readings.csv", *words, "--random-state", "0", "--json")
    earlier, later = panel.split(CUT)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the iterative imputer may not have come to its end
        report = ecad.ECAD.paper(regressor="ridge", random_state=0).fit(earlier).detect(later)
    assert json.loads(done.stdout)["alarms"] == int(report.alarms.sum())


def test_data_may_be_written_in_another_way(tmp_path: Path) -> None:
    table = tmp_path / "long.csv"
    rng = np.random.default_rng(0)
    rows = [
        f"{day:02d}.01.2025 {hour:02d}:00;{name};" + f"{rng.normal():.3f}".replace(".", ",")
        for day in range(1, 15)
        for hour in range(24)
        for name in "ab"
    ]
    table.write_text("\n".join(["when;which;much", *rows]) + "\n")
    words = ["--time-column", "when", "--sensor-column", "which", "--value-column", "much", "--decimal", ","]
    words += ["--time-format", "%d.%m.%Y %H:%M", "--layout", "long"]
    done = run("fit", table, *words, "--model", tmp_path / "m.ecad", "--alpha", "0.1", "--json")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["times"] == 14 * 24
    more = [
        "--step",
        "1h",
        "--time-zone",
        "Europe/Berlin",
        "--sensors",
        "b,a",
        "--until",
        "2025-01-10",
        "--missing-values",
        "-9,n/a",
    ]
    done = run("fit", table, *words, *more, "--model", tmp_path / "m.ecad", "--alpha", "0.1", "--json")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["last"] == "2025-01-09T23:00:00+01:00"


# -- watch -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", ["mapping", "list", "long"])
def test_a_watched_stream_gives_the_numbers_of_detect(
    city: Path, panel: ecad.Panel, report: ecad.Report, shape: str
) -> None:
    later = panel.split(CUT)[1][:30]
    done = process("watch", city / "model.ecad", stdin="\n".join(lines_of(later, shape)))  # a real pipe
    assert done.returncode == 0, done.stderr
    found = records(done.stdout)
    wanted = report.to_frame().iloc[: later.values.size]
    assert [record["sensor"] for record in found] == wanted["sensor"].tolist()
    assert [record["status"] for record in found] == wanted["status"].tolist()
    for name in ("p_value", "expected", "score", "strength"):
        got = np.array([record[name] for record in found], dtype=float)
        close = np.isclose(got, wanted[name].to_numpy(), rtol=1e-9, atol=1e-9, equal_nan=True)
        assert close.all(), name


def test_a_tick_may_be_one_line_and_quiet_readings_left_out(
    city: Path, panel: ecad.Panel, report: ecad.Report
) -> None:
    later = panel.split(CUT)[1]
    stdin = "\n".join(lines_of(later, "list"))
    ticks = records(run("watch", city / "model.ecad", "--per", "tick", stdin=stdin).stdout)
    assert [tick["alarms"] for tick in ticks] == report.alarms.sum(axis=1).tolist()
    assert all(len(tick["verdicts"]) == panel.n_sensors for tick in ticks)
    alarms = records(run("watch", city / "model.ecad", "--alarms-only", stdin=stdin).stdout)
    assert len(alarms) == report.alarms.sum() and all(alarm["alarm"] for alarm in alarms)


def test_a_saved_stream_goes_on_where_it_stopped(city: Path, panel: ecad.Panel, tmp_path: Path) -> None:
    lines = lines_of(panel.split(CUT)[1][:40], "mapping")
    whole = run("watch", city / "model.ecad", stdin="\n".join(lines)).stdout
    first = run(
        "watch", city / "model.ecad", "--save", tmp_path / "s.ecad", stdin="\n".join(lines[:17])
    ).stdout
    second = run("watch", tmp_path / "s.ecad", stdin="\n".join(lines[17:])).stdout
    assert first + second == whole


BAD_LINES = [
    ("not json", "it is not JSON"),
    ("[1, 2]", "it is a list"),
    ('{"values": {}}', 'it has no "time"'),
    ('{"time": "2025-02-03 01:00"}', 'a line needs "values"'),
    ('{"time": "2025-02-03 01:00", "values": 3}', '"values" must be a mapping'),
    ('{"time": "2025-02-03 01:00", "values": [1, 2]}', "6 sensors were fitted"),
    ('{"time": "2025-02-03 01:00", "values": {"S99": 1}}', "no sensor of that name was fitted"),
    ('{"time": "2025-02-03 01:00", "values": {"S01": "much"}}', "a number is needed"),
    ('{"time": "2025-02-03 01:30", "values": {}}', "not on the panel's step"),
    ('{"time": "2025-02-02 01:00", "values": {}}', "not after the newest one"),
    ('{"time": "tomorrow", "values": {}}', "is no time"),
    ('{"time": 17, "values": {}}', "is no time"),
    ('{"sensor": "S01", "value": 1}', 'a single reading needs a "time"'),
    ('{"time": "2025-02-03 01:00", "sensor": "S99", "value": 1}', "no sensor of that name was fitted"),
    ('{"time": "2025-02-03 01:00", "sensor": "S01", "value": "x"}', "a number is needed"),
    (b"\xff\xfe{}", "it is not UTF-8"),
]


@pytest.mark.parametrize(("bad", "why"), BAD_LINES, ids=[why for _, why in BAD_LINES])
def test_a_bad_line_is_told_by_its_number(city: Path, panel: ecad.Panel, bad: str | bytes, why: str) -> None:
    good = [line.encode() for line in lines_of(panel.split(CUT)[1][:3], "list")]
    bad = bad if isinstance(bad, bytes) else bad.encode()
    stdin = b"\n".join([good[0], b"", bad, good[1], good[2]])
    stopped = run("watch", city / "model.ecad", stdin=stdin)
    assert stopped.exit_code == cli.DATA
    assert len(records(stopped.stdout)) == panel.n_sensors  # what came before is judged
    errors = [line for line in stopped.stderr.splitlines() if "error" in line]
    assert len(errors) == 1 and errors[0].startswith("ecad: error: line 3: ") and why in errors[0]
    skipped = run("watch", city / "model.ecad", "--on-error", "skip", stdin=stdin)
    assert skipped.exit_code == 0
    assert len(records(skipped.stdout)) == 3 * panel.n_sensors
    assert "3 ticks judged" in skipped.stderr and "1 line skipped" in skipped.stderr


def test_a_clock_that_is_a_little_late_and_one_that_is_years_ahead(city: Path, panel: ecad.Panel) -> None:
    first, second = (json.loads(line) for line in lines_of(panel.between(CUT), "mapping")[:2])
    late = {**second, "time": second["time"][:-9] + "20" + second["time"][-7:]}
    wrong = {**second, "time": second["time"].replace("2025", "2125")}
    lines = "\n".join(map(json.dumps, (first, wrong, late)))
    done = process("watch", city / "model.ecad", "--per", "tick", "--on-error", "skip", stdin=lines)
    assert done.returncode == 0 and "line 2: it is 876," in done.stderr and "--longest-gap" in done.stderr
    ticks = records(done.stdout)
    assert [tick["time"] for tick in ticks] == [first["time"][:19], second["time"][:19]]
    assert ticks[1]["gap"] == 0


def test_single_readings_a_little_apart_are_one_tick(city: Path, panel: ecad.Panel) -> None:
    one, two = panel.sensors[:2]
    lines = [
        {"time": f"{CUT[:10]} 00:00:0{second}", "sensor": sensor, "value": 300.0}
        for second, sensor in ((0, one), (7, two))
    ]
    done = process("watch", city / "model.ecad", "--per", "tick", stdin="\n".join(map(json.dumps, lines)))
    (tick,) = records(done.stdout)
    assert [record["value"] for record in tick["verdicts"][:3]] == [300.0, 300.0, None]


def test_a_reading_out_of_order_or_given_twice_is_left_out_alone(city: Path) -> None:
    def reading(hour: int, sensor: str, value: float) -> str:
        return json.dumps({"time": f"2025-02-03 {hour:02d}:00", "sensor": sensor, "value": value})

    lines = [
        reading(1, "S01", 5),
        reading(1, "S01", 6),
        reading(0, "S02", 7),
        reading(1, "S02", 8),
        reading(2, "S01", 9),
    ]
    done = run("watch", city / "model.ecad", "--on-error", "skip", stdin="\n".join(lines))
    assert "line 2: it is a second reading" in done.stderr and "line 3: the reading of 'S02'" in done.stderr
    values = [
        (record["time"][11:13], record["value"])
        for record in records(done.stdout)
        if record["value"] is not None
    ]
    assert values == [("01", 5.0), ("01", 8.0), ("02", 9.0)]


def test_numbered_ticks_need_no_time(tmp_path: Path) -> None:
    values = np.random.default_rng(0).normal(size=(400, 3))
    ecad.save(ecad.ECAD(random_state=0).fit(values[:300]), tmp_path / "m.ecad")
    stdin = "\n".join(json.dumps({"values": row}) for row in values[300:].tolist())
    done = run("watch", tmp_path / "m.ecad", stdin=stdin)
    assert done.exit_code == 0, done.stderr
    found = records(done.stdout)
    assert [found[0]["time"], found[-1]["time"]] == [300, 399]
    report = ecad.ECAD(random_state=0).fit(values[:300]).detect(values[300:])
    assert np.allclose([record["p_value"] for record in found], report.p_values.ravel(), atol=1e-9)


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_stream_cleanly(
    city: Path, panel: ecad.Panel, tmp_path: Path, sign: signal.Signals
) -> None:
    lines = lines_of(panel.split(CUT)[1][:3], "list")
    command = [
        sys.executable,
        "-m",
        "ecad.cli",
        "watch",
        str(city / "model.ecad"),
        "--save",
        str(tmp_path / "s.ecad"),
    ]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as running:
        assert running.stdin is not None and running.stdout is not None and running.stderr is not None
        running.stdin.write("\n".join(lines[:2]) + "\n")
        running.stdin.flush()
        verdicts = [
            running.stdout.readline() for _ in range(2 * panel.n_sensors)
        ]  # without the end of the input: flushed
        running.send_signal(sign)
        assert running.wait(timeout=60) == 0
        said = running.stderr.read()
    assert all(verdicts) and "2 ticks judged" in said and "Traceback" not in said
    assert ecad.load(tmp_path / "s.ecad").time == panel.split(CUT)[1].times[1]


def test_nobody_minds_a_reader_who_goes_away(city: Path, panel: ecad.Panel, tmp_path: Path) -> None:
    (tmp_path / "ticks").write_text("\n".join(lines_of(panel.split(CUT)[1], "list")))
    command = (
        f"'{sys.executable}' -m ecad.cli watch '{city / 'model.ecad'}' < '{tmp_path / 'ticks'}' | head -1"
    )
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0 and len(done.stdout.splitlines()) == 1
    assert "Traceback" not in done.stderr and "BrokenPipe" not in done.stderr


# -- errors and exit codes ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "code", "why"),
    [
        ("fit nowhere.csv", 3, "no file 'nowhere.csv'"),
        ("fit {city}/readings.csv --alpha 2", 2, "--alpha 2 will not do"),
        ("fit {city}/readings.csv --season fortnight", 2, "--season 'fortnight' is not known"),
        (
            "fit {city}/readings.csv --alpha 0.0001 --model {new}/m.ecad",
            3,
            "--alpha 0.0001 cannot be reached",
        ),
        ("fit {city}/readings.csv --positions {city}/edges.csv", 3, "'lon' and 'lat'"),
        ("fit {city}/readings.csv --from yesterday", 3, "'yesterday' is no time"),
        ("fit {city}/readings.csv --model {new}/nowhere/m.ecad", 4, "nowhere/m.ecad"),
        ("fit {city}/readings.csv --unheard-of 3", 2, "No such option"),
        ("detect {city}/readings.csv", 2, "--train-until"),
        ("detect {city}/readings.csv --train-fraction 0.5 --train-until 2025-02-01", 2, "one of"),
        ("detect {city}/model.ecad {city}/readings.csv", 3, "those that --from leaves"),
        ("detect {city}/model.ecad {city}/readings.csv --alpha 0.1", 2, "--alpha belongs to fitting"),
        (
            "detect {city}/model.ecad {city}/readings.csv --train-fraction 0.5",
            2,
            "--train-until or --train-fraction",
        ),
        ("detect {city}/edges.csv {city}/readings.csv", 4, "not a model file"),
        ("detect {new}/m.ecad {city}/readings.csv", 4, "m.ecad"),
        ("watch {city}/model.ecad --on-error ignore", 2, "--on-error 'ignore' is not known"),
        ("plot {city}/readings.csv", 3, "no table of verdicts"),
        ("plot {city}/a {city}/b {city}/c", 2, "MODEL DATA"),
        ("plot {city}/model.ecad {city}/readings.csv --alpha 0.1", 2, "leave --alpha"),
        ("fit {city}/readings.csv --model {city}/readings.csv", 2, "readings.csv is read by this command"),
        (
            "fit {city}/readings.csv --positions {city}/positions.csv --model {city}/positions.csv",
            2,
            "positions.csv is read",
        ),
        ("fit {city}/readings.csv --model {city}/truth.csv", 4, "is there, and it is no model file"),
        (
            "detect {city}/model.ecad {city}/readings.csv --out {city}/readings.csv",
            2,
            "--out {city}/readings.csv would be overwritten",
        ),
        (
            "detect {city}/model.ecad {city}/readings.csv --out {new}/a.csv --episodes {new}/a.csv",
            2,
            "--out is written by this command",
        ),
        ("plot {city}/model.ecad {city}/readings.csv --page {city}/model.ecad", 2, "model.ecad is read"),
        (
            f"plot {{city}}/model.ecad {{city}}/readings.csv --from {CUT[:10]} --png {{new}}/a.gif",
            2,
            ".png, .svg or .pdf",
        ),
        (
            "fit {city}/readings.csv --regressor random-forest(n_estimators=-5) --n-members 2 --model {new}/m.ecad",
            3,
            "RandomForestRegressor says: The 'n_estimators' parameter",
        ),
        (
            "fit {city}/readings.csv --regressor k-neighbors(n_neighbors=50000) --n-members 2 --model {new}/m.ecad",
            3,
            "KNeighborsRegressor says: ",
        ),
        (
            "fit {city}/readings.csv --regressor poisson --n-members 2 --model {new}/m.ecad",
            3,
            "--scale None gives them as they are read",
        ),
        ("fit {city}/readings.csv --paper --model {new}/m.ecad", 2, '--regressor "ridge"'),
        ("plan --sensors 4 --times 960 --paper", 2, '--regressor "ridge"'),
        ("detect {city}/readings.csv --train-fraction 1.5", 3, "1.5 is no share"),
        ("simulate {new}/x --seed -1", 2, "seed=-1 will not do"),
        ("simulate {new}/x --format xls", 2, "csv, parquet or feather"),
        ("simulate {new}/x --missing much", 2, "--missing 'much' is not known"),
        ("simulate {new}/x --kinds drop,flood", 2, "'flood'"),
        ("plan --sensors 20 --times 1000 --step soon", 2, "'soon'"),
        ("info {city}/edges.csv", 4, "not a model file"),
    ],
)
def test_an_error_is_one_line_and_an_exit_code(
    city: Path, tmp_path: Path, words: str, code: int, why: str
) -> None:
    done = run(*words.format(city=city, new=tmp_path).split())
    assert done.exit_code == code, done.output
    assert done.stdout == ""
    assert why.format(city=city) in " ".join(re.sub(r"[│╭╮╰╯─]", "", done.stderr).split())
    if "No such option" not in why:
        assert len(done.stderr.splitlines()) == 1 and done.stderr.startswith("ecad: error: ")


def test_an_error_of_ours_is_no_traceback() -> None:
    done = process("fit", "nowhere.csv")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("ecad: error: ") and done.stderr.count("\n") == 1


def test_a_warning_is_one_line_too(city: Path, tmp_path: Path) -> None:
    table = tmp_path / "still.csv"
    text = (city / "readings.csv").read_text().splitlines()
    table.write_text("\n".join([text[0] + ",still", *(line + ",7" for line in text[1:])]))
    done = run("fit", table, "--model", tmp_path / "m.ecad")
    assert done.exit_code == 0
    assert (
        done.stderr.startswith("ecad: warning: Sensor 'still' has the same value")
        and done.stderr.count("\n") == 1
    )


def test_alarms_may_be_an_exit_code(city: Path) -> None:
    words = ("detect", city / "model.ecad", city / "readings.csv", "--from", CUT)
    assert run(*words).exit_code == 0
    done = run(*words, "--fail-on-alarm", "--json")
    assert done.exit_code == cli.ALARMS and json.loads(done.stdout)["alarms"] > 0


@pytest.mark.parametrize(
    ("sentence", "wanted"),
    [
        ("alpha=0.5 is too much", "--alpha 0.5 is too much"),
        ("say time_format=, such as '%d'", "say --time-format, such as '%d'"),
        ("time=, one of 'a', 'b'.", "--time-column, one of 'a', 'b'."),
        ('impute="keep" gives NaN', '--impute "keep" gives NaN'),
        ("p = 0.3 and i=4", "p = 0.3 and i=4"),
    ],
)
def test_parameters_are_told_as_options(sentence: str, wanted: str) -> None:
    assert cli.command._as_options(sentence) == wanted


# -- what is printed ---------------------------------------------------------------------------------------------------


def test_nothing_moves_where_nobody_watches(city: Path, tmp_path: Path) -> None:
    done = process("fit", city / "readings.csv", "--model", tmp_path / "m.ecad")
    assert (done.returncode, done.stderr) == (0, "")
    assert "\r" not in done.stdout and "\x1b" not in done.stdout


@pytest.mark.parametrize(
    "words",
    [
        "fit {city}/readings.csv --until 2025-02-03 --model {new}/m.ecad",
        "detect {city}/model.ecad {city}/readings.csv --from 2025-02-03 --out {new}/v.csv",
        "plot {city}/model.ecad {city}/readings.csv --from 2025-02-03 --page {new}/p.html",
        "plan --sensors 4 --times 300",
        "info {city}/model.ecad",
        "simulate {new}/other --sensors 3 --times 50",
    ],
)
def test_json_is_one_document(city: Path, tmp_path: Path, words: str) -> None:
    done = run(*words.format(city=city, new=tmp_path).split(), "--json")
    assert done.exit_code == 0, done.stderr
    assert isinstance(json.loads(done.stdout), dict)
    assert done.stderr == ""


def test_info_says_what_is_in_a_model(city: Path, panel: ecad.Panel) -> None:
    facts = json.loads(run("info", city / "model.ecad", "--json").stdout)
    assert facts["sensors"] == list(panel.sensors) and facts["settings"]["alpha"] == 0.02
    assert "2025-02-02 23:00" in run("info", city / "model.ecad").stdout


def test_saved_verdicts_give_the_page_of_the_report(city: Path, tmp_path: Path) -> None:
    data = [city / "model.ecad", city / "readings.csv", "--from", CUT]
    assert run("detect", *data, "--out", tmp_path / "v.csv", "--page", tmp_path / "1.html").exit_code == 0
    for name, words in {
        "2": data,
        "3": [tmp_path / "v.csv", "--model", city / "model.ecad"],
        "4": [tmp_path / "v.csv", "--positions", city / "positions.csv"],
    }.items():
        done = run("plot", *words, "--page", tmp_path / f"{name}.html")
        assert done.exit_code == 0, done.stderr
        assert (tmp_path / f"{name}.html").read_text() == (tmp_path / "1.html").read_text()


@pytest.mark.parametrize("form", ["csv", "parquet", "feather"])
def test_simulated_files_are_what_was_simulated(tmp_path: Path, form: str) -> None:
    words = ["--sensors", "5", "--times", "300", "--seed", "7", "--kinds", "drop,surge", "--format", form]
    assert run("simulate", tmp_path, *words).exit_code == 0
    wanted = datasets.simulate(5, 300, seed=7, kinds=["drop", "surge"])
    found = read_panel(
        tmp_path / f"readings.{form}", tmp_path / f"positions.{form}", tmp_path / f"edges.{form}"
    )
    assert np.array_equal(found.values, wanted.panel.values, equal_nan=True)
    assert np.array_equal(found.times, wanted.panel.times)
    assert np.array_equal(found.positions, wanted.panel.positions)
    assert len(io.read_frame(tmp_path / f"truth.{form}")) == wanted.truth.sum()
    assert io.read_frame(tmp_path / f"events.{form}")["kind"].tolist() == [
        event.kind for event in wanted.events
    ]


def test_demo_finds_most_of_what_was_planted_and_the_readme_says_how_much(
    tmp_path: Path, project: Path
) -> None:
    done = run("demo", "--out", tmp_path / "demo", "--json")
    assert done.exit_code == 0, done.stderr
    facts = json.loads(done.stdout)
    assert facts["all"]["events"] >= 30 and facts["all"]["found"] >= 0.8 * facts["all"]["events"]
    assert 0.7 * facts["alpha"] < facts["false_alarms"]["ordinary_days"]["share"] < 1.3 * facts["alpha"]
    assert all(Path(path).stat().st_size > 0 for path in facts["files"].values())
    assert {"page", "picture", "model"} <= set(facts["files"])
    readme = (project / "README.md").read_text(encoding="utf-8")
    quiet, holidays = (
        cli.telling.share(facts["false_alarms"][day]["share"]) for day in ("ordinary_days", "holidays")
    )
    assert f"{facts['all']['events']} events were planted, and {facts['all']['found']} of them" in readme
    assert f"{quiet} alarm" in readme and f"it is {holidays}:" in readme


def test_demo_without_matplotlib_tells_what_it_found_and_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    done = run("demo", "--out", tmp_path / "demo")
    assert done.exit_code == cli.EXTRA
    assert "What was planted, and what was found" in done.stdout
    assert "pip install 'ecad[plot]'" in done.stderr


def test_the_command_line_brings_neither_matplotlib_nor_polars_nor_what_draws_tables() -> None:
    """What `ecad --help` costs beyond `import ecad`."""
    script = "import ecad, sys; before = set(sys.modules); import ecad.cli; print(*set(sys.modules) - before)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=os.environ
    )
    assert not {"matplotlib", "polars", "rich.table", "pyarrow.csv"} & set(done.stdout.split())
