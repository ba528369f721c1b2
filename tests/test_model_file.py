"""Model files: what comes back is what was saved, to the bit, and anything else is refused."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import pickle
import struct
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
    RandomForestRegressor,
)
from sklearn.linear_model import LinearRegression, Ridge, TweedieRegressor
from sklearn.neighbors import KNeighborsRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from threadpoolctl import threadpool_limits

import ecad
from ecad import modelfile
from ecad.errors import ModelFileError
from ecad.modelfile import estimators, sealed
from panels import small_panel

N_TRAIN, N_TIMES = 200, 240
HEAD = struct.Struct("<8sQQQ")
ARRAYS = ("p_values", "scores", "expected", "lower", "upper", "strength", "alarms", "status_codes")
RIDGE: dict[str, dict[str, Any]] = {
    "as it comes": {},
    "median": {"aggregation": "median"},
    "trimmed mean": {"aggregation": "trimmed_mean"},
    "quantile centre": {"centre": "quantile"},
    "quantile centre, median": {"centre": "quantile", "aggregation": "median", "centre_level": 0.3},
    "quantile centre, float32": {"centre": "quantile", "dtype": "float32"},
    "a model a sensor": {"groups": "sensor"},
    "groups": {"groups": {"s0": "a", "s1": "b", "s2": "a", "s3": 7}},
    "seasonal imputation": {"impute": "seasonal"},
    "no imputation": {"impute": None},
    "no imputation, a model a sensor": {"impute": None, "groups": "sensor"},
    "iterative imputation": {"impute": "iterative"},
    "same tick": {"same_tick": True},
    "seasonal reference": {"reference": "seasonal", "alpha": 0.1},
    "local reference": {"reference": "local", "alpha": 0.1},
    "local or": {"reference": "local", "local": "or"},
    "studentised": {"score": "studentised"},
    "one pool": {"score": "studentised", "pool": "network"},
    "one pool, half-life": {"score": "studentised", "pool": "network", "half_life": 50.0},
    "half-life": {"half_life": 60},
    "signed, one side": {"score": "signed", "tail": "low"},
    "signed, two sides, half-life": {"score": "signed", "half_life": 100.0},
    "hours, paper form, all absorbed": {"classes": "hour", "p_value": "paper", "absorb": "all"},
    "Benjamini-Hochberg": {"rule": "bh", "alpha": np.float64(0.1)},
    "float32": {"dtype": "float32"},
    "plain features": {"season": None, "calendar": False, "seasonal_lags": (12,), "scale": None, "silent_after": 10},
    "paper": {name: value for name, value in ecad.ECAD.paper().get_params().items() if name != "regressor"},
}  # fmt: skip
MEMBERS: dict[str, dict[str, Any]] = {
    "linear": {"regressor": LinearRegression()},
    "linear, a model a sensor": {"regressor": LinearRegression(), "groups": "sensor", "score": "studentised"},
    "ridge with sides": {"regressor": Ridge(alpha=2.5, positive=True)},
    "forest": {"regressor": RandomForestRegressor(5), "centre": "quantile"},
    "extra trees": {"regressor": ExtraTreesRegressor(5), "impute": "iterative"},
    "boosting": {"regressor": GradientBoostingRegressor(n_estimators=5)},
    "histogram boosting": {"regressor": HistGradientBoostingRegressor(max_iter=3)},
    "histogram boosting, holes kept": {"regressor": HistGradientBoostingRegressor(max_iter=3), "impute": "keep"},
    "neighbours": {"regressor": KNeighborsRegressor()},
    "network": {"regressor": MLPRegressor(hidden_layer_sizes=(4,), early_stopping=True, max_iter=3)},
    "pipeline": {"regressor": make_pipeline(StandardScaler(), TweedieRegressor(power=0))},
    "transformed": {"regressor": TransformedTargetRegressor(Ridge(), func=np.arcsinh, inverse_func=np.sinh)},
}  # fmt: skip


def panel_of(seed: int = 3, **changes: Any) -> ecad.Panel:
    small = small_panel(seed, n_times=N_TIMES, n_sensors=4, holes=0.08)
    return ecad.Panel(
        **{
            "values": small.values, "sensors": small.sensors, "times": small.times, "step": np.timedelta64(1, "h"),
            "positions": small.positions, "geometry": small.geometry, **changes,
        }
    )  # fmt: skip


def fitted(panel: ecad.Panel, **settings: Any) -> ecad.ECAD:
    detector = ecad.ECAD(**{"n_members": 6, "random_state": 5, "lags": 3, "neighbours": 3, **settings})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what a fit has to say is said to the user of the fit
        return detector.fit(panel[:N_TRAIN])


def back(obj: Any, folder: Path) -> Any:
    ecad.save(obj, folder / "model.ecad")
    return ecad.load(folder / "model.ecad")


def run(stream: Any, panel: ecad.Panel, ticks: range) -> list[Any]:
    return [stream.update(panel.times[t], panel.values[t]) for t in ticks]


def bits(report: Any) -> list[bytes]:
    return [getattr(report, name).tobytes() for name in ARRAYS]


def difference(a: Any, b: Any, where: str = "") -> str | None:
    """Where two objects differ: in a type, a number's bits, an array's order in memory; None where they do not."""
    if type(a) is not type(b):
        return f"{where}: {type(a)}, {type(b)}"
    if isinstance(a, np.ndarray):
        alike = (a.dtype, a.shape, a.flags.c_contiguous) == (b.dtype, b.shape, b.flags.c_contiguous)
        return None if alike and (a.tobytes() == b.tobytes() or a.tolist() == b.tolist()) else where
    if isinstance(a, dict | list | tuple):
        pairs = a if isinstance(a, dict) else range(len(a))
        if len(a) != len(b):
            return f"{where}: {len(a)}, {len(b)}"
        return next((d for key in pairs if (d := difference(a[key], b[key], f"{where}.{key}"))), None)
    if isinstance(a, BaseEstimator) and not isinstance(a, ecad.ECAD | ecad.TabularECAD):
        return None if repr(a) == repr(b) else where  # what it learned shows in its predictions
    if dataclasses.is_dataclass(a):
        names = [field.name for field in dataclasses.fields(a)]
        return difference({n: getattr(a, n) for n in names}, {n: getattr(b, n) for n in names}, where)
    if hasattr(a, "__dict__"):
        return difference(vars(a), vars(b), where)
    return None if a == b else where


def assert_comes_back(detector: ecad.ECAD, panel: ecad.Panel, folder: Path, end: int = N_TIMES) -> None:
    again = back(detector, folder)
    assert difference(vars(detector), vars(again)) is None
    later = panel[N_TRAIN:end]
    assert bits(again.detect(later)) == bits(detector.detect(later))
    stream = detector.stream()
    run(stream, panel, range(N_TRAIN, N_TRAIN + 6))
    twin = back(stream, folder)
    assert twin.time == stream.time and twin.sensors == stream.sensors
    rest = range(N_TRAIN + 8, end)  # two ticks are skipped
    for verdict, same in zip(run(stream, panel, rest), run(twin, panel, rest), strict=True):
        assert bits(verdict) == bits(same)
        assert (verdict.stand_ins, verdict.time, verdict.gap) == (same.stand_ins, same.time, same.gap)


@pytest.mark.parametrize("settings", RIDGE.values(), ids=RIDGE)
def test_a_detector_and_its_stream_come_back_to_the_bit(settings: dict[str, Any], tmp_path: Path) -> None:
    panel = panel_of()
    assert_comes_back(fitted(panel, **{**settings, "n_members": 6, "random_state": 5}), panel, tmp_path)


@pytest.mark.parametrize("settings", MEMBERS.values(), ids=MEMBERS)
def test_members_of_scikit_learn_come_back_to_the_bit(settings: dict[str, Any], tmp_path: Path) -> None:
    panel = panel_of()
    # threads that wait for one another take seconds here
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.filterwarnings("ignore", module="sklearn")
        assert_comes_back(fitted(panel, n_members=3, **settings), panel, tmp_path, end=N_TRAIN + 16)


@pytest.mark.parametrize(
    "changes",
    [
        {"time_zone": "Europe/Berlin"},
        {"time_zone": "+01:00", "frame": "polars"},
        {"times": np.arange(7, 7 + N_TIMES), "step": 1},
        {"positions": None, "geometry": None},
        {"positions": np.arange(8.0).reshape(4, 2), "geometry": "xy"},
        {"positions": None, "geometry": None, "adjacency": ([0, 1, 2], [1, 2, 3], [1.0, 2.0, 0.5])},
        {"sensors": ("Ä 1", "", "\ud800", '"x\n')},
        {"repairs": {"infinite": 3}},
    ],
    ids=["zone", "offset", "tick numbers", "correlation", "x, y", "adjacency", "odd names", "repairs"],
)
def test_panels_of_every_kind_come_back(changes: dict[str, Any], tmp_path: Path) -> None:
    panel = panel_of(**changes)
    assert_comes_back(fitted(panel, impute="seasonal", classes="own_last"), panel, tmp_path)


@pytest.mark.parametrize("seed", range(4))
def test_ties_stuck_readings_and_left_out_runs_come_back(seed: int, tmp_path: Path) -> None:
    small = small_panel(seed, n_times=600, n_sensors=3, whole_numbers=True, stuck=6)
    values = small.values.copy()
    values[350:380, 0] += 50 * np.nanstd(values[:, 0])  # a run that stays out of the window for a while
    panel = ecad.Panel(values=values, sensors=small.sensors, times=small.times, step=np.timedelta64(1, "h"))
    for settings in ({"half_life": 80.0}, {"score": "signed"}, {"score": "studentised", "pool": "network"}):
        detector = ecad.ECAD(n_members=5, lags=2, neighbours=2, random_state=0, **settings).fit(panel[:300])
        stream = detector.stream()
        run(stream, panel, range(300, 375))
        twin = back(stream, tmp_path)
        rest = range(375, 600)
        assert [*map(bits, run(stream, panel, rest))] == [*map(bits, run(twin, panel, rest))]


def test_more_than_a_hundred_sensors_come_back(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    values = random.normal(size=(N_TIMES, 104)) + random.normal(size=(N_TIMES, 1))
    values[random.random(values.shape) < 0.1] = np.nan
    panel = panel_of(
        values=values,
        sensors=tuple(f"s{k}" for k in range(104)),
        positions=random.random((104, 2)),
        geometry="xy",
    )
    assert_comes_back(fitted(panel, dtype="float32", same_tick=True), panel, tmp_path)


def test_one_sensor_comes_back(tmp_path: Path) -> None:
    panel = panel_of(positions=None, geometry=None).select(["s0"])
    assert_comes_back(fitted(panel, centre="quantile"), panel, tmp_path)


def test_a_stream_can_be_saved_after_every_tick(tmp_path: Path) -> None:
    panel = panel_of()
    detector = fitted(panel, score="studentised")
    stream = twin = detector.stream()
    for t in range(N_TRAIN, N_TRAIN + 10):
        twin = back(twin, tmp_path)  # of the one that was loaded before
        one, same = (run(which, panel, range(t, t + 1))[0] for which in (stream, twin))
        assert bits(one) == bits(same)


def test_saving_changes_nothing(tmp_path: Path) -> None:
    panel = panel_of()
    detector = fitted(panel)
    before = pickle.dumps(detector)
    ecad.save(detector, tmp_path / "model.ecad")
    assert pickle.dumps(detector) == before


def test_an_unfitted_detector_comes_back(tmp_path: Path) -> None:
    detector = ecad.ECAD(
        make_pipeline(StandardScaler(), Ridge(0.5)), np.int64(7), seasonal_lags=(24, 168), groups={"a": 1, "b": "x"},
        half_life=float("inf"), alpha=np.float32(0.1), random_state=2**60,
    )  # fmt: skip
    again = back(detector, tmp_path)
    assert type(again) is ecad.ECAD and not hasattr(again, "model_")
    assert difference(vars(detector), vars(again)) is None
    assert difference(vars(ecad.ECAD.paper()), vars(back(ecad.ECAD.paper(), tmp_path))) is None
    assert difference(vars(ecad.TabularECAD()), vars(back(ecad.TabularECAD(), tmp_path))) is None


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"aggregation": "median", "centre": "ensemble"},
        {"regressor": HistGradientBoostingRegressor(max_iter=5)},
        {"regressor": RandomForestRegressor(5), "aggregation": "trimmed_mean", "p_value": "paper"},
    ],
    ids=["ridge", "median", "histogram boosting", "forest"],
)
def test_a_tabular_detector_comes_back_to_the_bit(settings: dict[str, Any], tmp_path: Path) -> None:
    import pandas as pd

    random = np.random.default_rng(1)
    X = pd.DataFrame(random.normal(size=(90, 3)), columns=["a", "b", "ü"])
    y = X["a"].to_numpy() + random.normal(size=90)
    tabular = ecad.TabularECAD(**{"n_members": 5, "random_state": 0, "alpha": 0.1, **settings}).fit(
        X[:60], y[:60]
    )
    again = back(tabular, tmp_path)
    assert difference(vars(tabular), vars(again)) is None
    assert bits(again.detect(X[60:], y[60:])) == bits(tabular.detect(X[60:], y[60:]))


@pytest.mark.parametrize(
    "source", [np.random.default_rng(1), np.random.RandomState(1)], ids=["generator", "state"]
)
def test_a_random_generator_is_saved_as_the_seed_that_was_drawn_from_it(source: Any, tmp_path: Path) -> None:
    panel = panel_of()
    detector = fitted(panel, random_state=source)
    again = back(detector, tmp_path)
    assert again.random_state == detector.seed_
    assert (again.fit(panel[:N_TRAIN]).in_bag_ == detector.in_bag_).all()
    with pytest.raises(ModelFileError, match=r"random_state is a numpy\.random"):
        ecad.save(ecad.ECAD(random_state=source), tmp_path / "unfitted.ecad")


def test_a_loaded_detector_can_be_saved_and_fitted_again(tmp_path: Path) -> None:
    panel = panel_of()
    detector = back(fitted(panel, centre="quantile"), tmp_path)
    again = back(detector, tmp_path)
    assert difference(vars(detector), vars(again)) is None
    assert difference(vars(again.fit(panel[:N_TRAIN])), vars(detector)) is None


def test_a_file_holds_no_number_twice_that_can_be_had_from_another(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    values = random.normal(size=(2_000, 30))
    panel = ecad.Panel(values, tuple(map(str, range(30))), np.arange(2_000), 1)
    detector = ecad.ECAD(n_members=5, lags=2, neighbours=3, random_state=0).fit(panel)
    ecad.save(detector, tmp_path / "model.ecad")
    scores_and_marks = detector.calibration_scores_.size * 9
    assert (tmp_path / "model.ecad").stat().st_size < 1.3 * scores_and_marks


# -- what is refused when saving ---------------------------------------------------------------------------


class Own(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Somebody's own regressor."""

    def fit(self, X: Any, y: Any) -> Own:
        self.mean_ = float(np.mean(y))
        return self

    def predict(self, X: Any) -> Any:
        return np.full(len(X), self.mean_)


