"""matplotlib -> itself when something is drawn, our style, and a drawing as inline SVG."""

from __future__ import annotations

import io
import re
from typing import Any

from ..errors import MissingExtra
from .marks import FAINT, INK, SOFT

STYLE: dict[str, Any] = {
    "font.size": 9.5,
    "text.color": INK,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": SOFT,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "xtick.color": FAINT,
    "ytick.color": FAINT,
    "xtick.labelcolor": SOFT,
    "ytick.labelcolor": SOFT,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "legend.frameon": False,
}


def load_matplotlib() -> Any:
    """Imported when something is drawn: detecting needs no pictures."""
    try:
        import matplotlib
        import matplotlib.colors
        import matplotlib.dates
        import matplotlib.figure
        import matplotlib.lines
        import matplotlib.ticker
    except ImportError as error:
        raise MissingExtra("matplotlib", "plot", "drawing a report") from error
    return matplotlib


def svg(drawing: Any, name: str) -> str:
    """Inline SVG that takes the page's width and fonts."""
    matplotlib = load_matplotlib()
    buffer = io.StringIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    with matplotlib.rc_context({**STYLE, "svg.fonttype": "none", "svg.hashsalt": name}):
        drawing.savefig(buffer, format="svg", metadata=nothing, dpi=180)
    text = buffer.getvalue()
    head, body = text[text.index("<svg") :].split(">", 1)
    box = head.split('viewBox="', 1)[1].split('"', 1)[0]
    return f'<svg viewBox="{box}" role="img">{_numbered(body.strip(), name)}'


def _numbered(svg: str, name: str) -> str:
    """Ids in the order they come: matplotlib's hang on the last bit of the layout, and two drawings share a page."""
    numbers: dict[str, str] = {}

    def number(match: re.Match[str]) -> str:
        return numbers.setdefault(match[0], f"{name}-{len(numbers) + 1}")

    return re.sub(r'(?<=["#])[A-Za-z]*[0-9a-f]{10}(?=["_)])', number, svg)
