"""sizes -> seconds, bytes and ratios: ECAD beside the peer's real package, in one run.

    make bench                       all of it
    make bench ARGS="batch stream"   some of it

Both sides get the same rows, members, precision and cores. Each timing is the median of alternated, warm runs; a part
of the peer's work that would take hours is measured on a sample of its rows and scaled, and says so.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

import ecad

RUNS = 5
HOUR = np.timedelta64(3_600_000_000, "us")
START = np.datetime64("2025-01-06", "us")


def network(n_sensors: int, n_times: int, seed: int = 0) -> ecad.Panel:
    """Daily profiles, a slow drift and noise: enough structure to be worth predicting, quick to make."""
    rng = np.random.default_rng(seed)
    hours = np.arange(n_times)
    profile = 200 + 100 * np.sin(2 * np.pi * hours / 24)
    noise = rng.normal(size=(n_times, n_sensors))
    values = profile[:, None] * rng.uniform(0.5, 2.0, n_sensors) + 0.5 * np.cumsum(noise, axis=0) + 10 * noise
    return ecad.Panel(
        values=values,
        sensors=tuple(f"s{k}" for k in range(n_sensors)),
        times=START + hours * HOUR,
        step=HOUR,
        positions=rng.normal(size=(n_sensors, 2)),
        geometry="xy",
    )


def alternate(*works: Callable[[], Any], runs: int = RUNS) -> list[list[float]]:
    """Seconds of each work, run in turns after one warm-up each."""
    for work in works:
        work()
    seconds: list[list[float]] = [[] for _ in works]
    for _ in range(runs):
        for i, work in enumerate(works):
            start = time.perf_counter()
            work()
            seconds[i].append(time.perf_counter() - start)
    return seconds


def median(seconds: list[float]) -> float:
    """The middle one."""
    return statistics.median(seconds)


@contextmanager
def on_one_core() -> Iterator[None]:
    """This process on one core, and its BLAS on one thread."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    try:
        with threadpool_limits(1):
            yield
    finally:
        os.sched_setaffinity(0, cores)


def say(what: str, value: str, bound: str = "") -> None:
    """One line of the table."""
    print(f"  {what:<62} {value:>16}   {bound}", flush=True)


# -- batch -------------------------------------------------------------------------------------------------------------


def paper_like(**more: Any) -> ecad.ECAD:
    """The paper's inputs, 5 lags of 5 neighbours and nothing else, with ridge members."""
    plain = {"impute": None, "seasonal_lags": None, "calendar": False, "season": None, "random_state": 0}
    return ecad.ECAD(lags=5, neighbours=5, n_members=25, **{**plain, **more})


def peer_rows(detector: ecad.ECAD, panel: ecad.Panel, first: int) -> tuple[np.ndarray, np.ndarray]:
    """The same rows for the peer: the newest 5 readings of the 5 nearest sensors, in units of each sensor."""
    usual = detector.model_.usual
    scaled = usual.measure(panel.values, np.broadcast_to(usual.centre, panel.values.shape))
    near = detector.neighbours_
    ticks = np.arange(first, panel.n_times)
    X = np.stack([scaled[ticks - lag][:, near] for lag in range(1, 6)], axis=3)
    return X.reshape(-1, 25), scaled[ticks].reshape(-1)