class Descendant(ecad.ECAD):
    """Somebody's own detector."""


def highest(predictions: Any) -> Any:
    return predictions.max(axis=0)


@pytest.mark.parametrize(
    ("obj", "words"),
    [
        (ecad.ECAD(aggregation=highest), "aggregation is a function, which a model file cannot hold"),
        (ecad.ECAD(aggregation=lambda p: p[0]), "aggregation is a function"),
        (ecad.ECAD(Own()), "regressor is or holds a test_model_file.Own"),
        (ecad.TabularECAD(make_pipeline(StandardScaler(), Own())), "regressor is or holds a test_model_file.Own"),
        (ecad.ECAD(make_pipeline(FunctionTransformer(highest), Ridge())), "is or holds a test_model_file.highest"),
        (ecad.ECAD(object()), "regressor is a object"),
        (ecad.ECAD(groups={"a": {1, 2}}), "groups.a is a set"),
        (ecad.ECAD(groups=np.array([object()])), "groups is a numpy.ndarray"),
        (Descendant(), "test_model_file.Descendant cannot be saved: a model file holds an ECAD"),
        (Ridge(), "sklearn.linear_model._ridge.Ridge cannot be saved"),
        ([1], "A list cannot be saved"),
        (ecad.ECAD, "cannot be saved"),
    ],
)  # fmt: skip
def test_what_a_file_cannot_hold_is_refused_by_name(obj: Any, words: str, tmp_path: Path) -> None:
    path = tmp_path / "model.ecad"
    path.write_bytes(b"an older file")
    with pytest.raises(ModelFileError) as caught:
        ecad.save(obj, path)
    assert words in str(caught.value)
    assert path.read_bytes() == b"an older file" and len(list(tmp_path.iterdir())) == 1


