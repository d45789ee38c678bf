"""What cannot be right, or is easily misread, in a study's derived tables.

A check is a function from the study to its findings; its name is the `check` column of audit.csv,
its docstring says what it judges and how. A new check is a new function in `CHECKS`; those on
figures that a document printed are in `scaling.audit_printed`.

Severities: `error` - a table contradicts a definition; `warning` - the arithmetic holds but the
result is physically implausible, so the estimate behind it does not measure what it is named for;
`info` - true, and to be kept in mind when reading it.
"""

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import wraps
from typing import Any

import pandas as pd

from scaling import audit_printed, printed, tables, utilization
from scaling.audit_finding import Finding, finding
from scaling.communication import SUBTRACTIONS
from scaling.grid import CELL_KEYS
from scaling.speedup import VIEWS
from scaling.tables import GB

COLUMNS = [
    *("check", "recipe", "strategy", "gpus", "batch_size"),
    *("severity", "message", "found", "expected"),
]
TOLERANCE = 1e-6
"""Relative difference that rounding explains: far above float noise, far below any real mistake."""
COMMUNICATION_FACTOR = 2.0
"""Largest over smallest communication time of an iteration that noise may explain: subtracting two
large times leaves a small one, easily wrong by tens of percent, hardly by a factor of 2."""


@dataclass(frozen=True)
class Study:
    """The tables under audit, and D: the number of images in the training set.

    `printed` is the table of `scaling.printed`, empty for a study that prints no figures;
    `utilization` that of `scaling.utilization`, empty for one without measured peaks.
    """

    timing: pd.DataFrame
    speedup: pd.DataFrame
    communication: pd.DataFrame
    bandwidth: pd.DataFrame
    train_images: int
    printed: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=printed.COLUMNS))
    utilization: pd.DataFrame = field(
        default_factory=lambda: pd.DataFrame(columns=utilization.COLUMNS)
    )


Check = Callable[[Study], list[Finding]]


def parts_differ_from_total(study: Study) -> list[Finding]:
    """compute + communication = total, within rounding, for every estimate."""
    table = study.communication
    parts = table["compute_seconds"] + table["communication_seconds"]
    return [
        finding(row, "error", f"{row.estimate}: compute + communication is not the total", *pair)
        for row, *pair in _differing(table, parts, table["total_seconds"])
    ]


def negative_communication(study: Study) -> list[Finding]:
    """Communication takes time: below 0 the estimate has subtracted something else."""
    table = study.communication
    return [
        finding(
            row, "warning", f"{row.estimate}: communication below 0", row.communication_seconds, 0
        )
        for row in table[table["communication_seconds"] < 0].itertuples()
    ]


def utilization_above_one(study: Study) -> list[Finding]:
    """No cell can communicate faster than the peak measured on the same GPUs."""
    table = study.bandwidth
    return [
        finding(row, "warning", f"{row.estimate}: utilization above 100 %", row.utilization, 1)
        for row in table[table["utilization"] > 1].itertuples()
    ]


def above_the_matrix_peak(study: Study) -> list[Finding]:
    """No epoch takes less time than its operations would at the matrix product rate measured.

    "Without loading" comes out below it where the device computes while the host waits for data:
    the time subtracted was not idle, so what is left is too short. The whole epoch never may.
    """
    table = study.utilization
    messages = {
        "utilization": "the epoch took less time than its operations take at the measured peak",
        "utilization_without_loading": "the time without loading is less than the operations take "
        "at the measured peak: the device computed while the host waited for data",
    }
    return [
        finding(row, "warning", message, getattr(row, column), 1)
        for column, message in messages.items()
        for row in table[table[column] > 1].itertuples()
    ]


def speedup_above_gpus(study: Study) -> list[Finding]:
    """N GPUs are at most N times as fast, in each of the three views.

    In the weak view the cause may be a partial last batch, which counts as a whole step.
    """
    table = study.speedup
    return [
        finding(row, "warning", f"{name} above the number of GPUs", getattr(row, view), row.gpus)
        for view, name in VIEWS.items()
        for row in table[table[view] > table["gpus"] * (1 + TOLERANCE)].itertuples()
    ]


def bytes_not_multiplied_by_iterations(study: Study) -> list[Finding]:
    """bandwidth · communication seconds of an epoch = bytes per iteration · iterations.

    The iterations are the timing table's. One iteration's bytes over one epoch's seconds is the
    commonest published mistake.
    """
    iterations = study.timing[[*CELL_KEYS, "iterations"]]
    table = study.bandwidth.drop(columns="iterations").merge(iterations, how="left", on=CELL_KEYS)
    moved = table["bandwidth_gb_per_s"] * GB * table["communication_seconds"]
    message = "the bandwidth is not that of bytes per iteration times iterations"
    return [
        finding(row, "error", f"{row.estimate}: {message} (in bytes)", *pair)
        for row, *pair in _differing(table, moved, table["bytes_per_iteration"] * table.iterations)
    ]


