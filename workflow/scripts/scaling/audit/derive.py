"""Everything that follows from the times of a study."""

from collections.abc import Mapping

import pandas as pd

from scaling.tables import schema
from scaling.tables.bandwidth import bandwidth
from scaling.tables.communication import communication
from scaling.tables.epoch_parts import epoch_parts
from scaling.tables.speedup import speedup
from scaling.tables.utilization import of_classes, utilization

MEASURED = [
    *("readings", "in_memory", "ranks", "costs", "device_time", "step_classes"),
    *("interconnect", "interconnect_fit", "peaks", "machine"),
]
"""What only a measured study has beside its times."""


def tables_of_times(
    timing: pd.DataFrame, gradient_bytes: float, measured: Mapping[str, pd.DataFrame]
) -> dict[str, pd.DataFrame]:
    """Return the tables that follow from `timing`, by their names.

    `gradient_bytes` is K, NaN if unknown; `measured` has the tables `MEASURED`, or none of a
    published study, which then has no utilization.
    """
    found = {name: schema.frame(name) for name in MEASURED} | dict(measured)
    parts = communication(timing, measured.get("readings"), measured.get("in_memory"))
    costs = found["costs"]
    derived = {
        "speedup": speedup(timing, costs),
        "communication": parts,
        "bandwidth": bandwidth(timing, parts, found["interconnect"], gradient_bytes, costs),
    }
    if not measured:
        return derived
    epochs = epoch_parts(timing, found["in_memory"], parts)
    limits = utilization(timing, epochs, found["peaks"], costs, found["device_time"])
    classes = of_classes(found["step_classes"], limits, found["peaks"])
    return derived | {"epoch_parts": epochs, "utilization": limits, "step_classes": classes}
