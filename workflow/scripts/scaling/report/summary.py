"""The facts of the report's summary, from the tables of a study.

The sentences are in report/sections/summary.html.j2. A fact is None where a table lacks the
evidence for it; the sentence then says what is missing.
"""

from collections.abc import Callable
from typing import Any

import pandas as pd

from scaling.claims.claim_tables import measured, row_at
from scaling.config.scheme import STAGES
from scaling.core import numbers as fmt
from scaling.core.grid import CELL_KEYS
from scaling.report.sections.audit import counts
from scaling.tables import accuracy as learning
from scaling.tables import noise
from scaling.tables.experiments.quantization_cost import cost
from scaling.tables.schema import StudyTables
from scaling.tables.timing import PHASE_COLUMNS

TRACE = "profiler"
PREFERRED = [TRACE, "subtraction_without_loading"]
Facts = dict[str, Any] | None


def summary(tables: StudyTables) -> dict[str, Any]:
    """Every fact of the summary, by the name of its function."""
    return {fact.__name__: fact(tables) for fact in FACTS}


def outcome(tables: StudyTables) -> Facts:
    """Count the cells by status."""
    found = tables.timing["status"].value_counts(sort=False)
    others = [f"{count} {status}" for status, count in found.items() if status != "ok"]
    statuses = [f"{found.get('ok', 0)} ok", *others]
    return {"cells": int(found.sum()), "statuses": statuses} if len(found) else None


def fastest(tables: StudyTables) -> Facts:
    """Find the cell with the shortest epoch, and those that cannot be told from it."""
    cells = measured(tables.timing, "epoch_seconds").sort_values("epoch_seconds")
    if cells.empty:
        return None
    best, *others = cells.itertuples()
    low, high = best.epoch_seconds_min, best.epoch_seconds_max
    ties = [
        row
        for row in others
        if min(best.count, row.count) > 1
        and noise.ranges_overlap(row.epoch_seconds_min, row.epoch_seconds_max, low, high)
    ]
    return {"best": best, "ties": ties[:2], "more": len(ties[2:])}


def best_speedup(tables: StudyTables) -> Facts:
    """Find the best speedup over one GPU and the best efficiency."""
    cells = measured(tables.speedup, "speedup")
    cells = cells[cells["gpus"] > 1]
    if cells.empty:
        return None
    fast, efficient = (
        row_at(cells, cells["speedup"].idxmax()),
        row_at(cells, cells["efficiency"].idxmax()),
    )
    return {
        "fast": fast,
        "efficient": None if efficient.Index == fast.Index else efficient,
        "noisy": int(cells["within_spread"].sum()),
        "cells": len(cells),
    }


def communication(tables: StudyTables) -> Facts:
    """Find the share of communication in the fastest cell on several GPUs, and over all cells.

    By the trace of the kernels where cells have one: what is left after a subtraction may as well
    be the host's work or ranks that wait for one another's data.
    """
    table = measured(tables.communication, "communication_seconds")
    if table.empty:
        return None
    name = _estimate(table)
    cells = noise.with_resolution(table[table["estimate"] == name], tables.timing)
    cells = cells.assign(share=cells["communication_seconds"] / cells["total_seconds"])
    clear = cells[~cells["within_noise"] & (cells["share"] > 0)]
    return {
        "estimate": _words(name),
        "traced": name == TRACE,
        "untraced": len(table.drop_duplicates(CELL_KEYS)) - len(cells) if name == TRACE else 0,
        "fast": row_at(cells, cells["total_seconds"].idxmin()),
        "most": row_at(clear, clear["share"].idxmax()) if len(clear) else None,
        "doubtful": int(cells["within_noise"].sum()),
        "negative": int((cells["share"] < 0).sum()),
        "cells": len(cells),
    }


def loading(tables: StudyTables) -> Facts:
    """Find the share of waiting for data in the shortest epoch, and the largest of all cells."""
    cells = measured(tables.timing, "loader_seconds")
    if cells.empty:
        return None
    cells = cells.assign(share=cells["loader_seconds"] / cells["epoch_seconds"])
    fast = row_at(cells, cells["epoch_seconds"].idxmin())
    return {"fast": fast, "most": row_at(cells, cells["share"].idxmax())}


def bandwidth(tables: StudyTables) -> Facts:
    """Find the best bandwidth, by the estimate of `communication`, that stands out from noise."""
    table = measured(tables.bandwidth, "bandwidth_gb_per_s")
    if table.empty:
        return None
    name = _estimate(table)
    cells = noise.with_resolution(table[table["estimate"] == name], tables.timing)
    clear = cells[~cells["within_noise"]]
    best = row_at(clear, clear["bandwidth_gb_per_s"].idxmax()) if len(clear) else None
    return {"estimate": _words(name), "best": best}


