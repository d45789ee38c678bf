"""Tables of a machine's measured limits: all-reduces by message size, matrix products, copies."""

from statistics import median
from typing import Any

import pandas as pd

from scaling.tables import schema

GB = 1e9
"""Bytes of one GB (decimal, as in nccl-tests)."""


def ring_factor(gpus: Any) -> Any:
    """Return the bytes that each GPU sends per byte of a ring all-reduce: 2(N-1)/N.

    Patarasuk & Yuan 2009; also the factor from algbw to busbw in nccl-tests' PERFORMANCE.md.
    """
    return 2 * (gpus - 1) / gpus


def interconnect(sweeps: list[dict[str, Any]]) -> pd.DataFrame:
    """Return the all-reduce times, one row per message of each sweep.

    `seconds` is the median over the repeats; busbw = message bytes / seconds · 2(N-1)/N, in GB/s
    with 1 GB = 1e9 bytes.
    """
    rows = [
        {**sweep, **row, **schema.of_repeats("seconds", row["seconds"])}
        for sweep in sweeps
        for row in sweep["rows"]
    ]
    order = ["gpus", "backend", "kind", "message_bytes"]
    table = schema.frame("interconnect", rows).sort_values(order, kind="stable", ignore_index=True)
    busbw = ring_factor(table["gpus"]) * table["message_bytes"] / table["seconds"] / GB
    return table.assign(busbw_gb_per_s=busbw)


def peaks(document: dict[str, Any]) -> pd.DataFrame:
    """Return the measured rates, one row per row of the document (see `instruments.peaks`).

    The value is the median repeat's rate, in FLOP/s or B/s; minimum and maximum are the slowest and
    the fastest repeat's. The work is 2·n³ FLOP for a product of two n×n matrices, and the bytes of
    a copy, counted twice within a memory (read and write) and once between GPUs. `peak` marks the
    largest value of each quantity, precision and `state`: after a rest (`sprint`) or after seconds
    of work (`sustained`).
    """
    rows = []
    for row in document["rows"]:
        seconds, product = row["seconds"], row["quantity"] == "matrix_product"
        if product:
            work = 2 * row["matrix_size"] ** 3
        else:
            work = row["copy_bytes"] * (2 if row["quantity"] == "device_copy" else 1)
        figures = {
            "unit": "FLOP/s" if product else "B/s",
            "value": work / median(seconds),
            "value_min": work / max(seconds),
            "value_max": work / min(seconds),
            "count": len(seconds),
        }
        rows.append({**row, **figures})
    table = schema.frame("peaks", rows)
    kinds = ["quantity", "precision", "state"]
    best = table.groupby(kinds, dropna=False)["value"].transform("max")
    return table.assign(peak=table["value"] == best)


def topology(document: dict[str, Any]) -> str:
    """Return the output of `nvidia-smi topo -m` without styling; "" if it was not recorded."""
    printed = (document["environment"].get("topology") or "").strip()
    # Records lack leading blanks; without the tab the header is shifted by a column.
    return f"\t{printed}\n" if printed else ""
