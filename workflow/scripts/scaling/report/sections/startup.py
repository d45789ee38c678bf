"""The report's section on the fixed cost of a run: what it takes besides its measured epochs."""

from typing import Any

import pandas as pd

from scaling.core import numbers as fmt
from scaling.launch.startup_clock import PHASES
from scaling.report.table import Entry, Table, cell_lines, flags_of, status
from scaling.tables.schema import StudyTables, by_configuration
from scaling.tables.startup import PARTS, PHASE_COLUMNS
from scaling.tables.timing import TIMED

MEANINGS = {
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
        "phases": [(phase, MEANINGS[phase]) for phase in PHASES],
        "tables": [
            _table(f"Where the time of a run goes: {recipe}, {strategy}", rows)
            for recipe, strategy, rows in by_configuration(tables.startup)
        ],
    }


def _table(title: str, rows: pd.DataFrame) -> Table:
    return Table(
        title=title,
        groups=[
            ("", 2),
            ("phases of the start-up, s", len(PHASES)),
            ("parts of the run, s", len(PARTS)),
            ("whole run", 2),
        ],
        columns=[
            *("batch size per GPU", "GPUs", *PHASES),
            *(PART_NAMES[part] for part in PARTS),
            *("seconds", "not measured"),
        ],
        rows=cell_lines(rows, _cell),
        notes=_notes(rows),
    )


def _cell(row: Any) -> list[Entry]:
    if pd.isna(row.run_seconds):
        # A run that came to its end has no figures only when nothing took them.
        why = NOT_RECORDED if row.status in TIMED else row.status
        return [status(why, len(PHASES) + len(PARTS) + 2)]
    seconds = [Entry(fmt.significant(getattr(row, name))) for name in [*PHASE_COLUMNS, *PARTS]]
    whole = Entry(fmt.significant(row.run_seconds), flags=flags_of(row))
    return [*seconds, whole, Entry(fmt.percent(row.unmeasured_share))]


def _notes(rows: pd.DataFrame) -> list[str]:
    notes = []
    known = rows["run_seconds"].notna()
    seeds = rows["count"][known]
    if len(seeds):
        low, high = int(seeds.min()), int(seeds.max())
        if high == 1:
            notes.append("each row is the only run of its cell, so its spread is unknown")
        else:
            span = f"{low}" if low == high else f"{low} to {high}"
            notes.append(f"each row is the run of median length of {span} seeds")
    if (rows["status"].isin(TIMED) & ~known).any():
        notes.append(f"{NOT_RECORDED}: the run was made before these times were measured")
    return notes