def utilization(tables: StudyTables) -> Facts:
    """Find the cell that uses most of the measured peak."""
    cells = measured(tables.utilization, "utilization")
    if cells.empty:
        return {"best": None, "peaks": len(tables.peaks)}
    best = row_at(cells, cells["utilization"].idxmax())
    doubt = noise.with_resolution(tables.communication, tables.timing)
    own = doubt["estimate"] == best.communication_estimate
    for key in CELL_KEYS:
        own &= doubt[key] == getattr(best, key)
    return {"best": best, "within_noise": bool(doubt.loc[own, "within_noise"].any())}


def large_batch_accuracy(tables: StudyTables) -> Facts:
    """Hold the accuracy of the largest global batch against the reference cell."""
    if tables.timing.empty:
        return {"row": None, "cells": 0}
    cells = learning.compare_batches(tables.timing, tables.accuracy)
    known = measured(cells, "difference")
    if known.empty:
        return {"row": None, "cells": len(cells)}
    most = known["global_batch_size"].max()
    largest = known[known["global_batch_size"] == most]
    row = next(largest.sort_values("gpus", ascending=False).itertuples())
    same = (cells["recipe"] == row.recipe) & (cells["strategy"] == row.strategy)
    reference = next(cells[same & cells["reference"]].itertuples())
    larger = cells[cells["global_batch_size"] > most]["status"].value_counts()
    return {
        "cells": len(cells),
        "row": row,
        "reference": reference,
        "accuracy": getattr(row, row.difference_of),
        "reference_accuracy": getattr(reference, row.difference_of),
        "larger": [f"{count} {status}" for status, count in larger.items()],
    }


def recipes(tables: StudyTables) -> Facts:
    """Compare the test accuracy of two recipes in the cell nearest to batch 128 on one GPU."""
    pairs = learning.compare_recipes(tables.accuracy)
    if pairs.empty:
        return None
    decided = pairs[pairs["verdict"] != learning.UNDECIDED]
    tested = decided[decided["quantity"] == "test_accuracy"]
    reasons = pairs.loc[pairs["quantity"] == "test_accuracy", "reason"].drop_duplicates()
    if tested.empty:
        return {"row": None, "reasons": list(reasons)}
    tested = tested.assign(other=tested["batch_size"] != learning.REFERENCE_BATCH)
    row = next(tested.sort_values(["gpus", "other", "batch_size"], kind="stable").itertuples())
    return {
        "row": row,
        "agrees": row.verdict == learning.AGREE,
        "agreeing": int((decided["verdict"] == learning.AGREE).sum()),
        "decided": len(decided),
        "undecided": len(pairs) - len(decided),
    }


def quantization(tables: StudyTables) -> Facts:
    """Find what the last stage of quantization costs against float32."""
    table = tables.quantization
    stages = [stage for stage in STAGES[1:] if (table["stage"] == stage).any()]
    if not stages:
        return None
    rows = table[table["stage"] == stages[-1]]
    return {
        "stage": stages[-1],
        "cost": cost(rows),
        "compared": int(rows["logits_compared"].sum()),
        "differing": int(rows["logits_differing"].sum()),
    }


def fixed_cost(tables: StudyTables) -> Facts:
    """Find the share of the run time that is measured epochs, and the longest start-up phases."""
    rows = tables.startup[tables.startup["run_seconds"].notna()]
    if rows.empty:
        return None
    # A run that two strategies share was made once: its seconds agree to the last digit.
    runs = rows.drop_duplicates(["recipe", "gpus", "batch_size", "run_seconds"])
    phases = runs.groupby("recipe", sort=False)[["startup_seconds", *PHASE_COLUMNS]].median()
    return {
        "measured": runs["measured_seconds"].sum(),
        "whole": runs["run_seconds"].sum(),
        "runs": len(runs),
        "represented": len(rows),
        "cells": len(tables.startup),
        "startups": [
            (recipe, one["startup_seconds"], phase.removesuffix("_seconds"), one[phase])
            for recipe, one in phases.iterrows()
            for phase in [str(one[PHASE_COLUMNS].idxmax())]
        ],
    }


def audit(tables: StudyTables) -> str:
    """What the audit found, in a few words."""
    return counts(tables.audit)


FACTS: list[Callable[[StudyTables], Any]] = [
    *(outcome, fastest, best_speedup, communication, loading, bandwidth, utilization),
    *(large_batch_accuracy, recipes, quantization, fixed_cost, audit),
]


def _estimate(table: pd.DataFrame) -> str:
    """The estimate a sentence is about: the first of `PREFERRED` that there is, else the first."""
    names = [str(name) for name in table["estimate"].unique()]
    return next((name for name in PREFERRED if name in names), names[0])


def _words(name: str) -> str:
    return "the profiler’s trace" if name == TRACE else fmt.estimate(name)
