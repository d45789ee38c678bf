"""The interconnect in the report: the sweep over message sizes, and the line fitted through it."""

from typing import Any

import pandas as pd

from scaling.core import numbers as fmt
from scaling.report.table import Entry, Table, head, status


def sweeps(interconnect: pd.DataFrame) -> list[Table]:
    """One table for each backend and number of GPUs: time and bandwidth by message size."""
    return [
        Table(
            title=f"All-reduce on {fmt.gpus(int(gpus))}, {backend}",
            columns=[
                *("message", "what it is", "time, µs", "repeats"),
                *("algorithm bandwidth, GB/s", "bus bandwidth, GB/s"),
            ],
            rows=[_message(row) for row in rows.sort_values("message_bytes").itertuples()],
            text_columns=frozenset({"what it is"}),
        )
        for (backend, gpus), rows in interconnect.groupby(["backend", "gpus"])
    ]


def _message(row: Any) -> list[Entry]:
    kinds = {
        "sweep": "sweep",
        "bucket": "bucket of DDP",
        "tuned_bucket": "bucket of recipe tuned",
        "gradients": "all gradients",
    }
    return [
        head(f"{int(row.message_bytes):,} B"),
        Entry(
            kinds.get(row.kind, row.kind),
            kind="text",
            flags=() if row.correct else ("wrong result",),
        ),
        Entry(
            fmt.significant(1e6 * row.seconds),
            detail=fmt.span(1e6 * row.seconds_min, 1e6 * row.seconds_max),
        ),
        Entry(f"{int(row.count)}"),
        Entry(fmt.significant(row.algbw_gb_per_s)),
        Entry(fmt.significant(row.busbw_gb_per_s)),
    ]


def fits(fit: pd.DataFrame) -> list[Table]:
    """The lines fitted through the sweeps, in one table; none without a sweep."""
    if fit.empty:
        return []
    rows = []
    for row in fit.itertuples():
        line = [head(f"{fmt.gpus(int(row.gpus))}, {row.backend}")]
        if pd.isna(row.latency_seconds):
            line.append(status("fewer than 3 message sizes", 3))
        else:
            line += [
                Entry(_plus_minus(1e6 * row.latency_seconds, 1e6 * row.latency_error_seconds)),
                Entry(_plus_minus(1e12 * row.seconds_per_byte, 1e12 * row.seconds_per_byte_error)),
                Entry(fmt.significant(row.asymptotic_busbw_gb_per_s)),
            ]
        rows.append([*line, Entry(f"{int(row.points)}")])
    return [
        Table(
            title="Time of an all-reduce of m bytes, fitted as α + β·m",
            columns=["GPUs", "α, µs", "β, ps per byte", "bus bandwidth for large m, GB/s", "sizes"],
            rows=rows,
        )
    ]


def _plus_minus(value: float, error: float) -> str:
    return f"{fmt.significant(value)} ± {fmt.significant(error, 2)}"
