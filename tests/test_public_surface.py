"""The names that users, documents and checks rely on, and what `import ecad` costs."""

from __future__ import annotations

import importlib.metadata
import inspect
import subprocess
import sys

import pytest

import ecad

PUBLIC = [
    "ECAD",
    "EcadError",
    "EcadWarning",
    "Episode",
    "Panel",
    "Report",
    "TabularECAD",
    "Verdict",
    "__version__",
    "datasets",
    "load",
    "read_panel",
    "save",
]
ECAD_DEFAULTS = {
    "regressor": "ridge",
    "n_members": 25,
    "aggregation": "mean",
    "lags": 5,
    "neighbours": 5,
    "impute": "gaussian",
    "train_on": "observed",
    "bootstrap": "block",
    "centre": "ensemble",
    "score": "absolute",
    "reference": "window",
    "pool": "sensor",
    "classes": "own_last",
    "absorb": "runs",
    "half_life": None,
    "p_value": "conformal",
    "tail": "both",
    "alpha": 0.05,
    "random_state": None,
    "n_jobs": None,
}
TABULAR_PARAMETERS = {"regressor", "n_members", "aggregation", "centre", "p_value", "alpha", "random_state"}
NEVER_AT_IMPORT = {"matplotlib", "polars", "torch", "typer"}
# scikit-learn imports these two itself where it finds them, so all we can promise is to do without
NOT_NEEDED_AT_IMPORT = {*NEVER_AT_IMPORT, "pandas", "pyarrow"}
HIDE = """
import sys
from importlib.abc import MetaPathFinder

class Hide(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name in {names}:
            raise ModuleNotFoundError(name, name=name)

sys.meta_path.insert(0, Hide())
"""


def run_python(source: str) -> str:
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_public_names_are_these() -> None:
    assert ecad.__all__ == PUBLIC
    assert ecad.__all__ == sorted(ecad.__all__)
    assert [name for name in PUBLIC if not hasattr(ecad, name)] == []


def test_the_version_is_the_installed_one() -> None:
    assert ecad.__version__ == importlib.metadata.version("ecad")


def test_every_error_of_ours_is_a_value_error() -> None:
    assert issubclass(ecad.EcadError, ValueError)
    assert issubclass(ecad.EcadWarning, UserWarning)


@pytest.mark.parametrize(("name", "default"), ECAD_DEFAULTS.items(), ids=ECAD_DEFAULTS)
def test_the_default_of_ecad_is_documented_and_stays(name: str, default: object) -> None:
    assert inspect.signature(ecad.ECAD).parameters[name].default == default


def test_tabular_ecad_takes_the_parameters_it_promises() -> None:
    assert set(inspect.signature(ecad.TabularECAD).parameters) >= TABULAR_PARAMETERS


@pytest.mark.parametrize(
    ("owner", "names"),
    [
        ("ECAD", "paper fit detect stream get_params set_params"),
        ("TabularECAD", "fit predict detect member_predictions get_params set_params"),
        ("Report", "to_frame episodes plot summary status"),
        ("Verdict", "to_records"),
        ("datasets", "simulate"),
    ],
)
def test_the_methods_users_rely_on_exist(owner: str, names: str) -> None:
    assert [name for name in names.split() if not hasattr(getattr(ecad, owner), name)] == []


def test_import_ecad_brings_no_plots_no_command_line_and_no_networks(
    capsys: pytest.CaptureFixture[str],
) -> None:
    seconds, *brought = run_python(
        "import sys, time; start = time.perf_counter(); import ecad\n"
        f"print(f'{{time.perf_counter() - start:.2f}}', *sorted({NEVER_AT_IMPORT} & set(sys.modules)))"
    ).split()
    with capsys.disabled():
        print(f" [import ecad: {seconds} s] ", end="")
    assert brought == []


def test_import_ecad_needs_no_data_frame_library() -> None:
    run_python(HIDE.format(names=NOT_NEEDED_AT_IMPORT) + "import ecad")
