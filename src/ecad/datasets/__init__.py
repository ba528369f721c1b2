"""made-up road networks whose truth is known, and known anomalies in readings of one's own.

Three things can be made here, and they answer three questions.

`simulate`       a city's traffic with everything that makes real sensors hard (rush hours, weather, holidays, holes,
                 anomalies): what does the detector find?
`simulate_null`  a profile plus stationary Gaussian errors and nothing else: is p what it says it is?
`plant`          known anomalies in readings of one's own: what would it have found there?
"""

from .anomalies import KINDS, PlantedEvent, Simulation, plant
from .cities import HOLIDAYS, simulate, simulate_null
from .holes import with_holes

__all__ = [
    "HOLIDAYS",
    "KINDS",
    "PlantedEvent",
    "Simulation",
    "plant",
    "simulate",
    "simulate_null",
    "with_holes",
]
