"""detector or stream <-> one file, in which nothing can bring code along and no changed byte goes unnoticed.

    magic, format version, two lengths | manifest (JSON) | arrays, one after another | SHA-256 of all before it

The manifest says what wrote the file, and holds a tree: plain values, arrays by their number, dataclasses of ours by
name from a fixed list, and estimators of scikit-learn, which skops takes apart and puts together from a fixed list of
types. Whatever else an object holds (a function, an estimator of somebody's own) is refused when it is saved, and
whatever else a file asks for is refused when it is loaded. Magic, lengths and hash stay where they are in later
versions, so that every version can tell a damaged file from a newer one.

The hash finds damage. It is no signature: who writes a file chooses the numbers in it, and compiled loops trust them.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import numbers
import os
import platform
import re
import secrets
import struct
import types
import typing
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Union

import numpy as np
import sklearn
from sklearn.base import BaseEstimator
from sklearn.exceptions import InconsistentVersionWarning

from . import ensemble, features, imputation, pvalues, scores, seasonality
from ._version import __version__
from .detector import ECAD
from .errors import EcadWarning, ModelFileError
from .judging import Memory, Model
from .learners import Members
from .learners.ridge import RidgeMembers
from .learners.sklearn import SklearnMembers
from .panel import Panel
from .stream import Stream
from .tabular import TabularECAD

Array = np.ndarray[Any, Any]
Pathlike = str | os.PathLike[str]

MAGIC = b"\x89ECAD\r\n\x1a"  # whatever takes the file for text breaks it here already
VERSION = 1

_HEAD = struct.Struct("<8sQQQ")  # magic, format version, bytes of the manifest, bytes of the file
_HASH = hashlib.sha256().digest_size
_NUMBERS = "biufmM"  # kinds of arrays: truth values, whole numbers, numbers, spans of time, times

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
_PARTS: dict[str, type[Any]] = {
    part.__name__: part
    for part in (
        Model, Memory, Panel, features.Layout, features.Recent, seasonality.Usual, seasonality.Season,
        imputation.Gaussian, imputation.Iterative, imputation.Seasonal, imputation.Keep, imputation.LastDeviation,
        ensemble.OutOfBag, RidgeMembers, SklearnMembers, scores.LocalScale, pvalues.Reference, pvalues.Window,
    )
}  # fmt: skip
# what a window sorts its ring into, and can sort again
_MADE_AGAIN = ("sorted_scores", "sorted_marks", "sorted_ticks", "n", "n_by_class")

TRUSTED = (
    "numpy.dtype",
    "sklearn._loss.loss.HalfTweedieLoss",
    "sklearn._loss.loss.HalfTweedieLossIdentity",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.impute._iterative.IterativeImputer",
    "sklearn.impute._iterative._ImputerTriplet",
    "sklearn.metrics._dist_metrics.EuclideanDistance64",
    "sklearn.neighbors._ball_tree.BallTree",
    "sklearn.neighbors._kd_tree.KDTree",
    "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
    "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
    "sklearn.tree._tree.Tree",
)
"""Types of estimators' insides, beside scikit-learn's public estimators and what skops itself trusts."""


def save(obj: ECAD | Stream | TabularECAD, path: Pathlike) -> None:
    """Write a detector (fitted or not) or a stream to one file; `load` restores it to the bit.

    The file appears when it is complete, in the place of an older one. What a file cannot hold is refused: a function
    as aggregation, and regressors other than scikit-learn's own.
    """
    writer = _Writer()
    kind, contents = _contents(obj)
    tree = writer.node(contents, "")
    manifest = {
        "object": kind,
        "ecad": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scikit-learn": sklearn.__version__,
        "arrays": [[array.dtype.str, list(array.shape), _order(array)] for array in writer.arrays],
        "contents": tree,
    }
    _write(path, _chunks(json.dumps(manifest, allow_nan=False).encode(), writer.arrays))


def load(path: Pathlike) -> Any:
    """The detector or stream that was saved; a truncated, altered or newer file is an error."""
    name = repr(os.fspath(path))
    content = _read(path, name)
    written_by = ""
    try:
        manifest, arrays = _unpacked(content)
        written_by = str(manifest["ecad"])
        reader = _Reader(arrays)
        obj = _put_together(manifest["object"], reader.value(manifest["contents"]))
    except MemoryError:
        raise
    except Exception as error:
        # the hash was right, so nothing is damaged: another version wrote this, or somebody else
        raise ModelFileError(_not_ours(name, written_by, error)) from error
    if reader.met_estimators:
        _tell_other_version(manifest["scikit-learn"], name)
    return obj


# -- objects <-> what their files hold ---------------------------------------------------------------------------------


def _contents(obj: Any) -> tuple[str, dict[str, Any]]:
    if type(obj) is Stream:
        return "Stream", {"model": obj.model, "memory": obj.memory, "last_tick": obj.last_tick}
    kind = type(obj).__name__
    if _ESTIMATORS.get(kind) is not type(obj):
        raise ModelFileError(
            f"A {_named(obj)} cannot be saved: a model file holds an ECAD, a Stream or a TabularECAD."
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
    _require(kind, held, _HELD[kind])
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


def _shortened(part: Any) -> dict[str, Any]:
    """The fields of a dataclass, without what can be made again from the others."""
    values = {field.name: getattr(part, field.name) for field in fields(part)}
    if isinstance(part, pvalues.Window):
        return {name: value for name, value in values.items() if name not in _MADE_AGAIN}
    if isinstance(part, Model) and part.centre_quantile is not None:
        values["centre_quantile"] = part.centre_quantile.rank
    return values


def _completed(kind: type[Any], values: dict[str, Any]) -> Any:
    if kind is pvalues.Window:
        values |= dict.fromkeys(_MADE_AGAIN, np.empty(0))  # until the reference is known: _sort_window
    if kind is Model and values["centre_quantile"] is not None:
        oob = values["oob"]
        alpha = 1.0 - values["centre_quantile"] / oob.n_predictors  # any that gives this rank
        values["centre_quantile"] = ensemble.QuantileCentre(oob, alpha, values["dtype"])
    _require(kind.__name__, values, typing.get_type_hints(kind))
    return kind(**values)


def _require(owner: str, values: dict[str, Any], hints: dict[str, Any]) -> None:
    """Every value must be of the type that its annotation says."""
    for name, value in values.items():
        if name not in hints:
            raise TypeError(f"{owner} has no {name}")
        if not _fits(value, hints[name]):
            raise TypeError(f"{owner}.{name} is a {_named(value)}")


def _fits(value: Any, hint: Any) -> bool:
    if hint is Any:
        return True
    if hint is Members:
        return isinstance(value, RidgeMembers | SklearnMembers)
    origin = typing.get_origin(hint)
    if origin in (Union, types.UnionType):
        return any(_fits(value, option) for option in typing.get_args(hint))
    plain = origin or hint
    return isinstance(value, {int: numbers.Integral, float: numbers.Real}.get(plain, plain))


# -- values <-> nodes of the manifest ----------------------------------------------------------------------------------


class _Writer:
    """Values -> nodes of JSON, and the arrays that they name by number. An array that stands twice is written once."""

    def __init__(self) -> None:
        self.arrays: list[Array] = []
        self._number: dict[int, int] = {}

    def node(self, value: Any, where: str) -> Any:
        kind = type(value)
        if value is None or kind in (bool, int, str):
            return value
        if kind is float:
            return value if math.isfinite(value) else {"float": str(value)}
        if kind is list:
            return [self.node(item, where) for item in value]
        if kind is tuple:
            return {"tuple": [self.node(item, where) for item in value]}
        if kind is dict:
            pairs = value.items()
            return {
                "dict": [[self.node(key, where), self.node(item, _inside(where, key))] for key, item in pairs]
            }
        if isinstance(value, np.str_):
            return str(value)
        if kind is np.ndarray and value.dtype == object and all(type(item) is str for item in value.flat):
            return {"texts": value.tolist()}
        if kind is np.ndarray and value.dtype.kind in _NUMBERS:
            return {"array": self._array(value)}
        if isinstance(value, np.generic) and value.dtype.kind in _NUMBERS:
            return {"scalar": self._array(np.asarray(value))}
        if is_dataclass(kind) and _PARTS.get(kind.__name__) is kind:
            parts = _shortened(value).items()
            return {kind.__name__: {name: self.node(part, _inside(where, name)) for name, part in parts}}
        if isinstance(value, BaseEstimator):
            return {"estimator": self._array(np.frombuffer(_estimator_bytes(value, where), np.uint8))}
        raise ModelFileError(
            f"{where} is a {_named(value)}, which a model file cannot hold: it holds no code, only numbers, texts, "
            "arrays, lists, dicts and scikit-learn's own estimators."
        )

    def _array(self, array: Array) -> int:
        if id(array) not in self._number:
            self._number[id(array)] = len(self.arrays)  # what is being saved keeps the array, and so its id
            self.arrays.append(array if array.flags.forc else np.ascontiguousarray(array))
        return self._number[id(array)]


class _Reader:
    """Nodes of JSON and arrays -> values."""

    def __init__(self, arrays: list[Array]) -> None:
        self.arrays = arrays
        self.met_estimators = False

    def value(self, node: Any) -> Any:
        if isinstance(node, list):
            return [self.value(item) for item in node]
        if not isinstance(node, dict):
            return node
        ((kind, content),) = node.items()
        if kind in _PARTS:
            return _completed(_PARTS[kind], {name: self.value(item) for name, item in content.items()})
        return self._plain(kind, content)

    def _plain(self, kind: str, content: Any) -> Any:
        if kind == "float":
            return float(content)
        if kind == "tuple":
            return tuple(self.value(item) for item in content)
        if kind == "dict":
            return {self.value(key): self.value(item) for key, item in content}
        if kind == "texts":
            return np.array([str(item) for item in content], dtype=object)
        if kind == "array":
            return self.arrays[content]
        if kind == "scalar":
            return self.arrays[content][()]
        if kind == "estimator":
            self.met_estimators = True
            return _estimator(self.arrays[content].tobytes())
        raise ValueError(f"{kind!r} is nothing that a model file may ask for")


def _estimator_bytes(estimator: BaseEstimator, where: str) -> bytes:
    import skops.io

    try:
        content = skops.io.dumps(estimator)
        strange = sorted(set(skops.io.get_untrusted_types(data=content)) - set(TRUSTED))
    except Exception as error:  # skops has no error of its own
        said = _first_line(error)
        raise ModelFileError(
            f"{where} is a {_named(estimator)}, which skops cannot write: {said}."
        ) from error
    if strange:
        raise ModelFileError(
            f"{where} is or holds a {strange[0]}, which a model file cannot hold: it takes scikit-learn's own "
            "estimators, and nothing inside them that is not on its list of trusted types."
        )
    return content


def _estimator(content: bytes) -> BaseEstimator:
    import skops.io

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InconsistentVersionWarning)  # said once for the whole file
        estimator = skops.io.loads(content, trusted=TRUSTED)
    if not isinstance(estimator, BaseEstimator):
        raise TypeError(f"a {_named(estimator)} stands where an estimator is needed")
    return estimator


def _inside(where: str, name: Any) -> str:
    return str(name) if where in ("", "parameters", "learned") else f"{where}.{name}"


def _named(value: Any) -> str:
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


# -- manifest and arrays <-> bytes -------------------------------------------------------------------------------------


def _order(array: Array) -> str:
    return "C" if array.flags.c_contiguous else "F"


def _chunks(manifest: bytes, arrays: list[Array]) -> Iterator[Any]:
    """The file, piece by piece, and at its end the hash of all pieces."""
    length = _HEAD.size + len(manifest) + sum(array.nbytes for array in arrays) + _HASH
    digest = hashlib.sha256()
    head = _HEAD.pack(MAGIC, VERSION, len(manifest), length)
    segments: list[Any] = [array.reshape(-1, order="A").view(np.uint8) for array in arrays]
    for chunk in [head, manifest, *segments]:
        digest.update(chunk)
        yield chunk
    yield digest.digest()


def _unpacked(content: Array) -> tuple[dict[str, Any], list[Array]]:
    _, _, n_manifest, _ = _HEAD.unpack_from(content.data)
    end = _HEAD.size + n_manifest
    manifest = json.loads(content[_HEAD.size : end].tobytes())
    arrays = []
    for name, shape, order in manifest["arrays"]:
        dtype = np.dtype(str(name))
        if dtype.kind not in _NUMBERS or order not in ("C", "F"):
            raise ValueError(f"an array of {name!r} in order {order!r} is nothing that a model file may hold")
        start, end = end, end + dtype.itemsize * math.prod(shape)
        flat = content[start:end].view(dtype)
        arrays.append(flat.reshape(shape, order=order).copy(order="K"))  # arrays of their own, aligned
    if end != len(content) - _HASH:
        raise ValueError(f"its arrays end at byte {end} of {len(content) - _HASH}")
    return manifest, arrays


# -- bytes <-> disk ----------------------------------------------------------------------------------------------------


def _write(path: Pathlike, chunks: Iterable[Any]) -> None:
    """All or nothing: the file of this name is the old one until the new one is safely on the disk."""
    target = Path(os.path.realpath(path))
    part = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        with open(part, "xb") as file:
            for chunk in chunks:
                file.write(chunk)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, target)
    except OSError as error:
        name = repr(os.fspath(path))
        raise ModelFileError(f"The model cannot be written to {name}: {error.strerror or error}.") from error
    finally:
        with contextlib.suppress(OSError):
            part.unlink()


def _read(path: Pathlike, name: str) -> Array:
    """The bytes of a model file, proven to be those that were written."""
    try:
        with open(path, "rb") as file:
            begin = file.read(len(MAGIC))
            if begin == MAGIC:
                file.seek(0)
                content: Array = np.fromfile(file, dtype=np.uint8)
    except OSError as error:
        raise ModelFileError(f"The model cannot be read from {name}: {error.strerror or error}.") from error
    if not begin:
        raise ModelFileError(f"{name} is empty: it is no model file, or all of it was lost.")
    if begin != MAGIC:
        what = "is truncated" if MAGIC.startswith(begin) else "is not a model file of ECAD"
        raise ModelFileError(f"{name} {what}: it begins with {begin!r}, and a model file with {MAGIC!r}.")
    _prove(content, name)
    return content


def _prove(content: Array, name: str) -> None:
    if len(content) < _HEAD.size + _HASH:
        raise ModelFileError(f"{name} is truncated: {len(content)} bytes are less than any model file has.")
    _, version, _, length = _HEAD.unpack_from(content.data)
    if len(content) < length:
        raise ModelFileError(
            f"{name} is truncated (or altered): {len(content):,} of its {length:,} bytes are there."
        )
    if len(content) > length:
        raise ModelFileError(
            f"{name} is altered: it has {len(content):,} bytes, and {length:,} were written."
        )
    if hashlib.sha256(content[:-_HASH].data).digest() != content[-_HASH:].tobytes():
        raise ModelFileError(
            f"{name} is altered: its bytes are not those that were written (their SHA-256 differs)."
        )
    if version > VERSION:
        raise ModelFileError(
            f"{name} has format version {version}, and ecad {__version__} reads up to {VERSION}: install a newer ecad."
        )


# -- words -------------------------------------------------------------------------------------------------------------


def _tell_other_version(then: str, name: str) -> None:
    if _release(then)[:2] != _release(sklearn.__version__)[:2]:
        warnings.warn(
            f"{name} holds estimators of scikit-learn {then}, and this is {sklearn.__version__}, which promises "
            "nothing for them: fit again, or install that version.",
            EcadWarning,
            stacklevel=3,
        )


def _not_ours(name: str, written_by: str, error: Exception) -> str:
    said = _first_line(error)
    if _release(written_by) > _release(__version__):
        return f"{name} needs ecad {written_by}, which wrote it; this is {__version__}: install a newer one ({said})."
    return f"{name} does not hold what ecad {__version__} writes into a model file ({said})."


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0].rstrip(".")


def _release(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:3])
