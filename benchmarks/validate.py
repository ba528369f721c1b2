"""simulated readings without anomalies -> shares of p <= alpha: does the p-value keep what it promises?

    python benchmarks/validate.py [--seeds N] [--first-seed M] [--write]

Ten sensors, 2,500 training ticks with 40 % holes, 2,500 test ticks with none or 20 %, errors AR(1) with 0.6 and 0.9,
nothing planted: every alarm is a false one. Printed is the share of p <= alpha over alpha, where 1 is right, beside
what p-values among so many scores can reach at all. The exit code is 1 where the default settings leave their bounds,
on the seeds that were run. With `--write` the tables go into docs/promise.md, between its markers.
"""

from __future__ import annotations

import argparse
import re
import sys
import warnings
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from tqdm import tqdm

from ecad import ECAD, Panel, Report, __version__, metrics, pvalues
from ecad.datasets import simulate_null, with_holes
from ecad.judging import class_of

Array = np.ndarray[Any, Any]

N_SENSORS = 10
N_TRAINING = N_TEST = 2_500
TRAINING_HOLES = 0.4
TEST_HOLES = (0.0, 0.2)
AUTOCORRELATIONS = (0.6, 0.9)
LEVELS = (0.01, 0.05, 0.1)
SPANS = {"all": slice(None), "first 500": slice(0, 500)}
PLACES_LEVEL = 0.05
FEWEST_ERRORS = 1_000  # of a class, for its size to be said
REPLAY = 20  # ticks of one step of the replay that reads off how large the reference sets were
DRAWS = 2_000  # of the bootstrap over seeds
PAGE = Path(__file__).resolve().parents[1] / "docs" / "promise.md"
BEGIN, END = "<!-- validity:begin -->", "<!-- validity:end -->"


class Setup(NamedTuple):
    """A detector that is studied."""

    name: str
    make: Callable[..., ECAD]
    bound: bool  # whether the bounds are asked of it


SETUPS = (
    Setup("ECAD()", ECAD, bound=True),
    Setup('ECAD(centre="quantile")', partial(ECAD, centre="quantile"), bound=True),
    Setup("ECAD(classes=None)", partial(ECAD, classes=None), bound=False),
    Setup('ECAD.paper(regressor="ridge")', partial(ECAD.paper, regressor="ridge"), bound=False),
)


class Case(NamedTuple):
    """One row of the study, before its span is chosen."""

    setup: Setup
    autocorrelation: float
    holes: float


class Counts(NamedTuple):
    """What one seed adds to a row."""

    alarms: Array  # (level,) readings with p <= level
    tested: int
    reachable: Array  # (level,) sum over them of the share that their grid allows
    n: float  # sum over them of the size of the reference set


class Errors(NamedTuple):
    """Sums of squared scores and their number, by class of the score: (class,)."""

    training: Array
    n_training: Array
    later: Array
    n_later: Array


class Places(NamedTuple):
    """Alarms at PLACES_LEVEL and tested readings, by hour of the day (24,) and by sensor (K,)."""

    by_hour: Array
    n_by_hour: Array
    by_sensor: Array
    n_by_sensor: Array


class Row(NamedTuple):
    """A row of the table."""

    case: Case
    span: str
    ratio: Array  # (level,)
    error: Array  # (level,) standard error over seeds
    grid: Array  # (level,) what the grid of p-values allows
    n: float


class Study(NamedTuple):
    """What was counted; one entry of each list is one seed's."""

    counts: dict[tuple[Case, str], list[Counts]]
    errors: dict[Case, list[Errors]]
    places: dict[Case, list[Places]]


def main() -> int:
    """Run, print, and say whether the bounds are kept."""
    options = _options()
    studied = study(options.seeds, options.first_seed)
    rows = [summed(case, span, counts) for (case, span), counts in studied.counts.items()]
    text = "\n\n".join([*tables(rows, options), *error_table(studied.errors), *place_table(studied.places)])
    print(text)
    if options.write:
        write(text)
        print(f"\nwritten: {PAGE.name}")
    missed = list(misses(rows))
    print("\n" + ("\n".join(missed) or "The default settings keep their bounds."))
    return 1 if missed else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=10, help="how many simulations (default: 10)")
    parser.add_argument("--first-seed", type=int, default=0, help="the first of them (default: 0)")
    parser.add_argument("--write", action="store_true", help="write the tables into docs/promise.md")
    options = parser.parse_args()
    if options.seeds < 2:
        parser.error("--seeds takes at least 2: one has no standard error")
    return options


