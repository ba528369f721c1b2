"""words typed -> settings, detectors, panels, models."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import ModelFileError, PanelError, SettingError
from .options import Words
from .telling import busy

if TYPE_CHECKING:
    from ..detector import ECAD
    from ..panel import Panel
    from ..stream import Stream


def value_of(text: str) -> Any:
    """none, true, false, a number, or the word itself."""
    known = {"none": None, "true": True, "false": False}
    if text.lower() in known:
        return known[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def listed_texts(text: str) -> list[str]:
    """Words with commas between them."""
    return [part.strip() for part in text.split(",") if part.strip()]


def _listed(text: str) -> list[Any]:
    return [value_of(part.strip()) for part in text.split(",") if part.strip()]


def detector_of(method: Words, paper: bool) -> ECAD:
    """The detector that was asked for, not yet fitted."""
    from ..detector import ECAD

    chosen = _settings(method)
    return ECAD.paper(**chosen) if paper else ECAD(**chosen)


def _settings(words: Words) -> dict[str, Any]:
    readers: dict[str, Callable[[str], Any]] = {
        "regressor": _regressor,
        "groups": _groups,
        "seasonal_lags": lambda text: value_of(text) if text.lower() in ("auto", "none") else _listed(text),
    }
    return {name: readers.get(name, value_of)(text) for name, text in words.items()}


def _regressor(text: str) -> Any:
    """ridge, or any scikit-learn regressor by its name: random-forest, HistGradientBoosting(max_iter=50), ..."""
    if text in ("ridge", "lstm"):
        return text
    name, _, rest = text.partition("(")
    known = _regressors()
    kind = known.get(_bare(name))
    if kind is None:
        few = "ridge, linear, hist-gradient-boosting, random-forest, extra-trees, gradient-boosting, k-neighbors"
        raise SettingError(
            f"regressor={text!r} is not known: it takes {few}, or any scikit-learn regressor by its name."
        )
    try:
        return kind(**_arguments(rest))
    except (TypeError, ValueError, SyntaxError) as error:
        raise SettingError(f"regressor={text!r} cannot be made: {error}.") from error


def _regressors() -> dict[str, Any]:
    from sklearn.utils import all_estimators

    made_of_others = ("multioutput", "regressorchain", "voting", "stacking")
    found = {_bare(name): kind for name, kind in all_estimators(type_filter="regressor")}
    return {name: kind for name, kind in found.items() if name not in made_of_others}


def _bare(name: str) -> str:
    """RandomForestRegressor, random-forest, random_forest -> randomforest."""
    plain = re.sub(r"[-_ ]", "", name).lower()
    return re.sub(r"(regressor|regression)$", "", plain) or plain


def _arguments(rest: str) -> dict[str, Any]:
    """What stands between brackets, as keyword arguments; literals only, nothing is ever run."""
    import ast

    if not rest:
        return {}
    call = ast.parse(f"f({rest}", mode="eval").body
    if not isinstance(call, ast.Call) or call.args or any(word.arg is None for word in call.keywords):
        raise ValueError("arguments must be given by name, like random-forest(max_depth=8)")
    return {str(word.arg): ast.literal_eval(word.value) for word in call.keywords}


def _groups(text: str) -> Any:
    """shared, sensor, or a file with the columns sensor and group."""
    if text in ("shared", "sensor") or not Path(text).exists():
        return text
    from ..io import read_frame

    frame = read_frame(text)
    if not {"sensor", "group"} <= set(frame.columns):
        raise PanelError(
            f"{text} has the columns {', '.join(map(str, frame.columns))}; needed are sensor and group."
        )
    return dict(zip(map(str, frame["sensor"].tolist()), frame["group"].tolist(), strict=True))


def panel_of(path: str, words: Words, places: Words | None = None, like: Panel | None = None) -> Panel:
    """A file as a panel; with `like`, on its grid, as a continuation of it."""
    from ..panel import as_panel

    options: dict[str, Any] = {name: text for name, text in words.items() if name not in ("begin", "end")}
    for name, read in {"step": value_of, "sensors": listed_texts, "missing_values": _listed}.items():
        if name in options:
            options[name] = read(options[name])
    with busy(f"reading {path}"):
        panel = as_panel(path, like, **options, **(places or {}))
    if "begin" in words or "end" in words:
        panel = panel.between(moment(panel, words.get("begin")), moment(panel, words.get("end")))
    return panel


def files_of(*tables: Words) -> list[str]:
    """The files that options name."""
    return [words[name] for words in tables for name in ("positions", "adjacency", "groups") if name in words]


def refuse_overwriting(read: Iterable[str | None], written: Mapping[str, str | None]) -> None:
    """Nothing that a command reads may be what it writes, and no two of its files the same."""
    taken = {os.path.realpath(path): f"{path} is read" for path in read if path is not None}
    for option, path in written.items():
        if path is None:
            continue
        place = os.path.realpath(path)
        if place in taken:
            raise SettingError(f"{option} {path} would be overwritten: {taken[place]} by this command.")
        taken[place] = f"{option} is written"


def moment(panel: Panel, text: str | None) -> Any:
    """A time as typed; tick numbers are whole numbers."""
    return text if text is None or panel.has_clock else value_of(text)


def load_model(path: str) -> Any:
    """What a model file holds; a file that cannot be read is a matter of the model."""
    from ..modelfile import load

    try:
        with busy(f"reading {path}"):
            return load(path)
    except OSError as error:
        raise ModelFileError(f"{path}: {error.strerror or error}") from error


def load_detector(path: str) -> ECAD:
    """The fitted ECAD of a model file."""
    from ..detector import ECAD

    model = load_model(path)
    if isinstance(model, ECAD):
        return model
    kind = type(model).__name__
    remedy = "use ecad watch, which goes on from there" if kind == "Stream" else "it has no panel of sensors"
    raise ModelFileError(f"{path} holds a {kind}, and a fitted ECAD is needed: {remedy}.")


def load_stream(path: str) -> Stream:
    """The stream of a model file, or the one that a fitted ECAD begins."""
    from ..detector import ECAD
    from ..stream import Stream

    model = load_model(path)
    if isinstance(model, ECAD):
        return model.stream()
    if isinstance(model, Stream):
        return model
    raise ModelFileError(f"{path} holds a {type(model).__name__}, and an ECAD or a stream is needed.")
