"""a report -> one self-contained page: what was judged, a few sensors, the network, the episodes."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from .canvas import STYLE, load_matplotlib, svg
from .choice import chosen
from .document import document
from .judged import (
    Booleans,
    Floats,
    Judged,
    Known,
    any_known,
    checked,
    has_clock,
    shares,
    was_tested,
)
from .listing import episodes
from .marks import BAND, BLUE, FAINT, INK, grounds, kinds, symbol_of
from .network import SINGLE, draw_map
from .sensor import draw_sensor
from .words import asked, duration, percent


def page(
    report: Judged,
    path: str | Path,
    truth: ArrayLike | None = None,
    title: str = "What looked strange, and when",
    *,
    holidays: ArrayLike | None = None,
    sensors: Sequence[str] | None = None,
    unit: str = "",
) -> Path:
    """Write one self-contained HTML page about a report.

    truth : (time, sensor), true where a reading is known to be an anomaly; alarms are then told apart by it.
    holidays : (time,), true at times known to be unusual; alarms there are neither right nor false.
    sensors : whose readings to show in detail; by default two that had a lot to show.
    unit : the readings' unit, for the axes, like "vehicles/h".
    """
    load_matplotlib()
    known = checked(report, truth, holidays)
    shown = chosen(report, sensors, known)
    parts = [
        _header(report, known, title),
        _section(
            "Readings and their p-values",
            _reading_guide(report, known, sensors is not None),
            _details(report, shown, known, unit),
        ),
        _section("The network", _map_guide(report), _network(report, shown)),
        _section("Episodes", _episode_guide(report), episodes(report, known)),
    ]
    target = Path(path)
    target.write_text(document(title, "\n".join(parts)), encoding="utf-8")
    return target


def _header(report: Judged, known: Known, title: str) -> str:
    tested, alarms = was_tested(report), report.alarms
    n_tested, n_alarms = int(tested.sum()), int(alarms.sum())
    observed = int(np.count_nonzero(~np.isnan(report.values)))
    tiles = [
        _tile(
            f"{n_tested:,}",
            "readings judged",
            _not_judged(report.values.size - observed, observed - n_tested),
        ),
        _tile(f"{n_alarms:,}", "alarms", f"{percent(n_alarms / max(n_tested, 1))} of the readings"),
        _tile(asked(report), "alarm level asked", f"≈ {report.alpha * n_tested:,.0f} alarms by chance"),
        _tile(f"{len(report.episodes):,}", "episodes", "alarms that touch one another"),
    ]
    if known.anomalies is not None:
        tiles += _truth_tiles(alarms, known.anomalies, tested, known.holidays[:, None])
    return (
        f'<header><p class="brand">ECAD</p><h1>{escape(title)}</h1><p class="lead">{escape(_scope(report))}</p>'
        f'<div class="tiles">{"".join(tiles)}</div></header>'
    )


def _truth_tiles(alarms: Booleans, truth: Booleans, tested: Booleans, holiday: Booleans) -> list[str]:
    true, normal = truth & tested, tested & ~truth & ~holiday
    hits, false = int((alarms & true).sum()), int((alarms & normal).sum())
    n_true, n_normal = int(true.sum()), int(normal.sum())
    note = f"{false:,} of {n_normal:,} normal ones"
    if holiday.any():  # set apart, but never out of sight
        everything = tested & ~truth
        share = int((alarms & everything).sum()) / max(int(everything.sum()), 1)
        note += f"; {percent(share)} with holidays"
    return [
        _tile(percent(hits / max(n_true, 1)), "anomalies caught", f"{hits:,} of {n_true:,} readings", "hit"),
        _tile(percent(false / max(n_normal, 1)), "false alarms seen", note, "false"),
    ]


def _tile(number: str, label: str, note: str, kind: str = "") -> str:
    lines = f"<b>{escape(number)}</b><span>{escape(label)}</span><small>{escape(note)}</small>"
    return f'<div class="tile {kind}">{lines}</div>'


def _not_judged(missing: int, waiting: int) -> str:
    parts = [f"{missing:,} missing"] if missing else []
    parts += [f"{waiting:,} without a verdict yet"] if waiting else []
    return ", ".join(parts) or "none missing"


def _scope(report: Judged) -> str:
    times = report.panel.local_times
    n = len(report.sensors)
    who = f"{n:,} sensors" if n > 1 else "1 sensor"
    if not len(times):
        return who
    if not has_clock(report):
        return f"{who}, ticks {times[0]:,} to {times[-1]:,}"
    first, last = (str(time.astype("datetime64[m]")).replace("T", " ") for time in (times[0], times[-1]))
    zone = f" ({report.panel.time_zone})" if report.panel.time_zone else ""
    return (
        f"{who}, one reading every {duration(report.panel.step).removeprefix('1 ')}, {first} to {last}{zone}"
    )


def _section(heading: str, guide: str, body: str) -> str:
    return f'<section><h2>{heading}</h2><p class="guide">{guide}</p>{body}</section>'


def _reading_guide(report: Judged, known: Known, named: bool) -> str:
    keys = [
        _key(f'<path d="M1 9 L7 4 L12 8 L19 3" fill="none" stroke="{INK}" stroke-width="1.6"/>', "reading"),
        _key(f'<path d="M1 7 H19" stroke="{BLUE}" stroke-width="1.8" stroke-dasharray="4 2"/>', "expected"),
        _key(f'<rect x="1" y="2" width="18" height="9" fill="{BAND}"/>', "range without alarm"),
        _key(f'<path d="M5 11 V5 M10 11 V5 M15 11 V5" stroke="{FAINT}" stroke-width="1.6"/>', "missing"),
    ]
    keys += [_key(symbol_of(mark), mark.label) for mark in kinds(known)]
    keys += [
        _key(f'<rect x="1" y="1" width="18" height="11" fill="{colour}"/>', name)
        for name, colour in grounds(known)
    ]
    chosen = (
        "Shown are, of each sensor,"
        if named
        else "Shown are up to two sensors, apart where possible, and of each"
    )
    by = "most known anomalies, found or not" if any_known(known) else "strongest alarms"
    return (
        "The p-value says how rare so strange a reading is among this sensor's usual ones; "
        f"strange is up, and an alarm is p &le; {report.alpha:g} (dashed line). {chosen} the days with the {by}."
        f'</p><p class="keys">{"".join(keys)}'
    )


def _key(drawing: str, text: str) -> str:
    return f'<span><svg viewBox="0 0 20 13" aria-hidden="true">{drawing}</svg>{escape(text)}</span>'


def _details(report: Judged, shown: Sequence[int], known: Known, unit: str) -> str:
    matplotlib = load_matplotlib()
    drawings = []
    for sensor in shown:
        with matplotlib.rc_context(STYLE):
            drawing = matplotlib.figure.Figure(figsize=(11.6, 5.6), layout="constrained")
            draw_sensor(drawing, report, sensor, known, unit, overview=True)
        name = escape(report.sensors[sensor])
        drawings.append(
            f'<figure class="wide" aria-label="Readings and p-values of {name}"><figcaption><b>{name}</b> '
            f"{escape(_verdicts(report, sensor))}</figcaption>{svg(drawing, f'sensor{sensor}')}</figure>"
        )
    return "".join(drawings)


def _map_guide(report: Judged) -> str:
    laid_out = report.panel.positions is None or not np.isfinite(report.panel.positions).all()
    where = "Sensors without positions are laid out so that neighbours lie together." if laid_out else ""
    return (
        "The darker a sensor, the more of its readings were alarms; the sensors shown above have a thick rim. "
        "A sensor that is much darker than the others is worth a visit. " + where
    )


def _network(report: Judged, shown: Sequence[int]) -> str:
    matplotlib = load_matplotlib()
    with matplotlib.rc_context(STYLE):
        drawing = matplotlib.figure.Figure(figsize=(6.6, 5.6), layout="constrained")
        draw_map(drawing.subplots(), report, shown)
    picture = svg(drawing, "map")
    for k in range(len(report.sensors)) if len(report.sensors) <= SINGLE else ():
        tip = f"<title>{escape(report.sensors[k])}: {escape(_verdicts(report, k))}</title>"
        picture = picture.replace(f'<g id="sensor-{k}">', f'<g id="sensor-{k}">{tip}', 1)
    return f'<div class="split"><figure aria-label="Map of the network">{picture}</figure>{_ranking(report)}</div>'


def _verdicts(report: Judged, sensor: int) -> str:
    alarms = report.alarms[:, sensor]
    n_alarms, n_tested = int(alarms.sum()), int((np.isfinite(report.p_values[:, sensor]) | alarms).sum())
    if not n_tested:
        return "no verdicts"
    return f"{n_alarms:,} alarms in {n_tested:,} readings ({percent(n_alarms / n_tested)})"


def _ranking(report: Judged, n: int = 10) -> str:
    share, n_tested = shares(report)
    order = [k for k in np.argsort(-share, kind="stable").tolist() if n_tested[k]][:n]
    most = max((share[k] for k in order), default=0.0) or 1.0
    rows = "".join(
        f"<tr><th>{escape(report.sensors[k])}</th>"
        f'<td class="bar"><i style="width:{100 * share[k] / most:.0f}%"></i></td><td>{percent(share[k])}</td>'
        f"<td>{int(report.alarms[:, k].sum()):,} of {n_tested[k]:,}</td>"
        f"<td>{_smallest(report.p_values[:, k])}</td></tr>"
        for k in order
    )
    return (
        '<div class="ranking"><table><thead><tr><th>Sensor</th><th colspan="2">Share of alarms</th><th>Alarms</th>'
        f"<th>Smallest p</th></tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _smallest(p: Floats) -> str:
    smallest = float(np.fmin.reduce(p))
    return "" if np.isnan(smallest) else f"{smallest:.1g}" if smallest < 0.01 else f"{smallest:.2g}"


def _episode_guide(report: Judged) -> str:
    return (
        "Alarms of the same sensor or of neighbours, a few ticks apart, are one episode. Strongest first. "
        f"At an alarm level of {asked(report)}, weak and short ones are often chance."
        if report.episodes
        else "No alarm, no episode."
    )
