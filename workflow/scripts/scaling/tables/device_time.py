"""How long a device computes in one step of each cell, and how long nothing runs on it."""

import math
from statistics import median
from typing import Any

import pandas as pd

from scaling.core.grid import CELL_KEYS
from scaling.core.records import RunRecord
from scaling.tables import io, schema
from scaling.tables.runs import Run

PARTS = ["step_seconds", "busy_seconds", "compute_seconds", "gap_seconds", "kernels"]
COLUMNS = schema.columns("device_time")


def device_time(runs: list[Run]) -> pd.DataFrame:
    """One row per cell, columns `COLUMNS`, of one step on batches that are in memory already.

    step = busy + gap: the host's seconds, those of them in which a kernel, a copy or a fill runs
    on the device, the rest. `kernels` counts all three. Busy is compute, in which something other
    than communication runs, and communication that no compute hides: on several GPUs this is also
    where a device waits for the others, so a small gap does not mean that it works. Where a record
    on several GPUs does not tell the two apart, compute is empty. The figures are medians over the
    ranks of a run, then over the seeds, `count` of them. A gap below 0 is kept: the traced steps
    took longer than the untraced ones. A cell without figures has a `note` that says why.
    """
    cells: dict[tuple[Any, ...], list[RunRecord | None]] = {}
    for cell, record in runs:
        cells.setdefault(tuple(getattr(cell, key) for key in CELL_KEYS), []).append(record)
    rows = [
        dict(zip(CELL_KEYS, key, strict=True)) | _row(records) for key, records in cells.items()
    ]
    return io.arrange(pd.DataFrame(rows, columns=COLUMNS), COLUMNS)


def _row(records: list[RunRecord | None]) -> dict[str, Any]:
    read = [record["device_time"] for record in records if record is not None]
    steps = [step for ranks in read if (step := _step(ranks))]
    if not steps:
        notes = [rank["note"] for ranks in read for rank in ranks if "note" in rank]
        return {"count": 0, "note": notes[0] if notes else "the device's time was not read"}
    found = {part: _median([step[part] for step in steps]) for part in PARTS}
    gaps = [step["gap_seconds"] for step in steps]
    # The median of the gaps is not what is left between the other two medians.
    return {
        **found,
        "gap_seconds": found["step_seconds"] - found["busy_seconds"],
        "gap_seconds_min": min(gaps),
        "gap_seconds_max": max(gaps),
        "count": len(steps),
        "note": "",
    }


def _step(ranks: list[dict[str, Any]]) -> dict[str, float] | None:
    """One step of a run by the medians of its ranks."""
    if not ranks or not all(rank["iterations"] for rank in ranks):
        return None
    step, busy, compute, kernels = (
        _median([rank[part] / rank["iterations"] for rank in ranks])
        for part in ("seconds", "busy_seconds", "compute_seconds", "kernels")
    )
    return dict(zip(PARTS, (step, busy, compute, step - busy, kernels), strict=True))


def _median(values: list[float]) -> float:
    """The median, or NaN where a value is."""
    return math.nan if any(map(math.isnan, values)) else median(values)
