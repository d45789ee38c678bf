"""Everything that follows from the times of a study, and the audit of it."""

from collections.abc import Mapping

import pandas as pd

from scaling.published.findings import judge
from scaling.published.study import PublishedStudy
from scaling.tables import schema
from scaling.tables.bandwidth import bandwidth
from scaling.tables.communication import communication
from scaling.tables.epoch_parts import epoch_parts
from scaling.tables.speedup import speedup
from scaling.tables.utilization import utilization

MEASURED = [
    "readings",
    "in_memory",
    "ranks",
    "costs",
    "device_time",
    *("interconnect", "interconnect_fit", "peaks", "machine"),
]
"""What only a measured study has beside its times."""


def tables_of_times(
    timing: pd.DataFrame,
    gradient_bytes: float,
    measured: Mapping[str, pd.DataFrame],
) -> dict[str, pd.DataFrame]:
    """The tables that follow from `timing`, by their names.

    `gradient_bytes` is K, NaN where it is not known; `measured` has the tables `MEASURED`, or none
    of a published study, which then has no utilization.
    """
    found = {name: schema.frame(name) for name in MEASURED} | dict(measured)
    parts = communication(timing, measured.get("readings"), measured.get("in_memory"))
    epochs = epoch_parts(timing, found["in_memory"], parts)
    derived = {
        "speedup": speedup(timing),
        "communication": parts,
        "bandwidth": bandwidth(
            timing, parts, found["interconnect"], gradient_bytes, found["costs"]
        ),
    }
    if measured:
        limits = utilization(timing, epochs, found["peaks"], found["costs"], found["device_time"])
        derived |= {"epoch_parts": epochs, "utilization": limits}
    return derived


def tables_of_published(source: PublishedStudy, train_images: int) -> dict[str, pd.DataFrame]:
    """The tables `schema.PUBLISHED` of a study, for a training set of `train_images`."""
    times = source.timing(train_images)
    found = tables_of_times(times, source.gradient_bytes, {})
    judged = judge(source, train_images).rename(columns={"cause": "check", "sentence": "message"})
    expected = (judged["expected_low"] + judged["expected_high"]) / 2
    audit = schema.arrange("audit", judged.assign(recipe=source.model, expected=expected))
    return {"timing": times, **found, "audit": audit.astype({"found": float, "expected": float})}
