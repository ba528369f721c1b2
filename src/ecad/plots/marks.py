"""verdicts -> their marks: one colour and one shape for each kind of reading, in every picture and in the legend."""

from __future__ import annotations

from dataclasses import dataclass

from .judged import Booleans, Judged, Known


@dataclass(frozen=True)
class Mark:
    """How one kind of reading is shown, in every picture and in the legend."""

    label: str
    colour: str
    shape: str
    hollow: bool = False


INK, SOFT, FAINT, LINE = "#1d2b36", "#5b6b78", "#a9b4bd", "#dde3e7"
BLUE, BAND, TRUTH, HOLIDAY = "#0072b2", "#cfe6f4", "#f6e7b0", "#e8ebee"
ALARM = Mark("alarm", "#d55e00", "o")
HIT = Mark("alarm on an anomaly", "#009e73", "o")
FALSE = Mark("false alarm", "#d55e00", "X")
EXCUSED = Mark("alarm on a holiday", "#4f6d8c", "s")
MISSED = Mark("anomaly without an alarm", "#8e3a80", "D", hollow=True)


def marks(report: Judged, known: Known) -> list[tuple[Mark, Booleans]]:
    """Each kind of mark with its readings (time, sensor), the most telling last."""
    alarms, holiday, truth = report.alarms, known.holidays[:, None], known.anomalies
    if truth is None:
        return [(EXCUSED, alarms & holiday), (ALARM, alarms & ~holiday)]
    return [
        (EXCUSED, alarms & ~truth & holiday),
        (MISSED, truth & ~alarms),
        (FALSE, alarms & ~truth & ~holiday),
        (HIT, alarms & truth),
    ]


def kinds(known: Known) -> list[Mark]:
    """The marks that the legend explains."""
    kinds = [ALARM] if known.anomalies is None else [HIT, FALSE, MISSED]
    return [*kinds, EXCUSED] if known.holidays.any() else kinds


def grounds(known: Known) -> list[tuple[str, str]]:
    """The shadings that the legend explains: name and colour."""
    grounds = [] if known.anomalies is None else [("known anomaly", TRUTH)]
    return [*grounds, ("holiday", HOLIDAY)] if known.holidays.any() else grounds


def symbol_of(mark: Mark) -> str:
    """A mark as SVG shapes, 20 wide and 13 high."""
    if mark.shape == "o":
        return f'<circle cx="10" cy="6.5" r="4.5" fill="{mark.colour}"/>'
    if mark.shape == "s":
        return f'<rect x="6" y="2.5" width="8" height="8" fill="{mark.colour}"/>'
    if mark.shape == "D":
        return f'<path d="M10 1.5 L15 6.5 L10 11.5 L5 6.5 Z" fill="white" stroke="{mark.colour}" stroke-width="1.7"/>'
    return f'<path d="M6 2.5 L14 10.5 M14 2.5 L6 10.5" stroke="{mark.colour}" stroke-width="3"/>'
