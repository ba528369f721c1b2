"""equations -> numbers: every stage of the method in plain loops; the judge of the fast code.

Nothing here comes from the package. Each function says which section of the method it writes down, and, where
the method leaves a choice, which reading was taken. Axes are (time, sensor, ...), members first; NaN means
"not observed".
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Sequence
from statistics import median
from typing import Any

import numpy as np

DAY = 86_400
WEEK = 7 * DAY

TESTED, MISSING, WARMING_UP, NO_FEATURES, ALL_CLASSES, NOT_FITTED = range(6)

Aggregation = str | Callable[[np.ndarray], float]


def finite(values: Iterable[float]) -> np.ndarray:
    """The finite values, in their order."""
    values = np.asarray(values if isinstance(values, np.ndarray) else list(values), dtype=float)
    return values[np.isfinite(values)]


def smallest_count(alpha: float) -> int:
    """Section 6.6: the fewest finite scores a p-value needs: ceil(round(1 / alpha, 9)) - 1."""
    return math.ceil(round(1 / alpha, 9)) - 1


# -- scale


def standard_deviation(values: np.ndarray) -> float:
    """Section 3: ddof 0; exactly 0 when all values are equal, whatever the rounding of their mean."""
    return 0.0 if values.min() == values.max() else float(np.std(values))


def scale_of(values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Section 3 (per-sensor scale): centre (K,), scale (K,), spread (K,) of the observed readings.

    A sensor without any reading has centre 0, scale 1, spread 1.
    """
    n_sensors = values.shape[1]
    centre, scale, spread = np.zeros(n_sensors), np.ones(n_sensors), np.ones(n_sensors)
    for k in range(n_sensors):
        seen = finite(values[:, k])
        if len(seen) == 0:
            continue
        centre[k] = np.median(seen)
        scale[k] = 1.4826 * np.median(np.abs(seen - centre[k]))
        spread[k] = standard_deviation(seen)
        if spread[k] == 0:
            spread[k] = max(abs(centre[k]), 1.0)
        if scale[k] == 0:
            scale[k] = spread[k]
    return centre, scale, spread


# -- season


def season_of(n_times: int, step_seconds: float | None) -> str | None:
    """Section 2: "week" when training spans 3 weeks, "day" when 3 days, else None (also without a clock).

    The span counts the last step: 504 hourly ticks are three weeks.
    """
    if step_seconds is None:
        return None
    span = n_times * step_seconds
    if span >= 3 * WEEK:
        return "week"
    return "day" if span >= 3 * DAY else None


def phase_width(step_seconds: float) -> int:
    """Section 2: the width of a phase, max(step, one hour), in seconds."""
    return int(max(step_seconds, 3600))


