"""detector or stream <-> one file, in which nothing can bring code along and no changed byte goes unnoticed.

The file's manifest says what wrote it, and holds a tree: plain values, arrays by their number, dataclasses of ours by
name from a fixed list, and estimators of scikit-learn from a fixed list of types. Whatever else an object holds (a
function, an estimator of somebody's own) is refused when it is saved, and whatever else a file asks for is refused when
it is loaded.

The hash finds damage. It is no signature: who writes a file chooses the numbers in it, and compiled loops trust them.
"""

from __future__ import annotations

import json
import os
import platform
from dataclasses import replace
from typing import Any

import numpy as np
import sklearn

from .. import ensemble, pvalues
from .._version import __version__
from ..detector import ECAD
from ..errors import ModelFileError
from ..judging import Memory, Model
from ..learners import Members
from ..panel import Panel
from ..stream import Stream
from ..tabular import TabularECAD
from .estimators import tell_other_version
from .nodes import Reader, Writer
from .parts import require
from .sealed import Pathlike, chunks, order_of, read, unpacked, write
from .words import first_line, named, release

Array = np.ndarray[Any, Any]

_ESTIMATORS: dict[str, type[Any]] = {"ECAD": ECAD, "TabularECAD": TabularECAD}
_HELD: dict[str, dict[str, Any]] = {  # the attributes that an object's file holds beside its parameters
    "Stream": {"model": Model, "memory": Memory, "last_tick": Panel},
    "ECAD": {
        "model_": Model, "memory_": Memory, "last_tick_": Panel, "in_bag_": Array, "train_ticks_": Array,
        "train_times_": Array, "calibration_scores_": Array, "seed_": int,
    },
    "TabularECAD": {
        "in_bag_": Array, "calibration_scores_": Array, "seed_": int, "n_rows_": int, "_members": Members,
        "_oob": ensemble.OutOfBag, "_spread": float, "n_features_in_": int, "feature_names_in_": Array,
    },
}  # fmt: skip


def save(obj: ECAD | Stream | TabularECAD, path: Pathlike) -> None:
    """Write a detector (fitted or not) or a stream to one file; `load` restores it to the bit.

    The file appears when it is complete, in the place of an older one. What a file cannot hold is refused: a function
    as aggregation, and regressors other than scikit-learn's own.
    """
    writer = Writer()
    kind, contents = _contents(obj)
    tree = writer.node(contents, "")
    manifest = {
        "object": kind,
        "ecad": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scikit-learn": sklearn.__version__,
        "arrays": [[array.dtype.str, list(array.shape), order_of(array)] for array in writer.arrays],
        "contents": tree,
    }
    write(path, chunks(json.dumps(manifest, allow_nan=False).encode(), writer.arrays))


def load(path: Pathlike) -> Any:
    """The detector or stream that was saved; a truncated, altered or newer file is an error."""
    name = repr(os.fspath(path))
    content = read(path, name)
    written_by = ""
    try:
        manifest, arrays = unpacked(content)
        written_by = str(manifest["ecad"])
        reader = Reader(arrays)
        obj = _put_together(manifest["object"], reader.value(manifest["contents"]))
    except MemoryError:
        raise
    except Exception as error:
        # the hash was right, so nothing is damaged: another version wrote this, or somebody else
        raise ModelFileError(_not_ours(name, written_by, error)) from error
    if reader.met_estimators:
        tell_other_version(manifest["scikit-learn"], name)
    return obj


def _contents(obj: Any) -> tuple[str, dict[str, Any]]:
    if type(obj) is Stream:
        return "Stream", {"model": obj.model, "memory": obj.memory, "last_tick": obj.last_tick}
    kind = type(obj).__name__
    if _ESTIMATORS.get(kind) is not type(obj):
        raise ModelFileError(
            f"A {named(obj)} cannot be saved: a model file holds an ECAD, a Stream or a TabularECAD."
        )
    parameters = obj.get_params(deep=False)
    learned = {name: value for name, value in vars(obj).items() if name not in parameters}
    strange = sorted(learned.keys() - _HELD[kind].keys())
    if strange:
        raise ModelFileError(f"The {kind} has an attribute {strange[0]!r}, which a model file does not know.")
    if learned and isinstance(parameters["random_state"], np.random.Generator | np.random.RandomState):
        # it has moved on since the fit; the number that was drawn from it gives the same members again
        parameters["random_state"] = learned["seed_"]
    if _ring_is_scores(learned):
        del learned["calibration_scores_"]
    return kind, {"parameters": parameters, "learned": learned}


def _put_together(kind: str, contents: dict[str, Any]) -> Any:
    held = contents if kind == "Stream" else contents["learned"]
    require(kind, held, _HELD[kind])
    if kind == "Stream":
        _sort_window(held["model"], held["memory"])
        return Stream(**held)
    obj = _ESTIMATORS[kind](**contents["parameters"])
    if "memory_" in held:
        _sort_window(held["model_"], held["memory_"])
        held.setdefault("calibration_scores_", np.ascontiguousarray(held["memory_"].window.ring.T))
    missing = _HELD[kind].keys() - held.keys() - {"feature_names_in_"}
    if held and missing:
        raise TypeError(f"{kind} lacks {min(missing)}")
    for name, value in held.items():
        setattr(obj, name, value)
    return obj


def _ring_is_scores(learned: dict[str, Any]) -> bool:
    """Whether a detector's window still holds exactly its training scores, and nothing else."""
    if "memory_" not in learned:
        return False
    ring, calibration = learned["memory_"].window.ring, learned["calibration_scores_"].T
    return ring.shape == calibration.shape and bool((ring.view(np.int64) == calibration.view(np.int64)).all())


def _sort_window(model: Model, memory: Memory) -> None:
    window = memory.window
    twin: dict[str, Any] = pvalues.sorted_twin(window.ring, window.marks, window.ticks, model.reference)
    memory.window = replace(window, **twin)


def _not_ours(name: str, written_by: str, error: Exception) -> str:
    said = first_line(error)
    if release(written_by) > release(__version__):
        return f"{name} needs ecad {written_by}, which wrote it; this is {__version__}: install a newer one ({said})."
    return f"{name} does not hold what ecad {__version__} writes into a model file ({said})."
