"""One table of settings: what a constructor takes is what stands there, and a bad value gets one clear sentence."""

from __future__ import annotations

import inspect
import math
import re
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, Ridge

from ecad import ECAD, TabularECAD, settings
from ecad.errors import EcadError, SettingError

NAN = math.nan
ROWS = {row.name: row for row in settings.SETTINGS}

GOOD: dict[str, list[Any]] = {
    "regressor": ["ridge", "lstm", Ridge()],
    "n_members": [2, 25, 65_535, np.int64(30)],
    "aggregation": ["mean", "median", "trimmed_mean", lambda p: p.max(axis=0)],
    "lags": [1, 168, np.int32(5)],
    "neighbours": [1, 10**6],
    "seasonal_lags": ["auto", None, (), [24], (24, 168), np.array([7])],
    "calendar": ["auto", True, False],
    "season": ["auto", "week", "day", None],
    "same_tick": [True, False],
    "scale": ["sensor", None],
    "impute": ["gaussian", "seasonal", "iterative", "keep", None],
    "train_on": ["observed", "all"],
    "silent_after": ["auto", None, 1, 24],
    "groups": ["shared", "sensor", {"a": 1}],
    "bootstrap": ["block", "iid"],
    "centre": ["ensemble", "quantile"],
    "centre_level": [None, 0.05, 0.999],
    "score": ["absolute", "signed", "studentised"],
    "reference": ["window", "seasonal", "local"],
    "pool": ["sensor"],
    "local": ["and", "or"],
    "classes": ["own_last", "hour", None],
    "absorb": ["runs", "all"],
    "half_life": [None, 24, 0.5, np.float64(672)],
    "p_value": ["conformal", "paper"],
    "tail": ["both"],
    "alpha": [1e-9, 0.05, 0.999, np.float32(0.1)],
    "rule": ["fixed", "bh"],
    "unreachable": ["refuse", "warn"],
    "dtype": ["float64", "float32"],
    "random_state": [None, 0, 2**40, np.int64(3), np.random.RandomState(0), np.random.default_rng(0)],
    "n_jobs": [None, 1, 2, -1, np.int64(2)],
    "progress": [None, True, False],
}
ODD: list[Any] = [
    "",
    "no such thing",
    b"mean",
    -1.5,
    NAN,
    math.inf,
    [1, "x"],
    np.array([0.1, 0.2]),
    object(),
    2j,
]
BAD: dict[str, list[Any]] = {
    "regressor": [None, 3, Ridge, LogisticRegression(), "Ridge"],
    "n_members": [None, 0, 1, 65_536, 2.0, True, "25"],
    "aggregation": [None, 3, "Mean"],
    "lags": [None, 0, 5.0, True],
    "neighbours": [None, 0, 5.0],
    "seasonal_lags": ["week", 24, [0], [24.0], ["24"], [None], True],
    "calendar": [None, "yes"],
    "season": ["month", True],
    "same_tick": [None, 1, "yes"],
    "scale": ["none", True],
    "impute": ["mean", True, 0],
    "train_on": [None, "filled"],
    "silent_after": [0, 1.0, True, "never"],
    "groups": [None, 3, ["a", "b"], "none"],
    "bootstrap": [None, "stationary"],
    "centre": [None, "median"],
    "centre_level": [0, 1, "0.05"],
    "score": [None, "studentized"],
    "reference": [None, "all"],
    "pool": [None, "all"],
    "local": [None, "AND"],
    "classes": ["none", True],
    "absorb": [None, "none"],
    "half_life": [0, -24, "24", True],
    "p_value": [None, "exact"],
    "tail": [None, "right"],
    "alpha": [None, 0, 1, 1.5, -0.05, "0.05", True],
    "rule": [None, "BH"],
    "unreachable": [None, "ignore"],
    "dtype": [None, float, np.float64, "float16"],
    "random_state": [-1, 1.0, "0", True],
    "n_jobs": [0, 1.5, "all", True, False],
    "progress": ["yes", 2],
}


