"""How long a device works in one step of each cell, and how long nothing runs on it."""

from statistics import median
from typing import Any

import pandas as pd

from scaling import tables
from scaling.grid import CELL_KEYS
from scaling.record import RunRecord
from scaling.tables import Run

PARTS = ["step_seconds", "busy_seconds", "gap_seconds", "kernels"]
COLUMNS = [*CELL_KEYS, *PARTS, "gap_seconds_min", "gap_seconds_max", "count", "note"]


def device_time(runs: list[Run]) -> pd.DataFrame:
    """One row per cell, columns `COLUMNS`, of one step on batches that are in memory already.

    step = busy + gap: the host's seconds, those of them in which a kernel, a copy or a fill runs
    on the device, the rest. `kernels` counts all three. The figures are medians over the ranks of a
    run, then over the seeds, `count` of them. A gap below 0 is kept: the traced steps took longer
    than the untraced ones. A cell without figures has a `note` that says why.
    """
    cells: dict[tuple[Any, ...], list[RunRecord | None]] = {}
    for cell, record in runs:
        cells.setdefault(tuple(getattr(cell, key) for key in CELL_KEYS), []).append(record)
    rows = [
        dict(zip(CELL_KEYS, key, strict=True)) | _row(records) for key, records in cells.items()
    ]
    return tables.arrange(pd.DataFrame(rows, columns=COLUMNS), COLUMNS)


def _row(records: list[RunRecord | None]) -> dict[str, Any]:
    read = [record.get("device_time") or [] for record in records if record is not None]
    steps = [step for ranks in read if (step := _step(ranks))]
    if not steps:
        notes = [rank["note"] for ranks in read for rank in ranks if "note" in rank]
        return {"count": 0, "note": notes[0] if notes else "the device's time was not read"}
    found = {part: median(step[part] for step in steps) for part in PARTS}
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
    step, busy, kernels = (
        median(rank[part] / rank["iterations"] for rank in ranks)
        for part in ("seconds", "busy_seconds", "kernels")
    )
    return dict(zip(PARTS, (step, busy, step - busy, kernels), strict=True))
