"""Where the time of a step goes on the device: compute, communication and waiting, nothing."""

from typing import Any

import pandas as pd

from scaling.core import numbers as fmt
from scaling.report.part import Part
from scaling.report.table import Entry, Table, cell_lines, collect_notes, status
from scaling.tables.schema import StudyTables, by_configuration

COLUMNS = ["step, ms", "compute, ms", "communication alone, ms", "nothing, ms", "kernels"]


def steps(tables: StudyTables) -> Part:
    """A table for each recipe and strategy of which a cell was traced on a GPU."""
    read = tables.device_time
    traced = [found for found in by_configuration(read) if found[2]["count"].gt(0).any()]
    reasons = " and ".join(dict.fromkeys(note for note in read["note"] if note))
    return Part(
        tables=[_table(f"A step on the device: {name}, {way}", rows) for name, way, rows in traced],
        lacking="" if traced else f"No step can be shown: {reasons or 'there are no cells'}.",
    )


def _table(title: str, rows: pd.DataFrame) -> Table:
    return Table(
        title=title,
        columns=["batch size per GPU", "GPUs", *COLUMNS],
        rows=cell_lines(rows, _cell),
        notes=collect_notes(rows, "note"),
    )


def _cell(row: Any) -> list[Entry]:
    if row.count == 0:
        return [status("not traced", len(COLUMNS))]
    apart = pd.notna(row.compute_seconds)
    alone = row.busy_seconds - row.compute_seconds
    parts = [Entry(_ms(row.compute_seconds)), Entry(_ms(alone) if row.gpus > 1 else "–")]
    share = fmt.percent(row.gap_seconds / row.step_seconds)
    span = fmt.span(1e3 * row.gap_seconds_min, 1e3 * row.gap_seconds_max)
    return [
        Entry(_ms(row.step_seconds), detail=f"n = {int(row.count)}"),
        *(parts if apart else [Entry(f"together {_ms(row.busy_seconds)}", columns=2)]),
        Entry(
            _ms(row.gap_seconds),
            detail=share if row.count == 1 else f"{span}, {share}",
            flags=("negative",) if row.gap_seconds < 0 else (),
        ),
        Entry(f"{row.kernels:,.0f}"),
    ]


def _ms(seconds: float) -> str:
    return fmt.significant(1e3 * seconds)