# -- the table ---------------------------------------------------------------------------------------------------------


def test_every_setting_is_a_parameter_of_ecad_with_the_same_default() -> None:
    parameters = inspect.signature(ECAD).parameters
    assert set(parameters) == set(ROWS)
    assert {name: p.default for name, p in parameters.items()} == {
        row.name: row.default for row in ROWS.values()
    }


def test_the_parameters_of_tabular_ecad_are_settings_too() -> None:
    parameters = inspect.signature(TabularECAD).parameters
    assert set(parameters) <= set(ROWS)
    others = {name for name, p in parameters.items() if p.default != ROWS[name].default}
    assert others == {"centre"}  # the paper's, on its own algorithm


def test_every_setting_says_what_it_means() -> None:
    assert len(ROWS) == len(settings.SETTINGS)
    for row in settings.SETTINGS:
        assert len(row.meaning) > 10 and not row.meaning.endswith(".")


def test_a_meaning_names_every_word_that_the_setting_takes() -> None:
    for name, options in settings._OPTIONS.items():
        words = [option for option in options if isinstance(option, str)]
        assert [word for word in words if f'"{word}"' not in ROWS[name].meaning] == []


def test_the_examples_of_this_test_leave_no_setting_out() -> None:
    assert set(GOOD) == set(BAD) == set(ROWS)


def test_the_defaults_are_settings_that_work() -> None:
    plan = settings.checked()
    assert {name: getattr(plan, name) for name in ROWS} == {name: row.default for name, row in ROWS.items()}


# -- values ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in GOOD.items() for value in values], ids=str
)
def test_a_value_that_works_is_let_through_as_it_came(name: str, value: Any) -> None:
    assert getattr(settings.checked(**{name: value}), name) is value


def one_sentence(error: EcadError, name: str, value: Any) -> bool:
    text = str(error)
    return (
        text.startswith(f"{name}=")
        and repr(value) in text
        and text.endswith(".")
        and "\n" not in text.replace(repr(value), "")
        and re.search(r": (it takes|use) ", text) is not None
    )


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in BAD.items() for value in values], ids=str
)
def test_a_value_that_cannot_work_gets_one_sentence_with_what_is_needed(name: str, value: Any) -> None:
    with pytest.raises(SettingError) as caught:
        settings.checked(**{name: value})
    given = value[0] if name == "seasonal_lags" and isinstance(value, list) else value
    assert one_sentence(caught.value, name, given)


@pytest.mark.parametrize("name", ROWS)
def test_no_setting_falls_over_anything_that_is_given(name: str) -> None:
    for value in ODD:
        with pytest.raises(SettingError, match=f"^{name}="):
            settings.checked(**{name: value})


@pytest.mark.parametrize(
    ("given", "remedy"),
    [
        ({"pool": "network"}, 'score="studentised"'),
        ({"pool": "network", "score": "studentised", "reference": "seasonal"}, 'pool="sensor"'),
        ({"pool": "network", "score": "studentised", "reference": "local"}, 'pool="sensor"'),
        ({"tail": "high"}, 'score="signed"'),
        ({"tail": "low", "score": "studentised"}, 'score="signed"'),
    ],
)
def test_settings_that_do_not_go_together_are_refused_with_the_remedy(
    given: dict[str, Any], remedy: str
) -> None:
    with pytest.raises(SettingError, match=re.escape(remedy)):
        settings.checked(**given)


def test_settings_that_go_together_are_let_through() -> None:
    settings.checked(pool="network", score="studentised")
    settings.checked(tail="high", score="signed")


def test_constructing_checks_nothing_and_fitting_checks_everything() -> None:
    detector, tabular = ECAD(alpha=7), TabularECAD(alpha=7)
    with pytest.raises(SettingError, match="alpha=7"):
        detector.fit(np.zeros((50, 2)))
    with pytest.raises(SettingError, match="alpha=7"):
        tabular.fit(np.zeros((50, 2)), np.zeros(50))


