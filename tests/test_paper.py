"""The paper's preset on its own data: a sample of readings recomputed from the raw file by plain loops."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

# the imputer of scikit-learn must be enabled before it can be imported
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer
from threadpoolctl import threadpool_limits

import naive
from ecad import ECAD, settings

FRACTIONS = (0.3, 0.4, 0.5, 0.6, 0.7)
N_SAMPLED = 500


def raw(folder: Path, fraction: float) -> tuple[np.ndarray, np.ndarray]:
    """Training and test readings of the raw files, every hour a row; the hour that is in neither is a row of NaN."""
    parts = [pd.read_parquet(folder / f"{which}_{fraction}.parquet") for which in ("train", "test")]
    hours = pd.date_range(parts[0].index[0], parts[1].index[-1], freq="h")
    everything = pd.concat(parts).reindex(hours).to_numpy(dtype=float)
    cut = len(hours) - len(parts[1])
    return everything[:cut], everything[cut:]


def sample(n_test: int, n_sensors: int) -> list[tuple[int, int]]:
    """All sensors at runs of five hours, so that references share their scores; the first hours are among them."""
    runs = np.linspace(0, n_test - 5, N_SAMPLED // (5 * n_sensors)).astype(int)
    return [(start + t, k) for start in runs for t in range(5) for k in range(n_sensors)]


@pytest.fixture(scope="module")
def pems10(data_folder: Path) -> Path:
    folder = data_folder / "pems10"
    if not folder.is_dir():
        pytest.skip(f"missing data: {folder} is not a folder")
    return folder


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Tall and narrow products: BLAS threads that wait for each other cost twenty times the work."""
    with threadpool_limits(1):
        yield


@pytest.mark.usefixtures("one_thread")
@pytest.mark.filterwarnings("ignore:.IterativeImputer. Early stopping")
@pytest.mark.parametrize("fraction", FRACTIONS)
def test_scores_p_values_and_alarms_on_pems10_are_those_of_plain_loops(pems10: Path, fraction: float) -> None:
    train, test = raw(pems10, fraction)
    fitted = ECAD.paper(regressor="ridge", random_state=3).fit(
        pd.read_parquet(pems10 / f"train_{fraction}.parquet")
    )
    report = fitted.detect(pd.read_parquet(pems10 / f"test_{fraction}.parquet"))
    assert report.p_values.shape == test.shape

    imputer = IterativeImputer(random_state=fitted.seed_, keep_empty_features=True)
    filled = np.where(np.isnan(train), imputer.fit_transform(train), train)
    order = naive.order_of_neighbours(None, None, None, train)
    places = sample(len(test), test.shape[1])
    assert len(places) == N_SAMPLED
    expected = naive.paper_pipeline(
        filled, test, order, fitted.in_bag_, 5, 5, 1.0, 0.05, places, train_observed=~np.isnan(train)
    )
    t, k = np.array(places).T
    spread = np.nanstd(train, axis=0)[k]
    np.testing.assert_allclose(report.expected[t, k] / spread, expected["centre"] / spread, rtol=0, atol=1e-9)
    np.testing.assert_allclose(report.scores[t, k] / spread, expected["score"] / spread, rtol=0, atol=1e-9)
    np.testing.assert_array_equal(report.p_values[t, k], expected["p_value"])
    np.testing.assert_array_equal(report.alarms[t, k], expected["alarm"])
    assert report.alarms[t, k].any()


def test_the_preset_has_the_settings_of_the_paper() -> None:
    preset = ECAD.paper(regressor="ridge").get_params()
    assert {name: preset[name] for name in settings.PAPER} == settings.PAPER
    stated = {
        "n_members": 25, "lags": 5, "neighbours": 5, "alpha": 0.05, "aggregation": "mean", "bootstrap": "iid",
        "centre": "quantile", "score": "absolute", "reference": "local", "local": "and", "classes": None,
        "absorb": "all", "p_value": "paper", "impute": "iterative", "train_on": "all", "scale": None,
        "calendar": False, "seasonal_lags": None, "same_tick": False, "regressor": "ridge",
    }  # fmt: skip
    assert {name: preset[name] for name in stated} == stated
    assert ECAD.paper().regressor == "lstm"  # constructing it needs no torch
    assert ECAD.paper(regressor="ridge", alpha=0.1).alpha == 0.1
