"""The interconnect in the report: the sweep over message sizes, and the line fitted through it."""

from typing import Any

import pandas as pd

from scaling.core import numbers as fmt
from scaling.report.table import Column, Table, TableCell, make_table, status

KINDS = {
    "bucket": "bucket of DDP",
    "tuned_bucket": "bucket of recipe tuned",
    "gradients": "all gradients",
}
"""What a message of the sweep is, where its kind does not say so itself."""

SWEEP = [
    Column("message", "message_bytes", lambda size: f"{int(size):,} B", kind="head"),
    Column(
        "what it is",
        lambda row: KINDS.get(row.kind, row.kind),
        kind="text",
        flags=lambda row: () if row.correct else ("wrong result",),
    ),
    Column(
        "time, µs",
        lambda row: 1e6 * row.seconds,
        fmt.significant,
        detail=lambda row: fmt.span(1e6 * row.seconds_min, 1e6 * row.seconds_max),
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


def sweeps(interconnect: pd.DataFrame) -> list[Table]:
    """One table for each backend and number of GPUs: time and bandwidth by message size."""
    return [
        make_table(
            f"All-reduce on {fmt.gpus(int(gpus))}, {backend}",
            rows.sort_values("message_bytes"),
            SWEEP,
        )
        for (backend, gpus), rows in interconnect.groupby(["backend", "gpus"])
    ]


def fits(fit: pd.DataFrame) -> list[Table]:
    """The lines fitted through the sweeps, in one table; none without a sweep."""
    title = "Time of an all-reduce of m bytes, fitted as α + β·m"
    return [make_table(title, fit, FIT)] if len(fit) else []
