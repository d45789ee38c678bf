"""What the instruments of each cell say of its communication, per iteration."""

import math
from collections.abc import Iterator
from statistics import median
from typing import Any

import pandas as pd

from scaling.core.grid import CELL_KEYS
from scaling.tables import io, schema
from scaling.tables.runs import Run

ESTIMATES = ["without_communication", "profiler", "ddp_log"]
PARTS = ["communication_seconds", "exposed_seconds", "overlapped_seconds"]
COLUMNS = schema.columns("readings")


def readings(runs: list[Run]) -> pd.DataFrame:
    """One row per multi-GPU cell and estimate, columns `COLUMNS`, seconds of one iteration.

    The figure is the median over seeds, and over the repeats of each where there are some: `count`
    of them. A trace or DDP's log gives the median over ranks, of the total and of each part for
    itself. Leaving communication out gives the difference of the slowest rank's times with and
    without: what communication adds, so exposed communication; it may be negative. `spread_seconds`
    is the range (maximum - minimum) of the exposed seconds of these figures, empty for a single
    one. A cell without a reading has empty seconds and a `note` that says why.
    """
    cells: dict[tuple[Any, ...], list[list[dict[str, Any]]]] = {}
    for cell, record in runs:
        if cell.gpus > 1:
            seeds = cells.setdefault((cell.recipe, cell.strategy, cell.gpus, cell.batch_size), [])
            seeds.append(record["communication"]["readings"] if record else [])
    rows = [
        {**dict(zip(CELL_KEYS, cell, strict=True)), **_row(estimate, seeds)}
        for cell, seeds in cells.items()
        for estimate in ESTIMATES
    ]
    return io.arrange(pd.DataFrame(rows, columns=COLUMNS), COLUMNS)


def _row(estimate: str, seeds: list[list[dict[str, Any]]]) -> dict[str, Any]:
    own = [[reading for reading in ranks if reading["estimate"] == estimate] for ranks in seeds]
    figures = [figure for ranks in own for figure in _figures(ranks)]
    if figures:
        seconds = {part: median(figure[part] for figure in figures) for part in PARTS}
        return {
            "estimate": estimate,
            **seconds,
            "spread_seconds": _range([figure["exposed_seconds"] for figure in figures]),
            "count": len(figures),
            "note": "",
        }
    notes = [reading["note"] for ranks in own for reading in ranks]
    return {"estimate": estimate, "count": 0, "note": notes[0] if notes else "not instrumented"}


def _range(values: list[float]) -> float:
    return max(values) - min(values) if len(values) > 1 else math.nan


def _figures(ranks: list[dict[str, Any]]) -> Iterator[dict[str, float]]:
    """Seconds of an iteration by one run, from what its ranks read: a figure for each repeat."""
    if not ranks or not all(reading["iterations"] for reading in ranks):
        return
    iterations = ranks[0]["iterations"]
    if "seconds" in ranks[0]:
        with_it, without = (
            [max(repeat) for repeat in zip(*(reading[key] for reading in ranks), strict=True)]
            for key in ("seconds", "seconds_without")
        )
        for one, other in zip(with_it, without, strict=True):
            added = (one - other) / iterations
            yield dict(zip(PARTS, (added, added, math.nan), strict=True))
    else:
        yield {part: median(reading[part] for reading in ranks) / iterations for part in PARTS}
