"""The report's section on the fixed cost of a run: what it takes besides its measured epochs."""

from typing import Any

import pandas as pd

from scaling.core import numbers as fmt
from scaling.core.records import PHASES
from scaling.report.table import Column, TableCell, flags_of, status, table_by_cell
from scaling.tables.schema import StudyTables, by_configuration
from scaling.tables.startup import PARTS, PHASE_COLUMNS
from scaling.tables.timing import TIMED

PHASE_MEANINGS = {
    "launch": "Python’s start, until the command’s own code begins; over several nodes also srun "
    "and torchrun",
    "imports": "PyTorch and the modules that need it",
    "join": "the device and, for several processes, their group: NCCL, or gloo on a CPU",
    "dataset": "the images, read and unpacked",
    "recipe": "the model and its trainer; where a step becomes a CUDA graph, it is compiled and "
    "recorded here",
}
PART_NAMES = {
    "startup_seconds": "start-up",
    "warmup_seconds": "warm-up",
    "measured_seconds": "measured",
    "other_seconds": "other",
    "shutdown_seconds": "end",
}
NOT_RECORDED = "not recorded"


def fixed_cost(tables: StudyTables) -> dict[str, Any]:
    """The meaning of each phase, and a table of phases and parts for each configuration."""
    return {
        "phases": [(phase, PHASE_MEANINGS[phase]) for phase in PHASES],
        "tables": [
            table_by_cell(
                f"Where the time of a run goes: {recipe}, {strategy}",
                rows,
                FIXED_COST,
                _unrecorded,
                _seeds(rows),
            )
            for recipe, strategy, rows in by_configuration(tables.startup)
        ],
    }


def _unrecorded(row: Any) -> TableCell | None:
    if pd.notna(row.run_seconds):
        return None
    # A run that came to its end has no figures only when nothing took them.
    return status(NOT_RECORDED if row.status in TIMED else row.status)


FIXED_COST = [
    *(
        Column(phase, seconds, fmt.significant, group="phases of the start-up, s")
        for phase, seconds in zip(PHASES, PHASE_COLUMNS, strict=True)
    ),
    *(
        Column(PART_NAMES[part], part, fmt.significant, group="parts of the run, s")
        for part in PARTS
    ),
    Column("seconds", "run_seconds", fmt.significant, flags=flags_of, group="whole run"),
    Column("not measured", "unmeasured_share", fmt.percent, group="whole run"),
]


def _seeds(rows: pd.DataFrame) -> list[str]:
    """Notes on how many runs a row stands for, and on runs without these times."""
    notes = []
    known = rows["run_seconds"].notna()
    seeds = rows["count"][known]
    if len(seeds):
        span = fmt.whole_span(seeds)
        notes.append(
            "each row is the only run of its cell, so its spread is unknown"
            if span == "1"
            else f"each row is the run of median length of {span} seeds"
        )
    if (rows["status"].isin(TIMED) & ~known).any():
        notes.append(f"{NOT_RECORDED}: the run was made before these times were measured")
    return notes