def mapie_regressor(n_members: int, n_rows: int, n_jobs: int = 1) -> Any:
    """MAPIE's EnbPI around the same ridge."""
    from mapie.regression import TimeSeriesRegressor
    from mapie.subsample import BlockBootstrap
    from sklearn.linear_model import Ridge

    blocks = BlockBootstrap(
        n_resamplings=n_members, n_blocks=max(2, n_rows // 480), overlapping=False, random_state=0
    )
    return TimeSeriesRegressor(Ridge(), method="enbpi", cv=blocks, agg_function="mean", n_jobs=n_jobs)


def batch() -> None:
    """20 sensors x 8,760 hours, half to fit and half to judge."""
    print(
        "\nbatch: 20 sensors x 8,760 hours, 5 lags of 5 neighbours, B = 25, ridge, float64, quantile centre"
    )
    panel = network(20, 8_760)
    detector = paper_like(centre="quantile").fit(panel[:4_380])
    batch_beside_peer(panel, detector, f"{os.cpu_count()} cores", os.cpu_count() or 1)
    with on_one_core():
        batch_beside_peer(panel, detector, "one core", 1)
    centre_against_product(detector, 20 * 4_380)
    say("peak memory of fit and detect in a fresh process", f"{fresh_peak('batch'):.0f} MB", "under 600")


def batch_beside_peer(panel: ecad.Panel, detector: ecad.ECAD, where: str, n_jobs: int) -> None:
    """Fit, then judge, on the same cores as the peer; the peer with one job or as many as cores, what is faster."""
    training, later = panel[:4_380], panel[4_380:]
    X, y = peer_rows(detector, training, 5)
    X1, y1 = peer_rows(detector, panel, 4_380)
    peers = [mapie_regressor(25, len(y), jobs) for jobs in sorted({1, n_jobs})]
    fit, *peer_fits = alternate(
        lambda: paper_like(centre="quantile").fit(training),
        *[lambda peer=peer: peer.fit(X, y) for peer in peers],
    )
    peer_fit = min(map(median, peer_fits))
    say(f"ECAD fit (features, Gram, members, scores), {where}", f"{median(fit):.4f} s", "under 0.06")
    say(f"MAPIE {version('mapie')} EnbPI fit, same {len(y):,} rows", f"{peer_fit:.3f} s")
    say("  how many times faster", f"{peer_fit / median(fit):.0f}", "at least 30")

    part = 100
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        detect, predict = alternate(
            lambda: detector.detect(later),
            lambda: peers[0].predict(X1[:part], confidence_level=0.95, ensemble=True, optimize_beta=False),
        )
    scaled = median(predict) / part * len(y1)
    say(f"ECAD p-values of all 87,600 readings, {where}", f"{median(detect):.3f} s", "under 0.6")
    say(f"MAPIE predict, {part} rows scaled to {len(y1):,}", f"{scaled:.1f} s")
    say("  how many times faster", f"{scaled / median(detect):.0f}", "at least 100")


def centre_against_product(detector: ecad.ECAD, n_rows: int) -> None:
    """The exact quantile centre beside the bare matrix product of the same shape, both on the same threads."""
    quantile = detector.model_.centre_quantile
    assert quantile is not None
    n, threads = quantile.oob.n_predictors, os.cpu_count() or 1
    P = np.random.default_rng(0).normal(size=(25, n_rows)) * 0.1 + np.random.default_rng(1).normal(
        size=n_rows
    )
    weights = np.random.default_rng(2).random((25, n))
    A = np.ascontiguousarray(P.T)
    out = np.empty((512, n))

    def product() -> None:
        for start in range(0, n_rows, len(out)):
            rows = A[start : start + len(out)]
            np.matmul(rows, weights, out=out[: len(rows)])

    def centre() -> None:
        with threadpool_limits(1, user_api="blas"):
            quantile.of(P, threads)

    exact, bare = alternate(centre, product)
    say(f"exact quantile centre, {n_rows:,} rows x {n:,} predictors", f"{median(exact):.3f} s")
    say("bare matrix product of the same shape", f"{median(bare):.3f} s")
    say("  times the product", f"{median(exact) / median(bare):.2f}", "at most 5")


def fresh_peak(what: str) -> float:
    """Megabytes that a process of its own had at most."""
    done = subprocess.run(
        [sys.executable, __file__, "--peak", what], check=True, capture_output=True, text=True, env=os.environ
    )
    return float(done.stdout.split()[-1])


def peak_of_batch() -> None:
    """Fit and detect once, then say the peak."""
    panel = network(20, 8_760)
    paper_like(centre="quantile").fit(panel[:4_380]).detect(panel[4_380:])
    status = Path("/proc/self/status")
    if status.exists():  # ru_maxrss remembers the process that started this one
        print(int(status.read_text().split("VmHWM:")[1].split()[0]) / 1024)
    else:
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


# -- stream ------------------------------------------------------------------------------------------------------------


def ticks_of(stream: Any, panel: ecad.Panel) -> list[float]:
    """Seconds of each tick."""
    seconds = []
    for time_of_tick, row in zip(panel.times, panel.values, strict=True):
        start = time.perf_counter()
        stream.update(time_of_tick, row)
        seconds.append(time.perf_counter() - start)
    return seconds


def stream() -> None:
    """Ticks of 1,000 and of 20 sensors, 10 % of the readings missing, on one core."""
    with on_one_core():
        for n_sensors in (1_000, 20):
            stream_of(n_sensors)


def stream_of(n_sensors: int) -> None:
    """The stream itself, and for few sensors the peer beside it."""
    longest = 168  # the defaults look a week back
    n_training, n_ticks = 4_380 + longest, 1_020 if n_sensors == 1_000 else 4_020
    panel = ecad.datasets.with_holes(network(n_sensors, n_training + n_ticks), 0.1, seed=1)
    detector = ecad.ECAD(centre="quantile", random_state=0).fit(panel[:n_training])
    n = detector.model_.oob.n_predictors
    print(
        f"\nstream: ticks of {n_sensors:,} sensors, 10 % missing, {n:,} leave-one-out predictors, defaults, one core"
    )
    going = detector.stream()
    later = panel[n_training:]
    ticks_of(going, later[:20])
    memory = resident()
    seconds = np.array(ticks_of(going, later[20:]))
    rate = n_sensors * len(seconds) / seconds.sum()
    say("readings a second", f"{rate:,.0f}", "at least 50,000" if n_sensors == 1_000 else "")
    say(
        "a tick: median, 99th percentile",
        f"{1e3 * np.median(seconds):.2f}, {1e3 * np.quantile(seconds, 0.99):.2f} ms",
    )
    say(f"memory gained over {n_sensors * len(seconds):,} readings", f"{resident() - memory:+.1f} MB", "flat")
    if n_sensors == 20:
        stream_beside_peer(detector, panel, n_training)


def resident() -> float:
    """Megabytes of this process now."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() / 2**20


def stream_beside_peer(detector: ecad.ECAD, panel: ecad.Panel, n_training: int) -> None:
    """MAPIE's predict and update, reading by reading, with as many scores as the fit gave it, or fewer."""
    whole = network(20, panel.n_times)
    X, y = peer_rows(detector, whole, 5)
    n_rows = (n_training - 5) * 20
    for n_scores in (n_rows, 20_000):
        peer = mapie_regressor(25, n_scores).fit(X[n_rows - n_scores : n_rows], y[n_rows - n_scores : n_rows])
        going = detector.stream()
        ours, theirs = [], []
        for turn in range(RUNS + 1):
            ours.append(median(ticks_of(going, panel[n_training + 100 * turn :][:100])) / panel.n_sensors)
            rows = range(n_rows + 12 * turn, n_rows + 12 * (turn + 1))
            theirs.append(median([peer_step(peer, X[i : i + 1], y[i : i + 1]) for i in rows]))
        each, own = median(theirs[1:]), median(ours[1:])
        say(f"MAPIE update + predict a reading, {n_scores:,} scores", f"{1e3 * each:.2f} ms")
        say("  ECAD a reading", f"{1e6 * own:.1f} us")
        say("  how many times faster", f"{each / own:.0f}", "at least 300" if n_scores == n_rows else "")


def peer_step(peer: Any, X: np.ndarray, y: np.ndarray) -> float:
    """Seconds of MAPIE's predict and update with one reading."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.perf_counter()
        peer.predict(X, confidence_level=0.95, ensemble=True, optimize_beta=False)
        peer.update(X, y, ensemble=True)
        return time.perf_counter() - start


# -- pems10 ------------------------------------------------------------------------------------------------------------


def pems10() -> None:
    """Ten real sensors: imputation, fit and detection end to end."""
    folder = Path(os.environ.get("ECAD_DATA", Path(__file__).parents[2] / "shared" / "data")) / "pems10"
    if not folder.is_dir():
        print(f"\npems10: skipped, there is no {folder} (set ECAD_DATA)")
        return
    print(
        "\npems10: train fraction 0.5, 8 lags of 8 neighbours, B = 15, ridge, iterative imputation, local reference"
    )
    training = ecad.read_panel(folder / "train_0.5.parquet")
    later = ecad.read_panel(folder / "test_0.5.parquet")

    def run(centre: str) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            detector = ecad.ECAD.paper(
                "ridge", lags=8, neighbours=8, n_members=15, centre=centre, random_state=0
            )
            detector.fit(training).detect(later)

    quantile, ensemble = alternate(lambda: run("quantile"), lambda: run("ensemble"))
    # 60 times faster than the authors' script, which took 31 s where these bounds were set
    say("end to end, quantile centre (the paper)", f"{median(quantile):.3f} s", "under 0.51")
    say("end to end, ensemble centre (as in the authors' code)", f"{median(ensemble):.3f} s", "under 0.51")


def version(package: str) -> str:
    """Installed version of a package."""
    from importlib.metadata import version as installed

    return installed(package)


def machine() -> str:
    """What the figures were measured on."""
    model = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = [
            line.split(":", 1)[1].strip()
            for line in info.read_text().splitlines()
            if line.startswith("model name")
        ]
        model = names[0] if names else model
    versions = ", ".join(f"{name} {version(name)}" for name in ("numpy", "scipy", "scikit-learn", "numba"))
    return f"{os.cpu_count()} cores, {model}; Python {platform.python_version()}, {versions}"


PARTS: dict[str, Callable[[], None]] = {"batch": batch, "stream": stream, "pems10": pems10}


def main() -> None:
    """Run the parts that were asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "parts", nargs="*", choices=[*PARTS, []], help="which parts; all of them when none is named"
    )
    parser.add_argument("--peak", choices=["batch"], help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.peak:
        peak_of_batch()
        return
    print(machine())
    for name in asked.parts or PARTS:
        PARTS[name]()


if __name__ == "__main__":
    main()
