"""A published study beside everything that follows from its times."""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from scaling.audit.checks import audit
from scaling.audit.finding import Study
from scaling.published.printed import printed_against_derived
from scaling.published.study import PublishedStudy
from scaling.published.timing import published_timing
from scaling.tables import derive as tables
from scaling.tables import schema
from scaling.tables.schema import DerivedTables

TABLES = [
    *("timing", "speedup", "communication", "bandwidth", "prediction", "cost_model"),
    *("audit", "printed"),
]


@dataclass(frozen=True)
class PublishedTables(DerivedTables):
    """The tables of a published study, and what it printed beside what follows from its times."""

    source: PublishedStudy
    printed: pd.DataFrame


def tables_of(source: PublishedStudy, train_images: int) -> dict[str, pd.DataFrame]:
    """The tables `TABLES` of a study, for a training set of `train_images`."""
    times = published_timing(source, train_images)
    found = tables.derive(times, source.gradient_bytes, {})
    speedup, parts, rates = found["speedup"], found["communication"], found["bandwidth"]
    printed = printed_against_derived(source, times, speedup, parts, rates)
    findings = audit(Study(times, speedup, parts, rates, train_images, printed))
    return {"timing": times, **found, "audit": findings, "printed": printed}


def derive(source: PublishedStudy, train_images: int) -> PublishedTables:
    """The tables of a study as if they had been written and read back."""
    found = tables_of(source, train_images)
    within_spread = found["speedup"]["within_spread"].eq(True)
    found["speedup"] = found["speedup"].assign(within_spread=within_spread)
    return PublishedTables(study=source.name, source=source, **found)


def read(source: PublishedStudy, folder: Path) -> PublishedTables:
    """The tables of `source` from `folder`, where the pipeline put them."""
    found = {name: schema.read(name, folder / f"{name}.csv") for name in TABLES}
    return PublishedTables(study=source.name, source=source, **found)
