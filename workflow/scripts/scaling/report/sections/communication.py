"""Question 3 of the report: compute and communication, bytes, bandwidth, the interconnect."""

from typing import Any

import pandas as pd

from scaling.core import numbers as fmt
from scaling.core.grid import CELL_KEYS
from scaling.report.table import (
    BATCH_SIZE,
    Column,
    Table,
    TableCell,
    collect_notes,
    flags_of,
    make_table,
    no_single_gpu,
    spread_of,
    status,
    table_by_gpus,
)
from scaling.tables import noise
from scaling.tables.communication import SUBTRACTIONS, with_values
from scaling.tables.schema import DerivedTables, StudyTables, by_configuration

ESTIMATES = {
    "subtraction": "compute is T(1, b) / N, communication what is left of T(N, b): whatever does "
    "not shrink with N, waiting for data included",
    "subtraction_without_loading": "the same, with the wait for data left out of both times",
    "without_communication": "iterations with gradient synchronisation minus the same ones without "
    "it: what communication adds",
    "profiler": "time of the communication operations in a trace; exposed is the part during which "
    "no computation runs, overlapped the rest",
    "ddp_log": "what DistributedDataParallel logs of its own all-reduces, and how much of that the "
    "backward pass overlaps",
}
"""What each estimate of the communication measures."""
MESSAGES = {"bucket": "bucket of DDP", "gradients": "all gradients"}
"""What a message of the sweep is, where its kind does not say so itself."""


def compute_and_communication(tables: DerivedTables) -> dict[str, Any]:
    """Table 2: a row for each batch size and estimate, a group of columns for each GPU count."""
    shares = noise.with_resolution(tables.communication, tables.timing)
    occurring = set(with_values(shares)["estimate"])
    return {
        "estimates": [
            (fmt.estimate(name), words) for name, words in ESTIMATES.items() if name in occurring
        ],
        "instruments": bool(occurring - set(SUBTRACTIONS)),
        "tables": [
            _table_2(f"Table 2: {recipe}, {strategy}", rows)
            for recipe, strategy, rows in by_configuration(shares)
        ],
    }


def bandwidth(tables: StudyTables) -> dict[str, Any]:
    """Table 3, and the sweep over the interconnect with the line fitted through it."""
    fit, sweep = tables.interconnect_fit, tables.interconnect
    title = "Time of an all-reduce of m bytes, fitted as α + β·m"
    return {
        "tables": bandwidths(tables),
        "fits": [make_table(title, fit, FIT)] if len(fit) else [],
        "sweeps": [
            make_table(
                f"All-reduce on {fmt.gpus(int(gpus))}, {backend}",
                rows.sort_values("message_bytes"),
                SWEEP,
            )
            for (backend, gpus), rows in sweep.groupby(["backend", "gpus"])
        ],
    }


def bandwidths(tables: DerivedTables) -> list[Table]:
    """Table 3 of each recipe and strategy: bytes, seconds and bandwidth of every multi-GPU cell."""
    shares = tables.communication[[*CELL_KEYS, "estimate", "total_seconds", "spread_seconds"]]
    rates = noise.with_resolution(tables.bandwidth.merge(shares, how="left"), tables.timing)
    return [
        _table_3(f"Table 3: {recipe}, {strategy}", rows)
        for recipe, strategy, rows in by_configuration(rates)
    ]


def _no_communication(row: Any) -> TableCell | None:
    """The status of a cell without a communication time; notes below the table say more."""
    if pd.notna(row.communication_seconds):
        return None
    if pd.isna(row.total_seconds):
        return status("loading unknown" if row.status == "ok" else row.status)
    return status(no_single_gpu(row) if row.estimate in SUBTRACTIONS else "no reading")


def _parts(row: Any) -> str:
    if pd.isna(row.overlapped_seconds):
        return ""
    exposed, overlapped = map(fmt.significant, (row.exposed_seconds, row.overlapped_seconds))
    return f"exposed {exposed},\noverlapped {overlapped}"