# -- the study ---------------------------------------------------------------------------------------------------------


def study(n_seeds: int, first_seed: int) -> Study:
    """Count everything, over the same simulations for each detector."""
    studied = Study({}, {}, {})
    jobs = [
        (seed, autocorrelation)
        for seed in range(first_seed, first_seed + n_seeds)
        for autocorrelation in AUTOCORRELATIONS
    ]
    for seed, autocorrelation in tqdm(jobs, desc="simulations", disable=None, leave=False):
        training, tests = simulated(seed, autocorrelation)
        for setup in SETUPS:
            detector = fitted(setup, seed, training)
            for holes, test in tests.items():
                _count_case(studied, Case(setup, autocorrelation, holes), detector, training, test)
    return studied


def _count_case(studied: Study, case: Case, detector: ECAD, training: Panel, test: Panel) -> None:
    report = detector.detect(test)
    sizes = reference_sizes(detector, report)
    for span, ticks in SPANS.items():
        counts = count(detector, report.p_values[ticks], sizes[ticks])
        studied.counts.setdefault((case, span), []).append(counts)
    studied.errors.setdefault(case, []).append(errors(detector, training, report))
    studied.places.setdefault(case, []).append(places(report))


def simulated(seed: int, autocorrelation: float) -> tuple[Panel, dict[float, Panel]]:
    """Training with its holes, and the test ticks after it with each share of theirs."""
    whole = simulate_null(
        n_sensors=N_SENSORS, n_times=N_TRAINING + N_TEST, error_autocorrelation=autocorrelation, seed=seed
    )
    training = with_holes(whole[:N_TRAINING], TRAINING_HOLES, seed=10_000 + seed)
    later = whole[N_TRAINING:]
    return training, {holes: with_holes(later, holes, seed=20_000 + seed) for holes in TEST_HOLES}


def fitted(setup: Setup, seed: int, training: Panel) -> ECAD:
    """One fit; the paper's imputer says on every run that ten rounds were not enough for it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return setup.make(random_state=seed).fit(training)


def reference_sizes(detector: ECAD, report: Report) -> Array:
    """(time, sensor): how many scores each reading was ranked among."""
    if detector.reference == "local":
        return _local_sizes(detector, report.scores)
    model, memory = detector.model_, detector.memory_
    reference, window = model.reference, memory.copy().window
    classes = class_of(model.classes, report.panel.observed, memory.recent.observed, None)
    sensors = np.arange(len(report.sensors))
    sizes = np.empty(report.scores.shape)
    for start in range(0, len(sizes), REPLAY):
        part = slice(start, start + REPLAY)
        sizes[part] = window.n
        if reference.classes:
            own = window.n_by_class[sensors, classes[part]]
            sizes[part] = np.where(own >= reference.fewest_in_class, own, sizes[part])
        ranks = pvalues.rank(
            report.scores[part], classes[part], window, reference, model.tolerance, model.strength_unit,
            model.neighbours[None],
        )  # fmt: skip
        assert np.array_equal(ranks.p, report.p_values[part], equal_nan=True)  # the replay is what was judged
    return sizes


def _local_sizes(detector: ECAD, scores: Array) -> Array:
    """The neighbourhood's scores of the last `lags` ticks, as the local "and" has them."""
    lags = detector.lags
    known = np.isfinite(np.vstack([detector.calibration_scores_[-lags:], scores]))
    recent = sum(known[lag : lag + len(scores)].astype(np.int64) for lag in range(lags))
    return np.asarray(np.asarray(recent)[:, detector.neighbours_].sum(axis=2))


