"""words typed -> calls of the library -> lines printed. The only place where a command line is parsed.

Nothing is decided here that the library does not decide: the options of `ecad fit` are rows of `settings.SETTINGS`,
those for reading data are the parameters of `read_panel`, and every number that is printed comes from a report, a
verdict or a model. Results go to stdout; warnings, errors and progress go to stderr.

`options` says what may be typed, `command` makes a command of a function, `words` reads what was typed, and `telling`
puts the answer into lines. The commands: `made_up` (demo, simulate), `models` (fit, plan, info), `verdicts` (detect,
plot) and `watched` (watch).
"""

from . import made_up, models, verdicts, watched  # noqa: F401  (imported, they register their commands)
from .command import ALARMS, DATA, EXIT_CODES, EXTRA, app, main
from .options import PLACES, READING, SETTINGS

__all__ = ["ALARMS", "DATA", "EXIT_CODES", "EXTRA", "ORDER", "PLACES", "READING", "SETTINGS", "app", "main"]

ORDER = ("demo", "simulate", "fit", "detect", "watch", "plot", "plan", "info")
app.registered_commands.sort(key=lambda registered: ORDER.index(str(registered.name)))
