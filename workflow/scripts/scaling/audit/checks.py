"""What cannot be right, or is easily misread, in a study's derived tables.

A check is a function from the study to its findings; its name is the `check` column of audit.csv,
its docstring says what it judges and how. A new check is a new function in `CHECKS`; those on
what no machine can do are in `audit.limits`.

Severities: `error` - a table contradicts a definition; `warning` - the arithmetic holds but the
result is physically implausible, so the estimate behind it does not measure what it is named for;
`info` - true, and to be kept in mind when reading it, as is an implausible result that noise or
the definition itself explains.
"""

from typing import Any

import pandas as pd

from scaling.audit import limits
from scaling.audit.finding import TOLERANCE, Check, Study, findings
from scaling.core.grid import CELL_KEYS
from scaling.tables import schema
from scaling.tables.communication import SUBTRACTIONS
from scaling.tables.limits import GB


def parts_differ_from_total(study: Study) -> pd.DataFrame:
    """compute + communication = total, within rounding, for every estimate."""
    table = study.communication
    parts = table["compute_seconds"] + table["communication_seconds"]
    message = table["estimate"] + ": compute + communication is not the total"
    return _differing(table, message, parts, table["total_seconds"])


def bytes_not_multiplied_by_iterations(study: Study) -> pd.DataFrame:
    """bandwidth · communication seconds of an epoch = bytes per iteration · iterations.

    The iterations are the timing table's. One iteration's bytes over one epoch's seconds is the
    commonest published mistake.
    """
    iterations = study.timing[[*CELL_KEYS, "iterations"]]
    table = study.bandwidth.drop(columns="iterations").merge(iterations, how="left", on=CELL_KEYS)
    moved = table["bandwidth_gb_per_s"] * GB * table["communication_seconds"]
    message = ": the bandwidth is not that of bytes per iteration times iterations (in bytes)"
    expected = table["bytes_per_iteration"] * table["iterations"]
    return _differing(table, table["estimate"] + message, moved, expected)


def two_baselines(study: Study) -> pd.DataFrame:
    """One T(1,b) for one batch size, wherever it is used.

    Gathered from the timing table's 1-GPU rows, the speedup table's baseline, and N · compute of
    each estimate by subtraction (with and without loading are two different times).
    """
    uses = [study.speedup.assign(of="epoch_seconds", seconds=study.speedup.baseline_epoch_seconds)]
    for estimate, column in SUBTRACTIONS.items():
        single = study.timing[study.timing["gpus"] == 1]
        parts = study.communication[study.communication["estimate"] == estimate]
        uses.append(single.assign(of=column, seconds=single[column]))
        uses.append(parts.assign(of=column, seconds=parts["gpus"] * parts["compute_seconds"]))
    table = pd.concat([use[[*CELL_KEYS, "of", "seconds"]] for use in uses])
    groups = table.groupby(["recipe", "strategy", "batch_size", "of"], as_index=False)
    spread = groups.agg(low=("seconds", "min"), high=("seconds", "max")).assign(gpus=1)
    message = "two different single-GPU times used for one b (" + spread["of"] + ")"
    return _differing(spread, message, spread["high"], spread["low"])


def batch_exceeds_dataset(study: Study) -> pd.DataFrame:
    """A global batch N·b larger than the training set cannot be drawn, so it has no time."""
    timed = study.timing[study.timing["epoch_seconds"].notna()]
    samples = timed["gpus"] * timed["batch_size"]
    rows = timed[samples > study.train_images]
    message = "a time for a global batch larger than the training set"
    return findings(rows, "error", message, samples, study.train_images)


def loading_does_not_add_up(study: Study) -> pd.DataFrame:
    """epoch_seconds = epoch_seconds_without_loading + loader_seconds, none of them below 0."""
    table = study.timing
    whole, without = table["epoch_seconds"], table["epoch_seconds_without_loading"]
    message = "the time without loading and the loading are not the epoch's time"
    differing = _differing(table, message, without + table["loader_seconds"], whole)
    below = table[table["loader_seconds"] < -TOLERANCE * whole]
    longer = "the epoch is longer without loading than with"
    return pd.concat([differing, findings(below, "error", longer, without, whole)])


def single_measurement(study: Study) -> pd.DataFrame:
    """A count of 1 is no median, its spread is unknown; at least 3 epochs are asked for."""
    once = study.timing[study.timing["count"] == 1]
    return findings(once, "info", "measured once; at least 3 epochs are asked for", 1, 3)


CHECKS: list[Check] = [
    parts_differ_from_total,
    *limits.CHECKS,
    bytes_not_multiplied_by_iterations,
    two_baselines,
    batch_exceeds_dataset,
    loading_does_not_add_up,
    single_measurement,
]


def audit(study: Study) -> pd.DataFrame:
    """Every finding of every check; no rows when there is nothing to say."""
    found = [check(study).assign(check=check.__name__) for check in CHECKS]
    rows = [row for each in found for row in each.to_dict("records")]
    return schema.arrange("audit", rows).astype({"found": float, "expected": float})


def _differing(
    table: pd.DataFrame, message: Any, found: pd.Series, expected: pd.Series
) -> pd.DataFrame:
    """An error for each row whose two figures, both known, differ by more than rounding."""
    different = (found - expected).abs() > TOLERANCE * expected.abs()
    return findings(table, "error", message, found, expected)[different]