def count(detector: ECAD, p_values: Array, sizes: Array) -> Counts:
    """One seed's share of a row."""
    tested = np.isfinite(p_values)
    p, n = p_values[tested], sizes[tested].astype(np.int64)
    reachable = np.array([_reachable(detector.p_value, level, n).sum() for level in LEVELS])
    alarms = np.array([np.count_nonzero(p <= level) for level in LEVELS])
    return Counts(alarms, len(p), reachable, float(n.sum()))


def _reachable(form: str, level: float, n: Array) -> Array:
    """The share of p <= level that exchangeable scores have: as near to the level as their number lets it be."""
    sizes, place = np.unique(n, return_inverse=True)
    if (
        form == "paper"
    ):  # k / n <= level: k may be 0 whatever the level, and is one larger than in (1 + k) / (n + 1)
        share = (np.floor(level * sizes + 1e-9) + 1) / (sizes + 1)
    else:
        share = np.array([metrics.achievable(level, int(size)) for size in sizes])
    return np.asarray(share[place])


def summed(case: Case, span: str, counts: list[Counts]) -> Row:
    """A row, and its standard error: seeds drawn with replacement, since the readings of one are not independent."""
    alarms = np.array([part.alarms for part in counts])
    tested = np.array([part.tested for part in counts])
    total = tested.sum()
    drawn = np.random.default_rng(0).integers(len(counts), size=(DRAWS, len(counts)))
    resampled = alarms[drawn].sum(axis=1) / tested[drawn].sum(axis=1)[:, None] / LEVELS
    return Row(
        case,
        span,
        ratio=alarms.sum(axis=0) / total / LEVELS,
        error=resampled.std(axis=0, ddof=1),
        grid=np.sum([part.reachable for part in counts], axis=0) / total / LEVELS,
        n=sum(part.n for part in counts) / total,
    )


def errors(detector: ECAD, training: Panel, report: Report) -> Errors:
    """How large scores are in training and later, where the own newest reading was filled (0) and observed (1)."""
    observed = np.vstack([training.observed, report.panel.observed])
    classes = np.vstack([np.zeros_like(observed[:1]), observed[:-1]]).astype(np.int64)
    parts: list[Array] = []
    for scores, own in (
        (detector.calibration_scores_, classes[detector.train_ticks_]),
        (report.scores, classes[training.n_times :]),
    ):
        known = np.isfinite(scores)
        squares = np.bincount(own[known], weights=scores[known] ** 2, minlength=2)
        parts += [squares, np.bincount(own[known], minlength=2)]
    return Errors(*parts)


def places(report: Report) -> Places:
    """Where the alarms are."""
    tested = np.isfinite(report.p_values)
    alarms = report.p_values <= PLACES_LEVEL
    seconds = report.panel.week_seconds
    assert seconds is not None
    hours = seconds % 86_400 // 3_600
    by_hour, n_by_hour = (np.bincount(hours, weights=of.sum(axis=1), minlength=24) for of in (alarms, tested))
    return Places(by_hour, n_by_hour, alarms.sum(axis=0), tested.sum(axis=0))


# -- what is asked, and what is said -----------------------------------------------------------------------------------


def bounds(autocorrelation: float, span: str) -> tuple[float, float]:
    """Within which the ratios of the default settings must lie."""
    if span == "first 500":
        return 0.8, 1.2
    return (0.9, 1.1) if autocorrelation < 0.9 else (0.85, 1.15)


def misses(rows: Iterable[Row]) -> Iterable[str]:
    """A sentence for each ratio beyond its bounds."""
    for row in rows:
        low, high = bounds(row.case.autocorrelation, row.span)
        for level, ratio in zip(LEVELS, row.ratio):
            if row.case.setup.bound and not low <= ratio <= high:
                yield (
                    f"missed: {row.case.setup.name}, AR {row.case.autocorrelation:g}, {row.case.holes:.0%} holes, "
                    f"{row.span} ticks, alpha {level:g}: {ratio:.3f} is not within {low:g} to {high:g}"
                )