def phase_of(week_seconds: np.ndarray, step_seconds: float, season: str | None) -> np.ndarray:
    """Section 2: the phase of each time: bin of the week, of the day, or 0 for all without a season."""
    width = phase_width(step_seconds)
    phases = []
    for seconds in np.asarray(week_seconds):
        if season == "week":
            phases.append(seconds // width)
        elif season == "day":
            phases.append((seconds % DAY) // width)
        else:
            phases.append(0)
    return np.array(phases, dtype=np.int64)


def hour_of_phase(step_seconds: float, season: str | None) -> np.ndarray:
    """Section 2: the bin of the day of each of the P phases (the hour of day for steps up to an hour)."""
    width = phase_width(step_seconds)
    period = {"week": WEEK, "day": DAY, None: width}[season]
    n_phases = math.ceil(period / width)
    return np.array([((phase * width) % DAY) // width for phase in range(n_phases)], dtype=np.int64)


WEIGHTS = (0, 1, 4, 16, 64, math.inf)


def drawn(n: int, middle: float, towards: float, weight: float) -> float:
    """The median of n readings, drawn towards a coarser level that counts for `weight` readings."""
    return towards if n == 0 else towards + n / (n + weight) * (middle - towards)


def kind_of_day(phase: int, width: int, season: str | None) -> int:
    """Weekday 0, Saturday 1, Sunday 2; without a week every day is alike."""
    return 0 if season != "week" else min(max(phase * width // 86_400 - 4, 0), 2)


def group_medians(seen: Sequence[tuple[int, float]], group_of: Sequence[Any]) -> dict[Any, tuple[int, float]]:
    """Section 2: how many of the (phase, reading) each group of phases has, and their median."""
    members: dict[Any, list[float]] = {}
    for p, y in seen:
        members.setdefault(group_of[p], []).append(y)
    return {group: (len(some), median(some)) for group, some in members.items()}


def seasonal_levels(
    y: np.ndarray, phase: np.ndarray, hour_of_day: np.ndarray, season: str | None, width: int, fallback: float
) -> tuple[list[list[float]], list[float]]:
    """Section 2: levels (26, P) of one sensor's readings, and how much each coarser level counts for.

    The median of the phase, drawn towards the level of its hour on days of its kind, that towards the hour of any
    day, that towards the sensor's median. Table f < 25 is drawn from the other folds, 25 from all. What the coarser
    level counts for is the first of WEIGHTS with the smallest sum of |reading - level in the table of its fold|.
    """
    phases, hours = range(len(hour_of_day)), hour_of_day.tolist()
    kinds = [(hours[p], kind_of_day(p, width, season)) for p in phases]
    seen = [(fold_of(t, len(y)), int(phase[t]), float(y[t])) for t in range(len(y)) if math.isfinite(y[t])]
    kept = [[(p, x) for own, p, x in seen if own != fold] for fold in range(N_FOLDS + 1)]
    levels = [[median([x for _, x in some]) if some else fallback] * len(phases) for some in kept]
    chosen = []
    for group_of in (hours, kinds, list(phases)):
        medians = [group_medians(some, group_of) for some in kept]
        tried = []
        for weight in WEIGHTS:
            table = [
                [drawn(*finer.get(group_of[p], (0, 0.0)), level[p], weight) for p in phases]
                for finer, level in zip(medians, levels)
            ]
            distance = 0.0
            for fold, p, x in seen:
                distance += abs(x - table[fold][p])
            tried.append((distance, weight, table))
        _, weight, levels = min(tried, key=lambda one: one[0])
        chosen.append(weight)
    return levels, chosen


def seasonal_spread(
    away: np.ndarray, phase: np.ndarray, hour_of_day: np.ndarray, scale: np.ndarray
) -> np.ndarray:
    """Section 2: spread (K, P): the median of |reading - level| at the hour of day where it has 4, else over all,
    plus 0.1 of the median over all; `scale` (K,) where that is 0 or there is none."""
    hours = hour_of_day.tolist()
    spread = np.empty((away.shape[1], len(hours)))
    for k in range(away.shape[1]):
        seen = [(hours[p], float(y)) for p, y in zip(phase, away[:, k]) if math.isfinite(y)]
        overall = median([y for _, y in seen]) if seen else 0.0
        for p in range(len(hours)):
            hour = [y for h, y in seen if h == hours[p]]
            local = median(hour) if len(hour) >= 4 else overall
            spread[k, p] = local + 0.1 * overall if local + 0.1 * overall > 0 else scale[k]
    return spread


N_FOLDS = 25


def fold_of(t: int, n_times: int) -> int:
    """Section 2: the fold of training time t of T, floor(25 t / T); 25, the table of all, from T on."""
    return N_FOLDS if t >= n_times else (N_FOLDS * t) // n_times


def seasonal_tables_crossfit(
    values: np.ndarray,
    phase: np.ndarray,
    hour_of_day: np.ndarray,
    season: str | None,
    scale: np.ndarray,
    centre: np.ndarray,
    width: int = 3600,
) -> tuple[np.ndarray, np.ndarray]:
    """Section 2: level and spread tables (26, K, P): table f < 25 from the other folds, 25 from all.

    What a reading is away from its level is measured from the level of its own fold.
    """
    n_times = len(values)
    kept = [[t for t in range(n_times) if fold_of(t, n_times) != fold] for fold in range(N_FOLDS + 1)]
    columns = [
        seasonal_levels(values[:, k], phase, hour_of_day, season, width, centre[k])[0]
        for k in range(values.shape[1])
    ]
    levels = np.array(columns).transpose(1, 0, 2)
    away = np.abs(values - at_times(levels, phase, n_times))
    spreads = [seasonal_spread(away[rows], phase[rows], hour_of_day, scale) for rows in kept]
    return levels, np.array(spreads)


def at_times(tables: np.ndarray, phase: np.ndarray, n_training: int) -> np.ndarray:
    """Section 2: the (26, K, P) tables read at each time, (T, K): its own fold in training, 25 afterwards."""
    return np.array([tables[fold_of(t, n_training), :, phase[t]] for t in range(len(phase))])


# -- filling


def deviations(values: np.ndarray, level: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Section 2: D = (Y - level) / s, `level` (T, K) from the season or (K,) the centres; NaN stays NaN."""
    return (values - level) / scale


def ticks_used(D: np.ndarray, most: int = 5000) -> np.ndarray:
    """Section 2: the ticks that report anything; beyond 5,000 those at int(linspace(0, n - 1, 5000))."""
    reporting = np.array([t for t in range(len(D)) if np.isfinite(D[t]).any()], dtype=np.int64)
    if len(reporting) <= most:
        return reporting
    return reporting[np.linspace(0, len(reporting) - 1, most).astype(np.int64)]


def conditional(
    row: np.ndarray, mean: np.ndarray, covariance: np.ndarray, missing: Sequence[int], given: Sequence[int]
) -> tuple[np.ndarray, np.ndarray]:
    """Section 2: mean and covariance of the missing given the given (the least solution where singular)."""
    missing, given = list(missing), list(given)
    if not given:
        return mean[missing], covariance[np.ix_(missing, missing)]
    among_given, across = covariance[np.ix_(given, given)], covariance[np.ix_(given, missing)]
    slope = np.linalg.lstsq(among_given, across, rcond=1e-15)[0].T
    completed = mean[missing] + slope @ (row[given] - mean[given])
    remaining = covariance[np.ix_(missing, missing)] - slope @ across
    return completed, remaining


def gaussian_em(D: np.ndarray, rounds: int = 30, tolerance: float = 1e-3) -> tuple[np.ndarray, np.ndarray]:
    """Section 2: mean (K,) and covariance (K, K) of the deviations by EM over the ticks that report anything.

    A sensor without any reading starts from mean 0, variance 1. The covariance of a round is taken around the
    mean of that same round. The start is exactly diag(nanvar): 1e-6 is added to the diagonal by each round,
    not to the start.
    """
    D = D[ticks_used(D)]
    n_times, n_sensors = D.shape
    seen = [finite(D[:, k]) for k in range(n_sensors)]
    mean = np.array([np.mean(s) if len(s) else 0.0 for s in seen])
    covariance = np.diag([np.var(s) if len(s) else 1.0 for s in seen])
    for _ in range(rounds):
        completed, remaining = D.copy(), np.zeros((n_sensors, n_sensors))
        for t in range(n_times):
            missing = [k for k in range(n_sensors) if np.isnan(D[t, k])]
            given = [k for k in range(n_sensors) if not np.isnan(D[t, k])]
            if missing:
                completed[t, missing], uncertainty = conditional(D[t], mean, covariance, missing, given)
                remaining[np.ix_(missing, missing)] += uncertainty
        new_mean = completed.sum(axis=0) / n_times
        total = remaining
        for t in range(n_times):
            total = total + np.outer(completed[t] - new_mean, completed[t] - new_mean)
        new_covariance = total / n_times + 1e-6 * np.eye(n_sensors)
        change = max(np.abs(new_mean - mean).max(), np.abs(new_covariance - covariance).max())
        mean, covariance = new_mean, new_covariance
        if change < tolerance:
            break
    return mean, covariance


def pairwise_covariance(
    D: np.ndarray, shrink: float = 0.05, ridge: float = 1e-6
) -> tuple[np.ndarray, np.ndarray]:
    """Section 2, K > 100: mean (K,) and pairwise-complete covariance (K, K), off-diagonals times 1 - 0.05.

    Each sensor is centred by its own mean over all its readings; divided by the number of common ticks (ddof
    0); no common tick: 0. The same at most 5,000 ticks and the same 1e-6 on the diagonal as in EM; no
    reading: mean 0, variance 1.
    """
    D = D[ticks_used(D)]
    n_sensors = D.shape[1]
    mean, covariance = np.zeros(n_sensors), np.zeros((n_sensors, n_sensors))
    for k in range(n_sensors):
        seen = finite(D[:, k])
        mean[k] = np.mean(seen) if len(seen) else 0.0
    for i in range(n_sensors):
        for j in range(n_sensors):
            products = finite((D[:, i] - mean[i]) * (D[:, j] - mean[j]))
            if len(products):
                covariance[i, j] = np.mean(products) * (1.0 if i == j else 1.0 - shrink)
            elif i == j:
                covariance[i, j] = 1.0
        covariance[i, i] += ridge
    return mean, covariance


def gaussian_fill(
    row: np.ndarray, mean: np.ndarray, covariance: np.ndarray, near: np.ndarray | None = None
) -> np.ndarray:
    """Section 2: one tick (K,) of deviations, each hole at its conditional mean given what the tick reports.

    With `near` (K, m), the hole of k is conditioned on the observed among near[k] only (its nearest 20,
    itself not among them); nothing observed: the mean.
    """
    n_sensors = len(row)
    filled = np.array(row, dtype=float)
    for k in range(n_sensors):
        if not np.isnan(row[k]):
            continue
        candidates = range(n_sensors) if near is None else near[k]
        given = [j for j in candidates if j != k and not np.isnan(row[j])]
        filled[k] = conditional(np.asarray(row, dtype=float), mean, covariance, [k], given)[0][0]
    return filled


def gaussian_fill_without(
    row: np.ndarray, k: int, mean: np.ndarray, covariance: np.ndarray, near: np.ndarray | None = None
) -> np.ndarray:
    """Section 2: the tick filled as if sensor k had not reported (what same-tick features of k may know)."""
    hidden = np.array(row, dtype=float)
    hidden[k] = np.nan
    return gaussian_fill(hidden, mean, covariance, near)


def seasonal_fill(values: np.ndarray, level: np.ndarray) -> np.ndarray:
    """Section 2, impute="seasonal": a hole is its level (T, K) plus the last known deviation, 0 before any.

    `level` is the frozen table read at each time (`at_times`); a past deviation keeps the level it had at its
    own time.
    """
    filled = np.array(values, dtype=float)
    for k in range(values.shape[1]):
        deviation = 0.0
        for t in range(len(values)):
            if np.isnan(values[t, k]):
                filled[t, k] = level[t, k] + deviation
            else:
                deviation = values[t, k] - level[t, k]
    return filled


# -- neighbourhood


def haversine(a: np.ndarray, b: np.ndarray) -> float:
    """Section 3: the great-circle angle between two (longitude, latitude) in degrees."""
    (lon_a, lat_a), (lon_b, lat_b) = np.radians(a), np.radians(b)
    h = (
        math.sin((lat_b - lat_a) / 2) ** 2
        + math.cos(lat_a) * math.cos(lat_b) * math.sin((lon_b - lon_a) / 2) ** 2
    )
    return 2 * math.asin(min(1.0, math.sqrt(h)))


def shortest_paths(n_sensors: int, adjacency: tuple[np.ndarray, np.ndarray, np.ndarray]) -> np.ndarray:
    """Section 3: Dijkstra distances along an undirected weighted adjacency, infinite without a path."""
    edges: list[list[tuple[int, float]]] = [[] for _ in range(n_sensors)]
    for a, b, weight in zip(*adjacency, strict=True):
        edges[int(a)].append((int(b), float(weight)))
        edges[int(b)].append((int(a), float(weight)))
    distance = np.full((n_sensors, n_sensors), np.inf)
    for source in range(n_sensors):
        distance[source, source] = 0.0
        heap = [(0.0, source)]
        while heap:
            so_far, a = heapq.heappop(heap)
            if so_far > distance[source, a]:
                continue
            for b, weight in edges[a]:
                if so_far + weight < distance[source, b]:
                    distance[source, b] = so_far + weight
                    heapq.heappush(heap, (distance[source, b], b))
    return distance


def correlation(a: np.ndarray, b: np.ndarray) -> float:
    """Section 3: the correlation over common times; -inf (last) with fewer than 2 or a constant side."""
    both = np.isfinite(a) & np.isfinite(b)
    a, b = a[both], b[both]
    if len(a) < 2 or a.min() == a.max() or b.min() == b.max():
        return -np.inf
    a, b = a - a.mean(), b - b.mean()
    return float((a * b).sum() / math.sqrt((a * a).sum() * (b * b).sum()))


def order_of_neighbours(
    positions: np.ndarray | None,
    geometry: str | None,
    adjacency: tuple[np.ndarray, np.ndarray, np.ndarray] | None,
    values: np.ndarray,
) -> np.ndarray:
    """Section 3: (K, K), all sensors from nearest to farthest, self first, ties by sensor index.

    Positions are used before an adjacency, an adjacency before correlations (signed, largest first). Two
    distances that differ by less than about 1e-12 of the largest are a tie: rounding must not decide.
    """
    n_sensors = values.shape[1]
    if positions is not None:
        measure = (
            haversine if geometry == "lonlat" else (lambda a, b: math.hypot(*(np.asarray(a) - np.asarray(b))))
        )
        far = np.array(
            [[measure(positions[i], positions[j]) for j in range(n_sensors)] for i in range(n_sensors)]
        )
    elif adjacency is not None:
        far = shortest_paths(n_sensors, adjacency)
    else:
        far = np.array(
            [[-correlation(values[:, i], values[:, j]) for j in range(n_sensors)] for i in range(n_sensors)]
        )
    largest = np.abs(finite(far.ravel())).max(initial=0.0) or 1.0
    order = []
    for k in range(n_sensors):
        others = [j for j in range(n_sensors) if j != k]
        order.append(
            [
                k,
                *sorted(
                    others,
                    key=lambda j: (round(far[k, j] / largest, 12) if np.isfinite(far[k, j]) else np.inf, j),
                ),
            ]
        )
    return np.array(order, dtype=np.int64)


def silent(observed: np.ndarray, t: int, D: int) -> np.ndarray:
    """Section 3: (K,) whether each sensor has no observed reading in [t - D, t - 1]; never before t = D."""
    n_sensors = observed.shape[1]
    if t < D:
        return np.zeros(n_sensors, dtype=bool)
    return np.array([not any(observed[u, k] for u in range(t - D, t)) for k in range(n_sensors)])


def neighbourhood_at(t: int, order: np.ndarray, neighbours: int, silent: np.ndarray) -> np.ndarray:
    """Section 3: (K, N) the neighbourhoods of tick t, silent neighbours replaced by the next nearest.

    `silent` (K,) belongs to t; `order` may be that of some sensors only. Slots are served from the nearest on; a
    sensor never replaces itself, and where no substitute is left the silent one stays.
    """
    n_sensors = len(order)
    result = []
    for k in range(n_sensors):
        slots = [int(j) for j in order[k, :neighbours]]
        reserve = [int(j) for j in order[k, neighbours:] if not silent[j]]
        for slot in range(1, len(slots)):
            if silent[slots[slot]] and reserve:
                slots[slot] = reserve.pop(0)
        result.append(slots)
    return np.array(result, dtype=np.int64)


# -- features


def calendar_row(week_seconds: float) -> np.ndarray:
    """Section 3: nine terms: sin, cos of the day and its double, of the week and its double, weekend flag."""
    terms = []
    for period in (DAY, WEEK):
        for times in (1, 2):
            angle = 2 * math.pi * times * (week_seconds % period) / period
            terms += [math.sin(angle), math.cos(angle)]
    return np.array([*terms, 1.0 if week_seconds >= 5 * DAY else 0.0])


def design_row(
    t: int,
    k: int,
    filled_scaled: np.ndarray,
    observed: np.ndarray,
    order: np.ndarray,
    lags: int,
    neighbours: int,
    seasonal_lags: Sequence[int] = (),
    calendar: np.ndarray | None = None,
    level: np.ndarray | None = None,
    spread: np.ndarray | None = None,
    same_tick: bool = False,
    same_tick_values: np.ndarray | None = None,
    day: int = 24,
    replace_silent: bool = True,
) -> np.ndarray | None:
    """Section 3: X[t, k] as one row, or None where the largest lag reaches before the data.

    Order: lags 1..L of each neighbour (self first, newest first); seasonal lags (in ticks) of k; calendar (T,
    9); level and spread (T, K), already in the units wanted; then `same_tick_values` (K,), the tick filled
    without k, at the neighbours without k. `day` is D, in ticks.
    """
    if t - max(lags, *seasonal_lags, 0) < 0:
        return None
    gone = silent(observed, t, day) if replace_silent else np.zeros(len(order), dtype=bool)
    near = neighbourhood_at(t, order[k : k + 1], neighbours, gone)[0]
    row = [filled_scaled[t - lag, j] for j in near for lag in range(1, lags + 1)]
    row += [filled_scaled[t - lag, k] for lag in seasonal_lags]
    if calendar is not None:
        row += list(calendar[t])
    if level is not None:
        row.append(level[t, k])
    if spread is not None:
        row.append(spread[t, k])
    if same_tick:
        row += [same_tick_values[j] for j in near if j != k]
    return np.array(row, dtype=float)


# -- bootstrap, members, leave-one-out


def iid_counts(indices: Sequence[int], n: int) -> np.ndarray:
    """Section 4, bootstrap="iid": how often each of n times was drawn."""
    counts = np.zeros(n, dtype=np.int64)
    for i in indices:
        counts[i] += 1
    return counts


def moving_block_counts(
    starts: Sequence[int], times: np.ndarray, block: float, step: float = 1
) -> np.ndarray:
    """Section 4, bootstrap="block": how often each usable time was drawn, given starts (indices of `times`).

    A block is the usable times in [times[s], times[s] + block), on a circular clock of length times[-1] -
    times[0] + step (a block longer than that circle covers it once). Blocks are joined in the order drawn and
    cut after T' times; starts that are not reached are ignored.
    """
    n = len(times)
    circle = times[-1] - times[0] + step
    drawn: list[int] = []
    for start in starts:
        after = [((times[i] - times[start]) % circle, i) for i in range(n)]
        drawn += [i for later, i in sorted(after) if later < block]
    if len(drawn) < n:
        raise ValueError(f"{len(starts)} starts give {len(drawn)} times of the {n} needed")
    return iid_counts(drawn[:n], n)


def ridge(X: np.ndarray, y: np.ndarray, counts: np.ndarray, strength: float) -> tuple[np.ndarray, float]:
    """Section 4: a member: row i repeated counts[i] times, penalty strength * |coef|^2, free intercept."""
    rows, targets = np.repeat(X, counts, axis=0), np.repeat(y, counts)
    n_features = X.shape[1]
    top = np.hstack([rows, np.ones((len(rows), 1))])
    penalty = np.hstack([math.sqrt(strength) * np.eye(n_features), np.zeros((n_features, 1))])
    solution = np.linalg.lstsq(
        np.vstack([top, penalty]), np.concatenate([targets, np.zeros(n_features)]), rcond=1e-15
    )[0]
    return solution[:-1], float(solution[-1])


def phi(values: Sequence[float], aggregation: Aggregation) -> float:
    """Section 5: mean, median, trimmed mean (max(1, int(0.1 m)) off each end where m >= 3), or a callable.

    The median is the mean of the middle one or two. What one member cannot predict nobody does.
    """
    if callable(aggregation):
        return float(aggregation(np.asarray(values, dtype=float)))
    if any(math.isnan(y) for y in values):
        return math.nan
    m = len(values)
    off_each_end = {"mean": 0, "median": (m - 1) // 2, "trimmed_mean": max(1, int(0.1 * m)) if m >= 3 else 0}
    cut = off_each_end[aggregation]
    return math.fsum(sorted(values)[cut : m - cut]) / (m - 2 * cut)


def loo(predictions: np.ndarray, in_bag_column: np.ndarray, aggregation: Aggregation) -> float:
    """Section 5: f_-i(x) from predictions (B,) of the members whose count (B,) of i is 0; NaN without any."""
    outside = [y for y, count in zip(predictions, in_bag_column) if count == 0]
    return phi(outside, aggregation) if outside else math.nan


def loo_all(predictions: np.ndarray, in_bag: np.ndarray, aggregation: Aggregation) -> np.ndarray:
    """Section 5: f_-i(x) for every column i of in_bag (B, n), at one x with member predictions (B,)."""
    return np.array([loo(predictions, in_bag[:, i], aggregation) for i in range(in_bag.shape[1])])


def quantile_centre(
    predictions: np.ndarray, in_bag: np.ndarray, aggregation: Aggregation, alpha: float
) -> float:
    """Section 6.1: the r-th smallest of the n LOO predictions, r = max(1, ceil(round((1 - alpha) n, 9)))."""
    candidates = sorted(finite(loo_all(predictions, in_bag, aggregation)))
    n = len(candidates)
    if n == 0:
        return math.nan
    return float(candidates[max(1, math.ceil(round((1 - alpha) * n, 9))) - 1])


# -- scores


def score(kind: str, y: float, centre: float, scale: float = 1.0) -> float:
    """Section 6.2: |y - centre|, y - centre, or |y - centre| / scale for absolute, signed, studentised."""
    if kind == "absolute":
        return abs(y - centre)
    if kind == "signed":
        return y - centre
    if kind == "studentised":
        return abs(y - centre) / scale
    raise ValueError(f"unknown score {kind!r}")


def near_in_hour(a: int, b: int) -> bool:
    """Section 6.2: the same hour of the day plus or minus one, around midnight too."""
    return (a - b) % 24 in (0, 1, 23)


def training_median(residuals: np.ndarray, spread: float) -> float:
    """Section 6.2: the median training |residual| of one sensor; its spread where that is 0 or undefined."""
    seen = [abs(r) for r in finite(residuals)]
    usual = median(seen) if seen else 0.0
    return usual if usual > 0 else spread


def local_scale(
    residuals: np.ndarray,
    ticks: np.ndarray,
    hours: np.ndarray | None,
    t: int,
    hour: int | None,
    training_median: float,
    window: int = 28 * 24,
) -> float:
    """Section 6.2, studentised: the scale of one sensor at t; of its residuals only the past counts.

    Median |residual| over ticks in [t - window, t - 1] (28 days, in ticks) at the same hour of the day plus
    or minus one, plus 0.1 of the training median. With fewer than 20 finite values: the training median
    itself, nothing added. Without a clock (`hours` None) every hour is the same. Residuals count whether or
    not their scores were absorbed.
    """
    seen = []
    for u in range(len(ticks)):
        recent = t - window <= ticks[u] <= t - 1
        if recent and math.isfinite(residuals[u]) and (hours is None or near_in_hour(hours[u], hour)):
            seen.append(abs(residuals[u]))
    if len(seen) < 20:
        return training_median
    return median(seen) + 0.1 * training_median


def studentised_training_scores(
    residuals: np.ndarray, ticks: np.ndarray, hours: np.ndarray | None, spread: float, window: int = 28 * 24
) -> np.ndarray:
    """Section 6.2: training scores (n,) of one sensor by the rule of detection: over its own past's scale."""
    usual = training_median(residuals, spread)
    scores = []
    for i in range(len(residuals)):
        hour = None if hours is None else hours[i]
        scores.append(abs(residuals[i]) / local_scale(residuals, ticks, hours, ticks[i], hour, usual, window))
    return np.array(scores)


# -- p-values


def tie_tolerance(kind: str, spread: float) -> float:
    """Section 6.4: how far below s a reference score may lie and still tie with it."""
    return 1e-9 if kind == "studentised" else 1e-9 * spread


def share(weight_beyond: float, weight_all: float, form: str) -> float:
    """Section 6.4: one side's p: (1 + beyond) / (1 + all), or without the ones in the paper's form."""
    return (1 + weight_beyond) / (1 + weight_all) if form == "conformal" else weight_beyond / weight_all


def weight_beyond(s: float, R: np.ndarray, tol: float, weights: np.ndarray | None, side: str) -> float:
    """Section 6.4: the number (or weight) of r >= s - tol, side "high", or r <= s + tol, side "low"."""
    total = 0.0
    for i in range(len(R)):
        beyond = R[i] >= s - tol if side == "high" else R[i] <= s + tol
        if beyond:
            total += 1.0 if weights is None else weights[i]
    return total


def sides(kind: str, tail: str) -> tuple[str, ...]:
    """Section 6.4: which sides are tested; only signed scores have a low one."""
    if kind != "signed":
        return ("high",)
    return ("high", "low") if tail == "both" else (tail,)


def p_value(
    s: float,
    R: np.ndarray,
    form: str,
    tail: str,
    kind: str,
    tol: float,
    weights: np.ndarray | None = None,
) -> float:
    """Section 6.4: p of s against finite scores R; two-sided min(1, 2 min(high, low)); NaN without any."""
    if not np.isfinite(s) or len(R) == 0:
        return math.nan
    total = float(len(R)) if weights is None else float(sum(weights))
    tested = sides(kind, tail)
    smallest = min(weight_beyond(s, R, tol, weights, side) for side in tested)
    if len(tested) == 2:
        ones = 1 if form == "conformal" else 0
        return min(1.0, 2 * (ones + smallest) / (ones + total))
    return share(smallest, total, form)


def strength(
    s: float,
    R: np.ndarray,
    tail: str,
    kind: str,
    tol: float,
    spread: float,
    weights: np.ndarray | None = None,
) -> float:
    """Section 6.4: -log(conformal p), plus (s - max R) / sigma beyond the largest, on the side that decided.

    sigma = mean of r - u over r > u (not weighted), u the ceil(0.9 n)-th smallest of R; where undefined the
    training spread (1 for studentised scores, which are pure numbers).
    """
    p = p_value(s, R, "conformal", tail, kind, tol, weights)
    if math.isnan(p):
        return math.nan
    side = min(sides(kind, tail), key=lambda side: weight_beyond(s, R, tol, weights, side))
    if side == "low":
        s, R = -s, -np.asarray(R)
    if s <= max(R):
        return -math.log(p)
    n = len(R)
    u = sorted(R)[-(-9 * n // 10) - 1]
    excess = [r - u for r in R if r > u]
    sigma = float(np.mean(excess)) if excess else 0.0
    if sigma == 0:
        sigma = 1.0 if kind == "studentised" else spread
    return -math.log(p) + (s - max(R)) / sigma


def largest_quiet(R: np.ndarray, level: float, form: str, weights: np.ndarray | None) -> float:
    """Section 6 (bounds): the largest score that is no alarm on the high side; inf when none can be.

    Unweighted this is the (m + 1)-th largest of R, m = floor(level (n + 1) + 1e-9) - 1, or floor(level n +
    1e-9) in the paper's form; -inf when every score is an alarm.
    """
    weights = np.ones(len(R)) if weights is None else np.asarray(weights)
    beyond = 1.0 if form == "conformal" else 0.0
    allowed = level * (beyond + weights.sum()) + 1e-9
    if beyond > allowed:
        return math.inf
    for i in sorted(range(len(R)), key=lambda i: -R[i]):
        beyond += weights[i]
        if beyond > allowed:
            return float(R[i])
    return -math.inf


def score_bounds(
    R: np.ndarray,
    alpha: float,
    form: str = "conformal",
    kind: str = "absolute",
    tail: str = "both",
    weights: np.ndarray | None = None,
) -> tuple[float, float]:
    """Section 6 (bounds): the scores (over the local scale when studentised) between which there is no alarm.

    Absolute and studentised: -q, q. Signed: each tested side at alpha / 2 when both are tested; the side not
    tested is infinite, as is a side on which no alarm is possible.
    """
    R = np.asarray(R, dtype=float)
    if kind != "signed":
        q = largest_quiet(R, alpha, form, weights)
        return -q, q
    tested = sides(kind, tail)
    level = alpha / len(tested)
    high = largest_quiet(R, level, form, weights) if "high" in tested else math.inf
    low = -largest_quiet(-R, level, form, weights) if "low" in tested else -math.inf
    return low, high


def bounds(
    centre: float,
    R: np.ndarray,
    alpha: float,
    form: str = "conformal",
    kind: str = "absolute",
    tail: str = "both",
    scale: float = 1.0,
    weights: np.ndarray | None = None,
) -> tuple[float, float]:
    """Section 6 (bounds): the readings between which there is no alarm at alpha (scale: studentised only)."""
    low, high = score_bounds(R, alpha, form, kind, tail, weights)
    return centre + scale * low, centre + scale * high


def own_last_classes(observed: np.ndarray) -> np.ndarray:
    """Section 6.3, "own_last": (T, K), 1 where the reading of the tick before was observed; 0 at t = 0."""
    classes = np.zeros(observed.shape, dtype=np.int64)
    for t in range(1, len(observed)):
        for k in range(observed.shape[1]):
            classes[t, k] = 1 if observed[t - 1, k] else 0
    return classes


class Row:
    """One slot of the window: the scores of one tick, and what the run rule has decided about each."""

    def __init__(self, tick: int, scores: np.ndarray, classes: np.ndarray | None, hour: int | None) -> None:
        self.tick = tick
        self.scores = np.array(scores, dtype=float)
        self.classes = None if classes is None else np.array(classes)
        self.hour = hour
        self.left_out = np.zeros(len(self.scores), dtype=bool)
        self.denied = np.zeros(len(self.scores), dtype=bool)


class Reference:
    """Sections 6.3 to 6.6: the reference sets, one tick after another.

    The window is the last W = n rows; every `update` adds one row (also an all-NaN one). All rows are kept
    here, so that a seasonal reference may reach 28 days back whatever W is; the caps of the run rule count
    over the last W rows in every kind of reference.

    reference: "window" (pool "sensor" or "network"), "seasonal" (own scores of ticks in [t - season_ticks, t
    - 1] at the same hour plus or minus one), "local" (`local` "and": ticks t - local_ticks .. t - 1 of the
    sensors in N_k; "or": the whole window of the sensors in N_k together with those ticks of all sensors).
    Classes restrict "window" and "seasonal" only. Training rows need not be at successive ticks; a row's
    place is its tick.
    """

    def __init__(
        self,
        training_scores: np.ndarray,
        training_ticks: np.ndarray,
        training_classes: np.ndarray | None = None,
        *,
        kind: str = "absolute",
        reference: str = "window",
        pool: str = "sensor",
        form: str = "conformal",
        tail: str = "both",
        alpha: float = 0.05,
        spread: np.ndarray | None = None,
        half_life: float | None = None,
        absorb: str = "runs",
        local: str = "and",
        local_ticks: int = 5,
        neighbourhood: np.ndarray | None = None,
        training_hours: np.ndarray | None = None,
        season_ticks: int = 28 * 24,
        fitted: np.ndarray | None = None,
    ) -> None:
        self.n_window, self.n_sensors = training_scores.shape
        self.kind, self.reference, self.pool, self.form, self.tail = kind, reference, pool, form, tail
        self.alpha, self.half_life, self.absorb = alpha, half_life, absorb
        self.local, self.local_ticks, self.neighbourhood = local, local_ticks, neighbourhood
        self.season_ticks = season_ticks
        self.spread = np.ones(self.n_sensors) if spread is None else spread
        self.fitted = np.ones(self.n_sensors, dtype=bool) if fitted is None else fitted
        self.use_classes = training_classes is not None and reference != "local"
        self.rows = [
            Row(
                int(training_ticks[i]),
                training_scores[i],
                None if training_classes is None else training_classes[i],
                None if training_hours is None else int(training_hours[i]),
            )
            for i in range(self.n_window)
        ]
        # for each sensor, the flagged ticks and the tick at which the run of each began
        self.run_start: list[dict[int, int]] = [{} for _ in range(self.n_sensors)]

    def cells(self, t: int, k: int, hour: int | None, near: np.ndarray | None) -> list[tuple[Row, int]]:
        """Section 6.3: the (row, sensor) places of the set of (t, k), before classes and finiteness."""
        window = self.rows[-self.n_window :]
        everyone = range(self.n_sensors)
        if self.reference == "window":
            pool = [k] if self.pool == "sensor" else everyone
            return [(row, j) for row in window for j in pool]
        if self.reference == "seasonal":
            return [
                (row, k)
                for row in self.rows
                if t - self.season_ticks <= row.tick <= t - 1 and near_in_hour(row.hour, hour)
            ]
        past = [row for row in self.rows if t - self.local_ticks <= row.tick <= t - 1]
        if self.local == "and":
            return [(row, j) for row in past for j in near]
        of_neighbours = [(row, j) for row in window for j in near]
        recent = [(row, j) for row in past for j in everyone if j not in list(near) or row not in window]
        return of_neighbours + recent

    def set_of(
        self, t: int, k: int, own_class: int | None, hour: int | None, near: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray | None, bool]:
        """Section 6.3: R, its weights (None: all 1), and whether all classes had to be taken."""
        places = [
            (row, j)
            for row, j in self.cells(t, k, hour, near)
            if math.isfinite(row.scores[j]) and not row.left_out[j]
        ]
        all_classes = False
        if self.use_classes:
            own = [(row, j) for row, j in places if row.classes[j] == own_class]
            if len(own) >= max(100, smallest_count(self.alpha)):
                places = own
            else:
                all_classes = True
        R = np.array([row.scores[j] for row, j in places])
        if self.half_life is None or not places:
            return R, None, all_classes
        weights = np.array([2.0 ** (-(t - row.tick) / self.half_life) for row, _ in places])
        return R, weights / weights.max(), all_classes

    def update(
        self,
        tick: int,
        scores: np.ndarray,
        classes: np.ndarray | None = None,
        *,
        observed: np.ndarray | None = None,
        hour: int | None = None,
        neighbourhood: np.ndarray | None = None,
    ) -> dict[str, np.ndarray]:
        """Section 6.3 to 6.6: judge the scores (K,) of one tick, and only then let them in.

        `observed` tells a missing reading from missing features (None: every NaN score is a missing reading);
        `neighbourhood` (K, N) is that of this tick, the constructor's when None. The bounds do not depend on
        the reading: they are given for missing readings too. Status: missing before not fitted before no
        features before warming up before all classes.
        """
        if self.rows and tick <= self.rows[-1].tick:
            raise ValueError(f"tick {tick} is not after {self.rows[-1].tick}")
        observed = np.isfinite(scores) if observed is None else observed
        scores = np.where(observed & self.fitted, scores, np.nan)
        near = self.neighbourhood if neighbourhood is None else neighbourhood
        p, strengths, lower, upper = (np.full(self.n_sensors, np.nan) for _ in range(4))
        status = np.zeros(self.n_sensors, dtype=np.uint8)
        for k in range(self.n_sensors):
            own_class = None if classes is None else classes[k]
            R, weights, all_classes = self.set_of(tick, k, own_class, hour, None if near is None else near[k])
            enough = len(R) > 0 and len(R) >= smallest_count(self.alpha) and bool(self.fitted[k])
            if enough:
                lower[k], upper[k] = score_bounds(R, self.alpha, self.form, self.kind, self.tail, weights)
            if not observed[k]:
                status[k] = MISSING
            elif not self.fitted[k]:
                status[k] = NOT_FITTED
            elif not np.isfinite(scores[k]):
                status[k] = NO_FEATURES
            elif not enough:
                status[k] = WARMING_UP
            else:
                status[k] = ALL_CLASSES if all_classes else TESTED
                tol = tie_tolerance(self.kind, self.spread[k])
                p[k] = p_value(scores[k], R, self.form, self.tail, self.kind, tol, weights)
                strengths[k] = strength(scores[k], R, self.tail, self.kind, tol, self.spread[k], weights)
        self.rows.append(Row(tick, scores, classes, hour))
        if self.absorb == "runs":
            for k in range(self.n_sensors):
                if p[k] <= 0.01:
                    self.run_rule(tick, k)
        return {
            "p": p,
            "strength": strengths,
            "lower_bound": lower,
            "upper_bound": upper,
            "status": status,
            "alarm": p <= self.alpha,
        }

    def run_rule(self, t: int, k: int) -> None:
        """Section 6.6, "runs": a flagged (t, k) and its partners at t - 1, t - 2 leave, within the caps.

        Tried in the order t, t - 1, t - 2. A score that the caps (W / 10 places, run age W / 20) kept in once
        is not tried again. The age of a run is t minus its first flagged tick.
        """
        partners = [u for u in (t - 1, t - 2) if u in self.run_start[k]]
        if not partners:
            self.run_start[k][t] = t
            return
        start = self.run_start[k][partners[0]]
        self.run_start[k][t] = start
        for row in sorted(
            (row for row in self.rows if row.tick in (t, *partners)), key=lambda row: -row.tick
        ):
            if row.left_out[k] or row.denied[k]:
                continue
            n_out = sum(bool(other.left_out[k]) for other in self.rows[-self.n_window :])
            if 20 * (t - start) > self.n_window or 10 * (n_out + 1) > self.n_window:
                row.denied[k] = True
            else:
                row.left_out[k] = True


# -- decisions


def bh(p_row: np.ndarray, level: float) -> np.ndarray:
    """Section 6.5, Benjamini-Hochberg: alarms up to the largest p_(i) <= level * i / m; NaN never counts."""
    tested = sorted(finite(p_row))
    m = len(tested)
    threshold = -math.inf
    for i in range(1, m + 1):
        if tested[i - 1] <= level * i / m * (1 + 1e-12):  # on the line, whatever the rounding
            threshold = tested[i - 1]
    return np.array([bool(p <= threshold) for p in p_row])


# -- whole algorithms


def detect_tabular(
    X: np.ndarray,
    y: np.ndarray,
    in_bag: np.ndarray,
    X1: np.ndarray,
    y1: np.ndarray,
    *,
    strength_of_ridge: float = 1.0,
    fit: Callable[[np.ndarray, np.ndarray], Callable[[np.ndarray], np.ndarray]] | None = None,
    aggregation: Aggregation = "mean",
    centre: str = "quantile",
    kind: str = "absolute",
    tail: str = "both",
    form: str = "conformal",
    alpha: float = 0.05,
) -> dict[str, np.ndarray]:
    """Sections 4 to 6 with a single subscript: the paper's algorithm on features of one's own (TabularECAD).

    in_bag (B, n): n = rows of y that were observed, in their order. `fit(rows, targets)` gives a member's
    predict; ridge when None. Window of the last n scores, everything absorbed, a row with unobserved y1 takes
    a place and counts for nothing. Ties by the standard deviation of the observed y.
    """
    kept = np.isfinite(y)
    _, _, spread = scale_of(y[:, None])
    X, y = X[kept], y[kept]
    predictors = []
    for counts in in_bag:
        if fit is None:
            coef, intercept = ridge(X, y, counts, strength_of_ridge)
            predictors.append(lambda rows, coef=coef, intercept=intercept: rows @ coef + intercept)
        else:
            predictors.append(fit(np.repeat(X, counts, axis=0), np.repeat(y, counts)))
    inside = np.array([predict(X) for predict in predictors])
    outside = np.array([predict(X1) for predict in predictors])
    training = [score(kind, y[i], loo(inside[:, i], in_bag[:, i], aggregation)) for i in range(len(y))]
    tol = tie_tolerance(kind, spread[0])
    window = list(training)
    n = len(window)
    columns: dict[str, list[float]] = {
        name: [] for name in ("centre", "score", "p_value", "strength", "lower", "upper")
    }
    for i in range(len(y1)):
        if centre == "quantile":
            middle = quantile_centre(outside[:, i], in_bag, aggregation, alpha)
        else:
            middle = phi(outside[:, i], aggregation)
        s = score(kind, y1[i], middle)
        R = finite(window)
        enough = len(R) > 0 and len(R) >= smallest_count(alpha)
        columns["centre"].append(middle)
        columns["score"].append(s)
        columns["p_value"].append(p_value(s, R, form, tail, kind, tol) if enough else math.nan)
        columns["strength"].append(strength(s, R, tail, kind, tol, spread[0]) if enough else math.nan)
        low, high = bounds(middle, R, alpha, form, kind, tail) if enough else (math.nan, math.nan)
        columns["lower"].append(low)
        columns["upper"].append(high)
        window = [*window, s][-n:]
    result = {name: np.array(column) for name, column in columns.items()}
    result["alarm"] = result["p_value"] <= alpha
    result["calibration_scores"] = np.array(training)
    result["member_predictions"] = outside
    return result


def loo_all_mean(predictions: np.ndarray, in_bag: np.ndarray) -> np.ndarray:
    """Section 5, phi = mean: `loo_all` member by member instead of time by time, for the pipeline below."""
    total, count = np.zeros(in_bag.shape[1]), np.zeros(in_bag.shape[1])
    for b in range(len(predictions)):
        outside = in_bag[b] == 0
        total += predictions[b] * outside
        count += outside
    total[count == 0] = math.nan
    return total / np.maximum(count, 1)


def paper_pipeline(
    train: np.ndarray,
    test: np.ndarray,
    order: np.ndarray,
    in_bag: np.ndarray,
    lags: int,
    neighbours: int,
    strength: float,
    alpha: float,
    sample: Sequence[tuple[int, int]],
    *,
    test_observed: np.ndarray | None = None,
    train_observed: np.ndarray | None = None,
) -> dict[str, np.ndarray]:
    """Section 8, `ECAD.paper(regressor="ridge")`: centre, score, p_value, alarm for some (test time, sensor).

    train (T, K) and test (T1, K) are without holes; the masks say what was really observed (None: all).
    Members train on filled targets too, and filled training cells have scores; a filled test cell has none:
    it is NaN in later references and its own p is NaN. in_bag (B, T - lags): columns are the training times
    lags .. T - 1. N_k is the first `neighbours` of the order, for features and reference alike, and does not
    change with time. Ties by the standard deviation of the observed training readings.
    """
    n_train, n_sensors = train.shape
    everything = np.vstack([train, test])
    test_observed = np.ones(test.shape, dtype=bool) if test_observed is None else test_observed
    train_seen = train if train_observed is None else np.where(train_observed, train, np.nan)
    _, _, spread = scale_of(train_seen)
    near = order[:, :neighbours]

    def features(t: int, k: int) -> np.ndarray:
        return np.array([everything[t - lag, j] for j in near[k] for lag in range(1, lags + 1)])

    places = [(t, k) for t in range(lags, n_train) for k in range(n_sensors)]
    X = np.array([features(t, k) for t, k in places])
    y = np.array([train[t, k] for t, k in places])
    members = [ridge(X, y, np.repeat(counts, n_sensors), strength) for counts in in_bag]

    def member_predictions(t: int, k: int) -> np.ndarray:
        x = features(t, k)
        return np.array([x @ coef + intercept for coef, intercept in members])

    def centre_of(t: int, k: int) -> float:
        if t < n_train:
            return loo(member_predictions(t, k), in_bag[:, t - lags], "mean")
        candidates = np.sort(finite(loo_all_mean(member_predictions(t, k), in_bag)))
        n = len(candidates)
        return float(candidates[max(1, math.ceil(round((1 - alpha) * n, 9))) - 1]) if n else math.nan

    known: dict[tuple[int, int], float] = {}

    def score_of(t: int, k: int) -> float:
        if t < lags or (t >= n_train and not test_observed[t - n_train, k]):
            return math.nan
        if (t, k) not in known:
            known[t, k] = abs(everything[t, k] - centre_of(t, k))
        return known[t, k]

    centres, scores, p_values = [], [], []
    for t1, k in sample:
        t = n_train + t1
        R = finite([score_of(u, j) for u in range(t - lags, t) for j in near[k]])
        s = score_of(t, k)
        centres.append(centre_of(t, k))
        scores.append(s)
        enough = len(R) > 0 and len(R) >= smallest_count(alpha)
        p_values.append(p_value(s, R, "paper", "both", "absolute", 1e-9 * spread[k]) if enough else math.nan)
    p = np.array(p_values)
    return {"centre": np.array(centres), "score": np.array(scores), "p_value": p, "alarm": p <= alpha}