def test_an_lstm_needs_a_panel() -> None:
    with pytest.raises(SettingError, match="regressor='lstm'"):
        TabularECAD(regressor="lstm").fit(np.zeros((50, 2)), np.zeros(50))


# -- seeds -------------------------------------------------------------------------------------------------------------


def test_a_seed_is_a_number_from_whatever_was_given() -> None:
    assert settings.seed_of(7) == settings.seed_of(np.int64(7)) == 7
    assert settings.seed_of(np.random.RandomState(1)) == settings.seed_of(np.random.RandomState(1))
    assert settings.seed_of(np.random.default_rng(1)) == settings.seed_of(np.random.default_rng(1))
    assert settings.seed_of(None) != settings.seed_of(None)
    generator = np.random.default_rng(1)
    assert settings.seed_of(generator) != settings.seed_of(generator)
    for given in (7, np.random.RandomState(1), np.random.default_rng(1), None):
        assert type(settings.seed_of(given)) is int


# -- the paper ---------------------------------------------------------------------------------------------------------

PAPER = {  # method.md, section 8
    "regressor": "lstm",
    "lags": 5,
    "neighbours": 5,
    "seasonal_lags": None,
    "calendar": False,
    "season": None,
    "same_tick": False,
    "scale": None,
    "impute": "iterative",
    "train_on": "all",
    "bootstrap": "iid",
    "n_members": 25,
    "aggregation": "mean",
    "centre": "quantile",
    "centre_level": None,
    "score": "absolute",
    "reference": "local",
    "local": "and",
    "classes": None,
    "half_life": None,
    "absorb": "all",
    "p_value": "paper",
    "alpha": 0.05,
    "rule": "fixed",
    "unreachable": "warn",
    "silent_after": None,
    "groups": "shared",
}


def test_the_papers_settings_are_the_papers() -> None:
    given = ECAD.paper().get_params(deep=False)
    assert {name: given[name] for name in PAPER} == PAPER
    settings.checked(**given)


def test_the_paper_with_ridge_differs_in_the_regressor_only() -> None:
    lstm, ridge = (ECAD.paper(regressor=name).get_params() for name in ("lstm", "ridge"))
    assert {name for name in lstm if lstm[name] != ridge[name]} == {"regressor"}


def test_single_settings_of_the_paper_can_be_overridden() -> None:
    given = ECAD.paper(regressor="ridge", lags=8, alpha=0.01, n_jobs=2).get_params()
    assert (given["lags"], given["alpha"], given["n_jobs"], given["impute"]) == (8, 0.01, 2, "iterative")
    with pytest.raises(SettingError, match="'lag'"):
        ECAD.paper(lag=8)


# -- scikit-learn's grammar --------------------------------------------------------------------------------------------


def test_a_clone_has_the_same_parameters_and_nothing_learned() -> None:
    for original in (
        ECAD(lags=3, alpha=0.1),
        ECAD.paper(),
        TabularECAD(regressor=Ridge(2.0), centre="ensemble"),
    ):
        copy = clone(original)
        assert type(copy) is type(original) and copy is not original
        one, other = original.get_params(), copy.get_params()
        assert {name: str(value) for name, value in one.items()} == {
            name: str(value) for name, value in other.items()
        }


def test_parameters_can_be_set_also_those_of_the_regressor() -> None:
    for detector in (ECAD(regressor=Ridge()), TabularECAD(regressor=Ridge())):
        assert detector.set_params(alpha=0.2, regressor__alpha=7.0) is detector
        assert (detector.alpha, detector.regressor.alpha) == (0.2, 7.0)
        with pytest.raises(ValueError, match="no_such"):
            detector.set_params(no_such=1)