def two_baselines(study: Study) -> list[Finding]:
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
    return [
        finding(row, "error", f"two different single-GPU times used for one b ({row.of})", *pair)
        for row, *pair in _differing(spread, spread["high"], spread["low"])
    ]


def batch_exceeds_dataset(study: Study) -> list[Finding]:
    """A global batch N·b larger than the training set cannot be drawn, so it has no time."""
    table = study.timing
    samples = table["gpus"] * table["batch_size"]
    impossible = (samples > study.train_images) & table["epoch_seconds"].notna()
    message = "a time for a global batch larger than the training set"
    return [
        finding(row, "error", message, row.gpus * row.batch_size, study.train_images)
        for row in table[impossible].itertuples()
    ]


def loading_does_not_add_up(study: Study) -> list[Finding]:
    """epoch_seconds = epoch_seconds_without_loading + loader_seconds, none of them below 0."""
    table = study.timing
    parts = table["epoch_seconds_without_loading"] + table["loader_seconds"]
    negative = table[table["loader_seconds"] < -TOLERANCE * table["epoch_seconds"]]
    message = "the time without loading and the loading are not the epoch's time"
    return [
        finding(row, "error", message, *pair)
        for row, *pair in _differing(table, parts, table["epoch_seconds"])
    ] + [
        finding(row, "error", "the epoch is longer without loading than with", *pair)
        for row, *pair in zip(
            negative.itertuples(),
            negative["epoch_seconds_without_loading"],
            negative["epoch_seconds"],
            strict=True,
        )
    ]


def single_measurement(study: Study) -> list[Finding]:
    """A count of 1 is no median, its spread is unknown; at least 3 epochs are asked for."""
    table = study.timing
    return [
        finding(row, "info", "measured once; at least 3 epochs are asked for", row.count, 3)
        for row in table[table["count"] == 1].itertuples()
    ]


def communication_varies_with_batch(study: Study) -> list[Finding]:
    """Communication of one iteration moves the same bytes at every b, so it takes the same time.

    For each recipe, strategy, number of GPUs and estimate: the largest communication time of an
    iteration is more than `COMMUNICATION_FACTOR` times the smallest. Reported at the largest.
    Values of 0 or below are left to `negative_communication`.
    """
    table = study.bandwidth[study.bandwidth["communication_seconds"] > 0]
    table = table.assign(seconds=table["communication_seconds"] / table["iterations"]).dropna(
        subset="seconds"
    )
    groups = table.groupby(["recipe", "strategy", "gpus", "estimate"])["seconds"]
    table["smallest"] = groups.transform("min")
    worst = table.loc[groups.idxmax()]
    return [
        finding(
            row,
            "warning",
            f"{row.estimate}: communication of one iteration changes with b (in seconds)",
            row.seconds,
            row.smallest,
        )
        for row in worst[worst.seconds > COMMUNICATION_FACTOR * worst.smallest].itertuples()
    ]


def _on_printed(check: Callable[[pd.DataFrame, pd.DataFrame], list[Finding]]) -> Check:
    """A check of `scaling.audit_printed`, as one of a study."""

    @wraps(check)
    def check_study(study: Study) -> list[Finding]:
        return check(study.printed, study.timing)

    return check_study


CHECKS: list[Check] = [
    parts_differ_from_total,
    negative_communication,
    utilization_above_one,
    above_the_matrix_peak,
    speedup_above_gpus,
    bytes_not_multiplied_by_iterations,
    two_baselines,
    batch_exceeds_dataset,
    loading_does_not_add_up,
    single_measurement,
    communication_varies_with_batch,
    *map(_on_printed, audit_printed.CHECKS),
]


def audit(study: Study) -> pd.DataFrame:
    """Every finding of every check, columns `COLUMNS`; no rows when there is nothing to say."""
    rows = [
        {"check": check.__name__, **asdict(found)} for check in CHECKS for found in check(study)
    ]
    return tables.arrange(pd.DataFrame(rows, columns=COLUMNS), COLUMNS)


def _differing(
    table: pd.DataFrame, found: pd.Series, expected: pd.Series
) -> list[tuple[Any, float, float]]:
    """The rows whose two figures, both known, differ by more than rounding, with the figures."""
    different = (found - expected).abs() > TOLERANCE * expected.abs()
    return list(
        zip(table[different].itertuples(), found[different], expected[different], strict=True)
    )
