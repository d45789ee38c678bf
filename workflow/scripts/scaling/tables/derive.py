"""Everything that follows from the times of a study, measured or published."""

from collections.abc import Mapping

import pandas as pd

from scaling.tables import schema
from scaling.tables.bandwidth import bandwidth
from scaling.tables.communication import communication
from scaling.tables.prediction import predict
from scaling.tables.speedup import speedup
from scaling.tables.utilization import utilization

MEASURED = ["readings", "costs", *(table.name for table in schema.made_by("tables_limits"))]
"""What only a measured study has beside its times."""


def derive(
    timing: pd.DataFrame, gradient_bytes: float, measured: Mapping[str, pd.DataFrame]
) -> dict[str, pd.DataFrame]:
    """The tables that follow from `timing`, by their names.

    `gradient_bytes` is K, NaN where it is not known; `measured` has the tables `MEASURED`, or none
    of a published study, which then has no utilization.
    """
    found = {name: schema.empty(name) for name in MEASURED} | dict(measured)
    parts = communication(timing, measured.get("readings"))
    model, predictions = predict(timing, found["interconnect_fit"], gradient_bytes)
    derived = {
        "speedup": speedup(timing),
        "communication": parts,
        "bandwidth": bandwidth(timing, parts, found["interconnect"], gradient_bytes),
        "prediction": predictions,
        "cost_model": model,
    }
    if measured:
        derived["utilization"] = utilization(timing, parts, found["peaks"], found["costs"])
    return derived
