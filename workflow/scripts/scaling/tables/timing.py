"""From run records to seconds per epoch: one row per cell, its seeds pooled."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from statistics import fmean
from typing import Any

import pandas as pd

from scaling.core.grid import CELL_KEYS
from scaling.core.records import RunRecord
from scaling.tables import io, schema
from scaling.tables.io import KEYS
from scaling.tables.runs import Run

COLUMNS = schema.columns("timing")
WORST_FIRST = ["missing", "timeout", "oom", "oom_host", "infeasible", "diverged", "ok"]
TIMED = ("ok", "diverged")
"""Statuses whose measured epochs count: a loss that became NaN takes as long as any other."""


@dataclass(frozen=True)
class Epoch:
    """One epoch over all ranks: the slowest rank's seconds, the longest wait for data.

    `power_capped_seconds` are those of the GPU that was held back longest; None where not counted.
    """

    seconds: float
    loader_seconds: float
    iterations: int
    samples: int
    power_capped_seconds: float | None = None


def measured_epochs(record: RunRecord) -> Iterator[Epoch]:
    """The measured epochs of a run (warm-up and instrumented ones left out), in order.

    `loader_seconds` is that of the rank that waited longest, because the others wait for it in
    the all-reduce: such a stall is loading, not communication. Samples are summed over ranks.
    """
    measured = [row for row in record["epochs"] if row["role"] == "measured"]
    for _, group in groupby(sorted(measured, key=itemgetter("epoch")), itemgetter("epoch")):
        ranks = list(group)
        capped = [rank["power_capped_seconds"] for rank in ranks]
        yield Epoch(
            seconds=max(rank["seconds"] for rank in ranks),
            loader_seconds=max(rank["loader_seconds"] for rank in ranks),
            iterations=ranks[0]["iterations"],
            samples=sum(rank["samples"] for rank in ranks),
            power_capped_seconds=max((held for held in capped if held is not None), default=None),
        )


def summarise(epochs: list[Epoch]) -> dict[str, float]:
    """The median epoch, with minimum, maximum and count; empty when there is no epoch.

    Every figure is of the same epoch (of the mean of the two middle ones for an even count), so
    that epoch_seconds = epoch_seconds_without_loading + loader_seconds. Minimum and maximum are
    over all epochs, with and without loading each for itself.
    """
    if not epochs:
        return {}
    ordered = sorted(epochs, key=lambda epoch: (epoch.seconds, epoch.loader_seconds))
    middle = ordered[(len(ordered) - 1) // 2 : len(ordered) // 2 + 1]
    seconds = fmean(epoch.seconds for epoch in middle)
    loader_seconds = fmean(epoch.loader_seconds for epoch in middle)
    without_loading = [epoch.seconds - epoch.loader_seconds for epoch in epochs]
    return {
        "epoch_seconds": seconds,
        "epoch_seconds_without_loading": seconds - loader_seconds,
        "loader_seconds": loader_seconds,
        "epoch_seconds_min": ordered[0].seconds,
        "epoch_seconds_max": ordered[-1].seconds,
        "epoch_seconds_without_loading_min": min(without_loading),
        "epoch_seconds_without_loading_max": max(without_loading),
        "count": len(ordered),
        "iterations": middle[0].iterations,
        "samples": middle[0].samples,
    }


def timing(runs: list[Run]) -> pd.DataFrame:
    """The table of seconds per epoch: one row per cell, columns `COLUMNS`.

    The status is `ok` when every seed's is, else the worst (`WORST_FIRST`); a run without record
    makes it `missing`. A cell without a timed epoch keeps its row, with empty figures.
    """
    seeds: dict[tuple[Any, ...], list[RunRecord | None]] = {}
    for cell, record in runs:
        seeds.setdefault(tuple(getattr(cell, key) for key in CELL_KEYS), []).append(record)
    rows = [
        dict(zip(CELL_KEYS, key, strict=True)) | _figures(records) for key, records in seeds.items()
    ]
    return io.arrange(pd.DataFrame(rows, columns=COLUMNS), COLUMNS)


def _figures(seeds: list[RunRecord | None]) -> dict[str, Any]:
    records = [record for record in seeds if record is not None]
    statuses = [record["status"] if record else "missing" for record in seeds]
    messages = [record["message"] for record in records if record["message"]]
    if "missing" in statuses:
        messages.append(f"{statuses.count('missing')} of {len(seeds)} runs have no record")
    timed = [record for record in records if record["status"] in TIMED]
    return {
        **dict.fromkeys(COLUMNS[len(KEYS) :], math.nan),
        **summarise([epoch for record in timed for epoch in measured_epochs(record)]),
        "status": min(statuses, key=WORST_FIRST.index),
        "message": "; ".join(dict.fromkeys(messages)),
    }
