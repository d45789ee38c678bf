"""Everything that follows from the times of a study, and the audit of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from scaling.audit.checks import audit
from scaling.audit.finding import Study
from scaling.published.printed import printed_against_derived
from scaling.published.study import PublishedStudy
from scaling.tables import schema
from scaling.tables.bandwidth import bandwidth
from scaling.tables.communication import communication
from scaling.tables.epoch_parts import epoch_parts
from scaling.tables.prediction.predict import predict
from scaling.tables.schema import DerivedTables
from scaling.tables.speedup import speedup
from scaling.tables.utilization import utilization

MEASURED = [
    "readings",
    "in_memory",
    "ranks",
    "costs",
    *(table.name for table in schema.made_by("tables_limits")),
]
"""What only a measured study has beside its times."""


def tables_of_times(
    timing: pd.DataFrame,
    gradient_bytes: float,
    measured: Mapping[str, pd.DataFrame],
    gpus_per_node: int | None = None,
    between_nodes_gb_per_s: float | None = None,
) -> dict[str, pd.DataFrame]:
    """The tables that follow from `timing`, by their names.

    `gradient_bytes` is K, NaN where it is not known; `measured` has the tables `MEASURED`, or none
    of a published study, which then has no utilization; the last two are those of `predict`.
    """
    found = {name: schema.frame(name) for name in MEASURED} | dict(measured)
    parts = communication(timing, measured.get("readings"), measured.get("in_memory"))
    epochs = epoch_parts(timing, found["in_memory"], parts)
    work = epochs["work_seconds"] if measured else timing["epoch_seconds_without_loading"]
    times = timing.assign(work_seconds=work)
    derived = {
        "speedup": speedup(timing),
        "communication": parts,
        "bandwidth": bandwidth(timing, parts, found["interconnect"], gradient_bytes),
        **predict(
            times,
            found["interconnect_fit"],
            gradient_bytes,
            gpus_per_node,
            between_nodes_gb_per_s,
        ),
    }
    if measured:
        limits = utilization(timing, epochs, found["peaks"], found["costs"])
        derived |= {"epoch_parts": epochs, "utilization": limits}
    return derived


@dataclass(frozen=True)
class PublishedTables(DerivedTables):
    """The tables `schema.PUBLISHED` of a published study."""

    source: PublishedStudy


def tables_of_published(source: PublishedStudy, train_images: int) -> dict[str, pd.DataFrame]:
    """The tables `schema.PUBLISHED` of a study, for a training set of `train_images`."""
    times = source.timing(train_images)
    found = tables_of_times(times, source.gradient_bytes, {})
    speedup, parts, rates = found["speedup"], found["communication"], found["bandwidth"]
    printed = printed_against_derived(source, times, found)
    findings = audit(Study(times, speedup, parts, rates, train_images, printed))
    return {"timing": times, **found, "audit": findings, "printed": printed}


def derive(source: PublishedStudy, train_images: int) -> PublishedTables:
    """The tables of a study, without the files that a pipeline would write them to."""
    return PublishedTables(source.name, tables_of_published(source, train_images), source)


def read(source: PublishedStudy, folder: Path) -> PublishedTables:
    """The tables of `source` from `folder`, where the pipeline put them."""
    found = schema.read_all(schema.PUBLISHED, folder.parent, folder.name)
    return PublishedTables(source.name, found, source)
