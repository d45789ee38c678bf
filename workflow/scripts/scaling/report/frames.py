"""Tables of the report that are no tables of the study: joins, selections and summaries."""

from collections.abc import Callable
from typing import Any

import pandas as pd

from scaling.core import numbers as fmt
from scaling.core.grid import CELL_KEYS
from scaling.registry.datasets.synthetic import ENTRY as SYNTHETIC
from scaling.report import frames_quantization as part_b
from scaling.report import gpu_counts
from scaling.tables import accuracy, noise
from scaling.tables.communication import MOVING, preferred_estimates
from scaling.tables.schema import StudyTables, by_configuration, rows_of

SEVERITIES = {"error": "error", "warning": "warning", "info": "remark"}
IDENTICAL = "identical"
LEARNS = 0.02
"""The largest loss in test accuracy to the reference of a cell that learns."""
OF_A_RUN = [
    *("recipe", "strategy", "gpus", "batch_size", "seed", "status", "measured_as", "training"),
    *("recipe_options", "compiled_batch_sizes", "cpu_threads", "device_ids", "slurm_job_id"),
    *("slurm_gpus", "config_digest", "started", "ended", "repeat"),
]
"""Columns of provenance.csv that differ between runs of one environment."""


def label(row: Any) -> str:
    """Return `tuned/ddp, 2 × 512`; one GPU has no strategy."""
    configuration = row.recipe if row.gpus == 1 else f"{row.recipe}/{row.strategy}"
    return f"{configuration}, {int(row.gpus)} × {int(row.batch_size)}"


def frame(tables: StudyTables, name: str) -> pd.DataFrame:
    """Return the frame called `name`: one of `FRAMES`, or else a table of the study."""
    return FRAMES[name](tables) if name in FRAMES else getattr(tables, name)


def cells(tables: StudyTables) -> pd.DataFrame:
    """Return one row for each cell of the grid: times, speedup, shares of its epoch, accuracy.

    For accuracies see `accuracy.compare_batches`; there are none for random images. `shared` marks
    a single-GPU cell that uses another strategy's measurement.
    """
    ratios = ["speedup", "speedup_min", "speedup_max", "efficiency", "within_spread", "note"]
    found = tables.timing.merge(tables.speedup[[*CELL_KEYS, *ratios]], how="left", on=CELL_KEYS)
    used = tables.utilization.drop(columns="count")
    found = found.merge(used, how="left", on=[*CELL_KEYS, "status"])
    odd = tables.epoch_parts[tables.epoch_parts["communication_seconds"] < 0]
    odd = odd.assign(communication_note=odd["note"].str.split("; ").str[0])
    found = found.merge(odd[[*CELL_KEYS, "communication_note"]], how="left", on=CELL_KEYS)
    learned = accuracy.compare_batches(tables.timing, tables.accuracy)
    if len(learned) and tables.manifest["source"] != SYNTHETIC.name:
        learned = learned.rename(columns={"within_spread": "accuracy_within_spread"})
        found = found.merge(learned.drop(columns="status"), how="left", on=CELL_KEYS)
    runs = tables.provenance.drop_duplicates(CELL_KEYS)
    runs = runs.assign(shared=runs["measured_as"].fillna("") != "")
    runs = runs[[*CELL_KEYS, "slurm_job_id", "slurm_gpus", "shared"]]
    found = found.merge(runs, how="left", on=CELL_KEYS)
    found["shared"] = found["shared"].eq(True)
    costs = [*CELL_KEYS, "peak_memory_bytes", "memory_capacity_bytes", "drift", "settled"]
    costs += ["joules_per_image", "money_per_epoch"]
    return found.merge(tables.costs[costs], how="left", on=CELL_KEYS)


def fastest(cells: pd.DataFrame) -> Any | None:
    """Return the cell with the shortest epoch, or None."""
    timed = cells[cells["status"] == "ok"].dropna(subset="epoch_seconds")
    return next(timed.sort_values("epoch_seconds").itertuples(), None)


def learned(cells: pd.DataFrame) -> pd.Series:
    """Return for each cell whether its mean accuracy is within `LEARNS` of its reference's."""
    return cells["reference"].eq(True) | (cells["difference"] >= -LEARNS)


def how_many_gpus(tables: StudyTables) -> pd.DataFrame:
    """Return each number of GPUs at the batch size of the fastest cell on one that learned.

    Where no accuracy is known it is the fastest cell on one. See `gpu_counts.rows`.
    """
    found = cells(tables)
    alone = found[found["gpus"] == 1]
    good = alone[learned(alone)] if "reference" in found else alone
    chosen = {
        (recipe, strategy): row.batch_size
        for recipe, strategy, own in by_configuration(alone)
        if (row := fastest(own[own.index.isin(good.index)]) or fastest(own))
    }
    return pd.DataFrame(gpu_counts.rows(found, tables.startup, chosen))


def strategies(tables: StudyTables) -> pd.DataFrame:
    """Return the multi-GPU cells with the bytes of a step, if there are three strategies."""
    sent = tables.bandwidth[[*CELL_KEYS, "bytes_per_iteration"]].drop_duplicates(CELL_KEYS)
    found = cells(tables).merge(sent, how="inner", on=CELL_KEYS)
    return found if found["strategy"].nunique() > 2 else found.iloc[:0]


def recipes(tables: StudyTables) -> pd.DataFrame:
    """Return pairs of recipes on one cell; see `accuracy.compare_recipes`."""
    return accuracy.compare_recipes(tables.accuracy)


