"""What the instruments of each cell say of its communication, per iteration."""

import math
from collections.abc import Iterator
from statistics import median
from typing import Any

import pandas as pd

from scaling import tables
from scaling.grid import CELL_KEYS
from scaling.tables import Run

ESTIMATES = ["without_communication", "profiler", "ddp_log"]
PARTS = ["communication_seconds", "exposed_seconds", "overlapped_seconds"]
COLUMNS = [*CELL_KEYS, "estimate", *PARTS, "count", "note"]


def readings(runs: list[Run]) -> pd.DataFrame:
    """One row per multi-GPU cell and estimate, columns `COLUMNS`, seconds of one iteration.

    The figure is the median over ranks and seeds, `count` of them. Leaving communication out gives
    the difference of two times without loading: what communication adds, so exposed communication;
    it may be negative. A cell without a reading has empty seconds and a `note` that says why.
    """
    cells: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for cell, record in runs:
        if cell.gpus > 1:
            found = cells.setdefault((cell.recipe, cell.strategy, cell.gpus, cell.batch_size), [])
            found += record["communication"].get("readings", []) if record else []
    rows = [
        {**dict(zip(CELL_KEYS, cell, strict=True)), **row}
        for cell, found in cells.items()
        for row in _rows(found)
    ]
    return tables.arrange(pd.DataFrame(rows, columns=COLUMNS), COLUMNS)


def _rows(found: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for estimate in ESTIMATES:
        own = [reading for reading in found if reading["estimate"] == estimate]
        parts = [_per_iteration(reading) for reading in own if reading["iterations"]]
        if parts:
            seconds = {part: median(reading[part] for reading in parts) for part in PARTS}
            yield {"estimate": estimate, **seconds, "count": len(parts), "note": ""}
        else:
            note = own[0]["note"] if own else "not instrumented"
            yield {"estimate": estimate, "count": 0, "note": note}


def _per_iteration(reading: dict[str, Any]) -> dict[str, float]:
    if reading["estimate"] == "without_communication":
        added = (reading["seconds"] - reading["seconds_without"]) / reading["iterations"]
        return dict(zip(PARTS, (added, added, math.nan), strict=True))
    return {part: reading[part] / reading["iterations"] for part in PARTS}
