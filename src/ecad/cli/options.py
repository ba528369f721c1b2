"""settings, parameters of `read_panel` -> tables of options, and the options that several commands take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, NamedTuple

import typer

from .. import settings


class Row(NamedTuple):
    """One option of a table of options."""

    name: str
    option: str
    meaning: str
    default: str | None = None  # as shown


READING = (
    Row("layout", "--layout", '"wide" (one column a sensor) or "long" (time, sensor, value)', "auto"),
    Row("time", "--time-column", "name of the column of times, where it is not the usual one"),
    Row("sensor", "--sensor-column", "long data: name of the column of sensors", "sensor"),
    Row("value", "--value-column", "long data: name of the column of readings", "value"),
    Row("sensors", "--sensors", "names of the sensors to keep, with commas between them"),
    Row("step", "--step", 'time from tick to tick, like "15min"; inferred when not stated'),
    Row("time_zone", "--time-zone", 'zone of times that state none, like "Europe/Berlin"'),
    Row("time_unit", "--time-unit", 'unit of times that are numbers since 1970: "s", "ms", ...'),
    Row("time_format", "--time-format", 'how times are written, like "%d.%m.%Y %H:%M"'),
    Row(
        "duplicates",
        "--duplicates",
        'different readings for one sensor and time: "first", "last", "mean"',
        "error",
    ),
    Row("non_numeric", "--non-numeric", '"missing": cells that are no numbers count as missing', "error"),
    Row(
        "missing_values",
        "--missing-values",
        'readings that mean "missing", like -9999, with commas between them',
    ),
    Row("decimal", "--decimal", "decimal point in texts", "."),
    Row("thousands", "--thousands", "separator of thousands in texts"),
    Row("begin", "--from", "leave out times before this one"),
    Row("end", "--until", "leave out this time and later ones"),
)
PLACES = (
    Row("positions", "--positions", "file with sensor and lon, lat (or x, y)"),
    Row("adjacency", "--adjacency", "file of edges between sensors: a, b, and a weight, smaller is nearer"),
    Row("geometry", "--geometry", '"lonlat" or "xy", where the columns of the positions do not say'),
)
SETTINGS = tuple(
    Row(row.name, "--" + row.name.replace("_", "-"), row.meaning, str(row.default).lower())
    for row in settings.SETTINGS
)
TABLES: dict[str, tuple[str, Sequence[Row]]] = {
    "reading": ("How the data is written", READING),
    "places": ("Where the sensors are", PLACES),
    "method": ("Settings of the method", SETTINGS),
}

Words = dict[str, str]  # options as typed

ModelFile = Annotated[
    str, typer.Argument(metavar="MODEL", help="What `ecad fit` or `ecad watch --save` wrote.")
]
Paper = Annotated[bool, typer.Option("--paper", help="Start from the paper's settings, for comparison.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document, for machines.")]