def remedies(tables: StudyTables) -> pd.DataFrame:
    """Return the techniques, by global batch."""
    return tables.remedies.sort_values("global_batch", kind="stable")


def communication_estimates(tables: StudyTables) -> pd.DataFrame:
    """Return every estimate of each cell's communication with a value, and whether it is noise."""
    found = noise.with_uncertainty(tables.communication, tables.timing)
    return found[found["communication_seconds"].notna()]


def bandwidth_estimates(tables: StudyTables) -> pd.DataFrame:
    """Return the bandwidth of each cell by its preferred estimate."""
    return preferred_estimates(tables.bandwidth, MOVING)


def orders(tables: StudyTables) -> pd.DataFrame:
    """Summarize what each sampler drew: extremes over ranks, seeds and epochs."""
    rows = []
    for key, same in tables.sampler.groupby(["sampler", "gpus", "set_epoch"], sort=False):
        chains = same.groupby(["trained", "seed", "rank"])["first_epoch"].nunique()
        row = dict(zip(("sampler", "gpus", "set_epoch"), key, strict=True))
        row |= {"epochs": same["epoch"].nunique(), "different": fmt.whole_span(chains, "–")}
        spans = ("overlap", "unseen", "repeated")
        rows.append(row | {name: fmt.whole_span(same[name], "–") for name in spans})
    return pd.DataFrame(rows)


def messages(tables: StudyTables) -> pd.DataFrame:
    """Return the messages of the start and of the last recorded step, by mode and content."""
    known = tables.collectives
    known = known[known["bytes"].notna()]
    last = known.groupby("way")["step"].transform("max")
    shown = known[known["step"].eq(0) | known["step"].eq(last)]
    groups = shown.groupby(["way", "phase", "kind", "content"], sort=False)
    return groups.agg(
        messages=("bytes", "size"),
        bytes=("bytes", "sum"),
        gradient_bytes=("gradient_bytes", "first"),
    ).reset_index()


def ranks(tables: StudyTables) -> pd.DataFrame:
    """Return one row for each buffer mode: whether ranks end equal, and their differences."""
    known = tables.buffers
    groups = known[known["rank"].notna()].groupby("buffers", sort=False)
    found = groups.first()
    return found.assign(
        parameters=groups["parameters_sha256"].agg(_alike),
        hashes=groups["buffers_sha256"].agg(_alike),
        lowest=groups["test_accuracy"].min(),
        highest=groups["test_accuracy"].max(),
    ).reset_index()


def _alike(hashes: pd.Series) -> str:
    return IDENTICAL if hashes.nunique() == 1 else f"{hashes.nunique()} different"


def shown_once(cells: pd.DataFrame) -> pd.DataFrame:
    """Return `cells`, with single-GPU cells that share a measurement once for each recipe."""
    return cells[~cells["shared"]]


def startup_medians(tables: StudyTables) -> pd.DataFrame:
    """Return the seconds of a run by phase, at each configuration's median batch size."""
    runs = tables.startup[tables.startup["run_seconds"].notna()]
    return runs.groupby(CELL_KEYS[:3], sort=False).median(numeric_only=True).reset_index()


def findings(tables: StudyTables) -> pd.DataFrame:
    """Return the audit's findings, errors first, merged by message and severity."""
    rows = []
    for severity, name in SEVERITIES.items():
        own = tables.audit[tables.audit["severity"] == severity]
        for message, same in own.groupby("message", sort=False):
            first = fmt.distinguishable(same["found"].iloc[0], same["expected"].iloc[0])
            places = [
                "whole study" if pd.isna(row.gpus) else fmt.cell_name(row) for row in rows_of(same)
            ]
            more = f" and {len(places) - 1} more" if len(places) > 1 else ""
            figures = dict(zip(("found", "expected"), first, strict=True))
            rows.append({"severity": name, "message": message, "cells": places[0] + more} | figures)
    return pd.DataFrame(rows)


def environments(tables: StudyTables) -> pd.DataFrame:
    """Return a row for each known property of an environment, and each environment."""
    runs = tables.provenance[tables.provenance["status"] != "missing"]
    kept = [str(column) for column in runs if column not in OF_A_RUN]
    rows = []
    for number, (_, same) in enumerate(runs.groupby(kept, sort=False), start=1):
        first = same.iloc[0]
        facts = {"runs": str(len(same)), "first start": same["started"].min()}
        facts |= {column: str(first[column]) for column in kept if first[column]}
        rows += [
            {"environment": f"E{number}", "property": name.replace("_", " "), "value": value[:60]}
            for name, value in facts.items()
        ]
    return pd.DataFrame(rows)


def audit_counts(audit: pd.DataFrame) -> str:
    """Return `1 error, 2 warnings, 1 remark`, or `no findings`."""
    found = audit["severity"].value_counts()
    parts = [fmt.plural(found[key], name) for key, name in SEVERITIES.items() if key in found]
    return ", ".join(parts) or "no findings"


FRAMES: dict[str, Callable[[Any], pd.DataFrame]] = {
    made.__name__: made
    for made in (
        *(
            cells,
            how_many_gpus,
            strategies,
            startup_medians,
            recipes,
            remedies,
            communication_estimates,
        ),
        *(bandwidth_estimates, orders, messages, ranks, findings),
        *(environments, *part_b.FRAMES),
    )
}
"""Functions from a study's tables to a frame, by name."""