def test_a_stream_with_a_function_or_an_own_regressor_is_refused(tmp_path: Path) -> None:
    panel = panel_of()
    with pytest.raises(ModelFileError, match=r"model\.oob\.aggregation is a function"):
        ecad.save(fitted(panel, aggregation=highest).stream(), tmp_path / "model.ecad")
    with pytest.raises(
        ModelFileError, match=r"model\.members\.regressors is or holds a test_model_file\.Own"
    ):
        ecad.save(fitted(panel, regressor=Own()).stream(), tmp_path / "model.ecad")


def test_an_attribute_that_nobody_knows_is_refused_rather_than_lost(tmp_path: Path) -> None:
    detector = fitted(panel_of())
    detector.note = "mine"
    with pytest.raises(ModelFileError, match="attribute 'note'"):
        ecad.save(detector, tmp_path / "model.ecad")


@pytest.mark.parametrize("place", ["missing/model.ecad", "file/model.ecad", "folder"])
def test_a_place_that_cannot_be_written_is_an_error_of_ours(place: str, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("")
    with pytest.raises(ModelFileError, match=f"cannot be written to .*{place}"):
        ecad.save(ecad.ECAD(), tmp_path / place)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "folder"]


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_where_writing_fails_the_old_file_stays(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    path = tmp_path / "model.ecad"
    ecad.save(ecad.ECAD(lags=3), path)
    before = path.read_bytes()
    monkeypatch.setattr(sealed.os, step, full)
    with pytest.raises(ModelFileError, match="No space left"):
        ecad.save(ecad.ECAD(lags=4), path)
    assert path.read_bytes() == before and ecad.load(path).lags == 3
    assert list(tmp_path.iterdir()) == [path]


def test_a_newer_file_takes_the_place_of_the_older_also_through_a_link(tmp_path: Path) -> None:
    path, link = tmp_path / "model.ecad", tmp_path / "link.ecad"
    ecad.save(ecad.ECAD(lags=3), str(path))
    link.symlink_to(path)
    ecad.save(ecad.ECAD(lags=4), link)
    assert link.is_symlink() and ecad.load(path).lags == ecad.load(str(link)).lags == 4


# -- what is refused when loading --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def small_file() -> bytes:
    random = np.random.default_rng(0)
    X = random.normal(size=(25, 1))
    tabular = ecad.TabularECAD(n_members=3, random_state=0, alpha=0.2).fit(
        X, X[:, 0] + random.normal(size=25)
    )
    return b"".join(map(bytes, file_of(tabular)))


def file_of(obj: Any) -> list[Any]:
    chunks: list[Any] = []
    patch = pytest.MonkeyPatch()
    patch.setattr(modelfile, "write", lambda _, pieces: chunks.extend(pieces))
    ecad.save(obj, "nowhere")
    patch.undo()
    return chunks


def refusal(content: bytes, folder: Path) -> str:
    path = folder / "broken.ecad"
    path.write_bytes(content)
    with pytest.raises(ModelFileError) as caught:
        ecad.load(path)
    assert "broken.ecad" in str(caught.value)
    return str(caught.value)


def forged(content: bytes, change: Callable[[dict[str, Any]], Any] | None = None, version: int = 1) -> bytes:
    """The same file with another manifest or version, and a hash that is right."""
    magic, _, n_manifest, _ = HEAD.unpack_from(content)
    manifest = json.loads(content[HEAD.size : HEAD.size + n_manifest])
    if change is not None:
        change(manifest)
    text = json.dumps(manifest).encode()
    segments = content[HEAD.size + n_manifest : -32]
    body = HEAD.pack(magic, version, len(text), HEAD.size + len(text) + len(segments) + 32) + text + segments
    return body + hashlib.sha256(body).digest()


def test_every_changed_byte_is_refused(small_file: bytes, tmp_path: Path) -> None:
    said = set()
    for i in range(len(small_file)):
        for flip in (0x01, 0x80, 0xFF)[: 1 + 2 * (i < 64)]:
            broken = bytearray(small_file)
            broken[i] ^= flip
            said.add(refusal(bytes(broken), tmp_path).split(":")[0].split("'")[-1])
    assert said == {" is not a model file of ECAD", " is truncated (or altered)", " is altered"}


def test_every_truncated_file_is_refused_as_such(small_file: bytes, tmp_path: Path) -> None:
    assert "is empty" in refusal(b"", tmp_path)
    for length in [*range(1, 200), *range(200, len(small_file), 17), len(small_file) - 1]:
        assert "is truncated" in refusal(small_file[:length], tmp_path)


def test_added_removed_and_exchanged_bytes_are_refused(small_file: bytes, tmp_path: Path) -> None:
    assert "has 1 byte" not in refusal(small_file + b"\0", tmp_path)
    assert "altered" in refusal(small_file + small_file, tmp_path)
    for i in range(0, len(small_file), 211):
        refusal(small_file[:i] + b"\0" + small_file[i:], tmp_path)
        refusal(small_file[:i] + small_file[i + 1 :], tmp_path)
        if i and small_file[i] != small_file[i - 1]:
            refusal(
                small_file[: i - 1] + small_file[i : i + 1] + small_file[i - 1 : i] + small_file[i + 1 :],
                tmp_path,
            )


def test_a_file_with_scikit_learn_members_is_guarded_as_well(tmp_path: Path) -> None:
    panel = panel_of()
    content = b"".join(map(bytes, file_of(fitted(panel, regressor=RandomForestRegressor(2), n_members=2))))
    for i in np.random.default_rng(0).integers(32, len(content), 200).tolist():
        assert "altered" in refusal(content[:i] + bytes([content[i] ^ 0x10]) + content[i + 1 :], tmp_path)


def test_what_is_no_model_file_is_said_to_be_none(tmp_path: Path) -> None:
    archive = tmp_path / "archive.zip"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("schema.json", "{}")
    for content in (
        archive.read_bytes(),
        pickle.dumps(ecad.ECAD()),
        np.random.default_rng(0).bytes(4_000),
        b"x",
    ):
        assert "is not a model file" in refusal(content, tmp_path)
    assert "is truncated" in refusal(sealed.MAGIC, tmp_path)
    refusal(sealed.MAGIC + np.random.default_rng(0).bytes(4_000), tmp_path)


def test_a_file_that_is_not_there_is_an_error_of_ours(tmp_path: Path) -> None:
    for path in (tmp_path / "none.ecad", tmp_path):
        with pytest.raises(ModelFileError, match="cannot be read"):
            ecad.load(path)


def test_a_newer_format_and_a_newer_ecad_are_told_apart_from_damage(
    small_file: bytes, tmp_path: Path
) -> None:
    assert "has format version 2" in refusal(forged(small_file, version=2), tmp_path)

    def from_the_future(manifest: dict[str, Any]) -> None:
        manifest["ecad"] = "99.1.0"
        manifest["contents"]["dict"].append(["learned", {"Oracle": {}}])

    assert "needs ecad 99.1.0" in refusal(forged(small_file, from_the_future), tmp_path)


def test_a_file_of_a_newer_ecad_that_holds_nothing_new_is_read(small_file: bytes, tmp_path: Path) -> None:
    (tmp_path / "model.ecad").write_bytes(forged(small_file, lambda manifest: manifest.update(ecad="99.0.0")))
    assert ecad.load(tmp_path / "model.ecad").n_rows_ == 25


EVIL: dict[str, Callable[[dict[str, Any]], Any]] = {
    "another class": lambda m: m.update(contents={"subprocess.Popen": {"args": "true"}}),
    "another object": lambda m: m.update(object="Popen"),
    "an estimator for a stream": lambda m: m.update(object="Stream"),
    "one of ours in a wrong place": lambda m: learned(m).update(_oob={"Keep": {}}),
    "a text in the place of an array": lambda m: learned(m).update(in_bag_="x"),
    "an attribute of its own": lambda m: learned(m).update(predict=1),
    "something left out": lambda m: learned(m).pop("seed_"),
    "a field too many": lambda m: learned(m)["_members"]["RidgeMembers"].update(more=1),
    "a field too few": lambda m: learned(m)["_members"]["RidgeMembers"].pop("coef"),
    "a parameter too many": lambda m: m["contents"]["dict"][0][1]["dict"].append(["shell", "true"]),
    "objects in an array": lambda m: m["arrays"][0].__setitem__(0, "|O"),
    "records in an array": lambda m: m["arrays"][0].__setitem__(0, "i4,i4"),
    "an array too long": lambda m: m["arrays"][0].__setitem__(1, [10**12]),
    "an array of negative length": lambda m: m["arrays"][0].__setitem__(1, [-1, 3]),
    "an array that is not there": lambda m: learned(m).update(in_bag_={"array": 10**6}),
    "an estimator of any bytes": lambda m: learned(m).update(_members={"estimator": 0}),
    "two things at once": lambda m: m.update(contents={"dict": [], "list": []}),
    "nothing": lambda m: m.clear(),
}  # fmt: skip


def learned(manifest: dict[str, Any]) -> Any:
    """The learned attributes of a manifest, as a dict that writes through."""
    pairs = dict(manifest["contents"]["dict"])["learned"]["dict"]

    class Through(dict):  # type: ignore[type-arg]
        def update(self, **changes: Any) -> None:  # type: ignore[override]
            super().update(changes)
            pairs[:] = [list(pair) for pair in self.items()]

        def pop(self, name: str) -> Any:  # type: ignore[override]
            value = super().pop(name)
            pairs[:] = [list(pair) for pair in self.items()]
            return value

    return Through(pairs)


@pytest.mark.parametrize("change", EVIL.values(), ids=EVIL)
def test_a_crafted_manifest_is_refused(change: Any, small_file: bytes, tmp_path: Path) -> None:
    assert "does not hold what ecad" in refusal(forged(small_file, change), tmp_path)


@pytest.mark.parametrize(
    "text", [b"", b"\xff[{x", b"null", b"[1]", b"[" * 100_000 + b"]" * 100_000, b"9" * 10_000], ids=len
)
def test_a_manifest_that_is_none_is_refused(text: bytes, tmp_path: Path) -> None:
    body = HEAD.pack(sealed.MAGIC, 1, len(text), HEAD.size + len(text) + 32) + text
    assert "does not hold what ecad" in refusal(body + hashlib.sha256(body).digest(), tmp_path)


def test_a_regressor_that_is_not_trusted_is_not_even_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(estimators, "TRUSTED", (*estimators.TRUSTED, "test_model_file.Own"))
    ecad.save(ecad.ECAD(Own()), tmp_path / "model.ecad")
    assert isinstance(ecad.load(tmp_path / "model.ecad").regressor, Own)
    monkeypatch.undo()
    monkeypatch.setattr(Own, "__new__", lambda *_: pytest.fail("it was made"))
    with pytest.raises(ModelFileError, match=r"Untrusted types.*test_model_file\.Own"):
        ecad.load(tmp_path / "model.ecad")


def test_another_scikit_learn_is_told_where_estimators_are_in_the_file(
    small_file: bytes, tmp_path: Path
) -> None:
    def older(manifest: dict[str, Any]) -> None:
        manifest["scikit-learn"] = "1.2.3"

    path = tmp_path / "model.ecad"
    path.write_bytes(forged(small_file, older))
    ecad.load(path)  # ridge is ours
    path.write_bytes(forged(b"".join(map(bytes, file_of(ecad.ECAD(LinearRegression())))), older))
    with pytest.warns(ecad.EcadWarning, match=rf"scikit-learn 1\.2\.3, and this is {sklearn.__version__}"):
        assert isinstance(ecad.load(path).regressor, LinearRegression)


def test_the_manifest_says_what_wrote_the_file(small_file: bytes) -> None:
    _, version, n_manifest, length = HEAD.unpack_from(small_file)
    manifest = json.loads(small_file[HEAD.size : HEAD.size + n_manifest])
    assert (version, length) == (1, len(small_file))
    assert manifest["object"] == "TabularECAD" and manifest["ecad"] == ecad.__version__
    assert manifest["numpy"] == np.__version__ and manifest["scikit-learn"] == sklearn.__version__
    assert dict(dict(manifest["contents"]["dict"])["parameters"]["dict"])["n_members"] == 3
