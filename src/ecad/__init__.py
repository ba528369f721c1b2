"""ECAD: a p-value for every reading of a sensor network, with a false-alarm rate that you choose.

readings -> Panel -> no holes -> features -> members -> leave-one-out scores -> p-values -> alarms -> episodes
"""

from . import datasets
from ._version import __version__
from .detector import ECAD
from .episodes import Episode
from .errors import EcadError, EcadWarning
from .modelfile import load, save
from .panel import Panel, read_panel
from .report import Report, Verdict
from .tabular import TabularECAD

__all__ = [
    "ECAD",
    "EcadError",
    "EcadWarning",
    "Episode",
    "Panel",
    "Report",
    "TabularECAD",
    "Verdict",
    "__version__",
    "datasets",
    "load",
    "read_panel",
    "save",
]