def tables(rows: list[Row], options: argparse.Namespace) -> list[str]:
    """Markdown: what was simulated, and a table for each detector."""
    seeds = f"seeds {options.first_seed} to {options.first_seed + options.seeds - 1}"
    said = (
        f"{N_SENSORS} sensors, {N_TRAINING:,} training ticks with {TRAINING_HOLES:.0%} holes, {N_TEST:,} test ticks, "
        f"{seeds}, ecad {__version__}. Share of p <= alpha over alpha, ± its standard error over seeds; in brackets "
        "what the grid of p-values allows, with the n that was used (its mean stands in column n)."
    )
    parts = [said]
    for setup in SETUPS:
        own = [row for row in rows if row.case.setup is setup]
        head = ["errors AR(1)", "test holes", "ticks", "n", *(f"alpha = {level:g}" for level in LEVELS)]
        ruler = ["--:", "--:", "---", "--:", *["---"] * len(LEVELS)]
        parts.append("\n".join([f"**`{setup.name}`**", "", _line(head), _line(ruler), *map(_told, own)]))
    return parts


def error_table(errors_of: dict[Case, list[Errors]]) -> list[str]:
    """Markdown: how much larger or smaller errors are than those of training, class by class."""
    said = (
        "Size of the errors (root mean square) in the test over that in training, where the sensor's own newest "
        "reading was observed and where it was filled, `ECAD()`, all ticks."
    )
    head = _line(["errors AR(1)", "test holes", "own newest reading observed", "filled"])
    lines = []
    for case, seeds in errors_of.items():
        if case.setup is SETUPS[0]:
            total = Errors(*(np.sum(part, axis=0) for part in zip(*seeds)))
            with np.errstate(invalid="ignore", divide="ignore"):
                ratio = np.sqrt(total.later / total.n_later / (total.training / total.n_training))
            enough = total.n_later >= FEWEST_ERRORS
            cells = [f"{ratio[own]:.3f}" if enough[own] else "none" for own in (1, 0)]
            lines.append(_line([f"{case.autocorrelation:g}", f"{100 * case.holes:.0f} %", *cells]))
    return [said, "\n".join([head, _line(["--:"] * 4), *lines])]


def place_table(places_of: dict[Case, list[Places]]) -> list[str]:
    """Markdown: how evenly the alarms are spread."""
    said = (
        f"Share of p <= {PLACES_LEVEL:g} over {PLACES_LEVEL:g}, by hour of the day (all seeds) and by sensor (of each "
        f"seed): the lowest and the highest; errors AR {AUTOCORRELATIONS[0]:g}, no holes in the test, all ticks."
    )
    lines = []
    for case, seeds in places_of.items():
        if (case.autocorrelation, case.holes) == (AUTOCORRELATIONS[0], TEST_HOLES[0]):
            hours = np.sum([seed.by_hour for seed in seeds], axis=0)
            hours /= np.sum([seed.n_by_hour for seed in seeds], axis=0)
            sensors = np.concatenate([seed.by_sensor / seed.n_by_sensor for seed in seeds])
            spans = (f"{low:.2f} to {high:.2f}" for low, high in (_span(hours), _span(sensors)))
            lines.append(_line([f"`{case.setup.name}`", *spans]))
    return [said, "\n".join([_line(["", "by hour", "by sensor"]), _line(["---", "--:", "--:"]), *lines])]


def _span(shares: Array) -> tuple[float, float]:
    return float(shares.min() / PLACES_LEVEL), float(shares.max() / PLACES_LEVEL)


def _told(row: Row) -> str:
    numbers = zip(row.ratio, row.error, row.grid)
    cells = [f"{ratio:.2f} ± {error:.2f} ({grid:.2f})" for ratio, error, grid in numbers]
    what = [f"{row.case.autocorrelation:g}", f"{100 * row.case.holes:.0f} %", row.span, f"{row.n:,.0f}"]
    return _line([*what, *cells])


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def write(text: str) -> None:
    """Put the tables between the markers of the page."""
    page = PAGE.read_text(encoding="utf-8")
    pattern = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)
    if len(pattern.findall(page)) != 1:
        raise SystemExit(f"{PAGE} needs the markers {BEGIN} and {END}, once.")
    PAGE.write_text(pattern.sub(lambda _: f"{BEGIN}\n\n{text}\n\n{END}", page), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
