"""A published study beside everything that follows from its times."""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from scaling.audit.checks import audit
from scaling.audit.finding import Study
from scaling.published import printed
from scaling.published.study import PublishedStudy
from scaling.published.timing import published_timing
from scaling.tables import schema
from scaling.tables.bandwidth import bandwidth
from scaling.tables.communication import communication
from scaling.tables.derived import DerivedTables
from scaling.tables.interconnect import fit, interconnect
from scaling.tables.prediction import predict
from scaling.tables.speedup import speedup


@dataclass(frozen=True)
class PublishedTables(DerivedTables):
    """The tables of a published study, and what it printed beside what follows from its times."""

    source: PublishedStudy
    printed: pd.DataFrame


def derive(source: PublishedStudy, train_images: int) -> PublishedTables:
    """Everything that follows from a study's times, for a training set of `train_images`."""
    times = published_timing(source, train_images)
    speedups, parts = speedup(times), communication(times)
    rates = bandwidth(times, parts, interconnect([]), source.gradient_bytes)
    figures = printed.printed_against_derived(source, times, speedups, parts, rates)
    sweep_fit = fit(interconnect([]))
    model, predictions = predict(times, sweep_fit, source.gradient_bytes)
    found = audit(Study(times, speedups, parts, rates, train_images, figures))
    return PublishedTables(
        study=source.name,
        timing=times,
        # None, "nothing to compare", reads as no statement, as in a table that was read back.
        speedup=speedups.assign(within_spread=speedups["within_spread"].eq(True)),
        communication=parts,
        bandwidth=rates,
        audit=found,
        prediction=predictions,
        cost_model=model,
        source=source,
        printed=figures,
    )


def read(source: PublishedStudy, folder: Path) -> PublishedTables:
    """The tables of `source` from `folder`, where the pipeline put them."""
    names = ["timing", "speedup", "communication", "bandwidth", "audit"]
    names += ["prediction", "cost_model"]
    found = {name: schema.read(name, folder / f"{name}.csv") for name in names}
    return PublishedTables(
        study=source.name,
        source=source,
        printed=printed.read(folder / "printed.csv"),
        **found,
    )
