"""The measured limits of a machine as a table: matrix products by precision, copies."""

import math
from statistics import median
from typing import Any

import pandas as pd

from scaling.tables import schema

COLUMNS = schema.columns("peaks")
UNITS = {"matrix_product": "FLOP/s", "device_copy": "B/s", "gpu_to_gpu_copy": "B/s"}
"""Every quantity, and the unit of its value."""

_WHOLE = ["matrix_size", "copy_bytes", "source_gpu", "target_gpu", "count"]


def peaks(document: dict[str, Any]) -> pd.DataFrame:
    """The table of rates, one row per row of the document (see `scaling.peaks_record`), `COLUMNS`.

    The value is of the median repeat, in FLOP/s or B/s; minimum and maximum are those of the
    slowest and the fastest. `peak` marks the largest value of each quantity and precision.
    """
    rows = []
    for row in document["rows"]:
        work, seconds = _work(row), row["seconds"]
        figures = {
            "unit": UNITS[row["quantity"]],
            "value": work / median(seconds),
            "value_min": work / max(seconds),
            "value_max": work / min(seconds),
            "count": len(seconds),
        }
        rows.append({**row, **figures})
    table = pd.DataFrame(rows, columns=COLUMNS)
    best = table.groupby(["quantity", "precision"], dropna=False)["value"].transform("max")
    return table.assign(peak=table["value"] == best).astype(dict.fromkeys(_WHOLE, "Int64"))


def peak_flops_per_second(table: pd.DataFrame, precision: str) -> float:
    """The largest matrix product rate in `precision`, FLOP/s; NaN where none was measured."""
    rows = table[(table["quantity"] == "matrix_product") & (table["precision"] == precision)]
    return float(rows["value"].max()) if len(rows) else math.nan


def topology(document: dict[str, Any]) -> str:
    """What `nvidia-smi topo -m` printed, without its styling; "" where it was not recorded."""
    printed = (document["environment"]["topology"] or "").strip()
    # The record keeps no leading blanks; without the tab the header is a column too far left.
    return f"\t{printed}\n" if printed else ""


def _work(row: dict[str, Any]) -> int:
    """FLOP of a product of two n×n matrices, 2·n³; bytes of a copy, in one memory read and written.

    Between two GPUs each byte counts once, as it crosses the link once.
    """
    if row["quantity"] == "matrix_product":
        return 2 * int(row["matrix_size"]) ** 3
    return int(row["copy_bytes"]) * (2 if row["quantity"] == "device_copy" else 1)