ESTIMATE = Column("estimate", "estimate", fmt.estimate, "text")
TABLE_2 = [
    Column("compute, s", "compute_seconds", fmt.significant),
    Column(
        "communication, s",
        "communication_seconds",
        fmt.significant,
        detail=_parts,
        flags=lambda row: flags_of(
            row, negative=row.communication_seconds < 0, within_noise=row.within_noise
        ),
    ),
    Column(
        "share of total", lambda row: row.communication_seconds / row.total_seconds, fmt.percent
    ),
]
CELL = ("batch_size", "gpus")
TABLE_3 = [
    Column("batch size per GPU", "batch_size", fmt.integer, "head", per=CELL),
    Column("GPUs", "gpus", fmt.integer, per=CELL),
    Column("bytes per iteration", "bytes_per_iteration", fmt.data, per=CELL),
    Column("iterations", "iterations", lambda count: f"{int(count):,}", per=CELL),
    Column("bytes per epoch", "bytes_per_epoch", fmt.data, per=CELL),
    ESTIMATE,
    Column(
        "communication, s",
        "communication_seconds",
        fmt.significant,
        flags=lambda row: flags_of(row, within_noise=row.within_noise),
        instead=_no_communication,
    ),
    Column(
        "GB/s",
        "bandwidth_gb_per_s",
        fmt.significant,
        missing=lambda row: "negative" if row.communication_seconds < 0 else "none",
        instead=_no_communication,
    ),
    Column("peak measured, GB/s", "peak_gb_per_s", fmt.significant, missing="no sweep"),
    Column(
        "utilization",
        "utilization",
        fmt.percent,
        flags=lambda row: ("above 100 %",) if row.utilization > 1 else (),
        missing=lambda row: "none" if pd.isna(row.bandwidth_gb_per_s) else "no peak",
    ),
]


def _table_2(title: str, rows: pd.DataFrame) -> Table:
    shown = with_values(rows)
    # Where an estimate has no line of its own, the notes on it name it.
    named = "no “" + rows["estimate"].map(fmt.estimate) + "”: " + rows["note"]
    noted = rows.assign(note=rows["note"].where(rows["estimate"].isin(shown["estimate"]), named))
    return table_by_gpus(
        title,
        shown,
        TABLE_2,
        keys=[BATCH_SIZE, ESTIMATE],
        instead=_no_communication,
        notes=collect_notes(noted[noted["total_seconds"].notna()], "note"),
    )


def _table_3(title: str, rows: pd.DataFrame) -> Table:
    shown = with_values(rows).sort_values([*CELL], kind="stable")
    times = shown.groupby([*CELL])["total_seconds"].transform("count")
    untimed = times.eq(0) & (shown["status"] != "ok")
    shown = shown.assign(untimed=untimed)[~untimed | ~shown.duplicated([*CELL])]
    return make_table(
        title,
        shown,
        TABLE_3,
        instead=lambda row: status(row.status) if row.untimed else None,
        keys=2,
        notes=collect_notes(rows[rows["communication_seconds"].notna()], "note"),
    )


def _message(row: Any) -> str:
    """What a message is; `tuned_bucket` is one of the buckets that the recipe tuned sends."""
    recipe = row.kind.removesuffix("_bucket")
    return MESSAGES.get(row.kind, row.kind if recipe == row.kind else f"bucket of recipe {recipe}")


SWEEP = [
    Column("message", "message_bytes", lambda size: f"{int(size):,} B", "head"),
    Column(
        "what it is",
        _message,
        kind="text",
        flags=lambda row: () if row.correct else ("wrong result",),
    ),
    Column(
        "time, µs",
        lambda row: 1e6 * row.seconds,
        fmt.significant,
        detail=spread_of("seconds", 1e6),
    ),
    Column("repeats", "count", fmt.integer),
    Column("algorithm bandwidth, GB/s", "algbw_gb_per_s", fmt.significant),
    Column("bus bandwidth, GB/s", "busbw_gb_per_s", fmt.significant),
]


def _unfitted(row: Any) -> TableCell | None:
    return status("fewer than 3 message sizes") if pd.isna(row.latency_seconds) else None


FIT = [
    Column("GPUs", lambda row: f"{fmt.gpus(int(row.gpus))}, {row.backend}", kind="head"),
    Column(
        "α, µs",
        lambda row: fmt.plus_minus(1e6 * row.latency_seconds, 1e6 * row.latency_error_seconds),
        instead=_unfitted,
    ),
    Column(
        "β, ps per byte",
        lambda row: fmt.plus_minus(1e12 * row.seconds_per_byte, 1e12 * row.seconds_per_byte_error),
        instead=_unfitted,
    ),
    Column(
        "bus bandwidth for large m, GB/s",
        "asymptotic_busbw_gb_per_s",
        fmt.significant,
        instead=_unfitted,
    ),
    Column("sizes", "points", fmt.integer),
]
