"""Where the time of a step goes on the device: compute, communication and waiting, nothing."""

from typing import Any

import pandas as pd

from scaling.core import numbers as fmt
from scaling.report.table import (
    Column,
    SectionPart,
    TableCell,
    collect_notes,
    status,
    table_by_cell,
)
from scaling.tables.schema import StudyTables, by_configuration


def steps(tables: StudyTables) -> SectionPart:
    """A table for each recipe and strategy of which a cell was traced on a GPU."""
    found = tables.device_time
    traced = [same for same in by_configuration(found) if same[2]["count"].gt(0).any()]
    reasons = " and ".join(dict.fromkeys(note for note in found["note"] if note))
    return SectionPart(
        tables=[
            table_by_cell(
                f"A step on the device: {recipe}, {strategy}",
                rows,
                COLUMNS,
                _untraced,
                collect_notes(rows, "note"),
            )
            for recipe, strategy, rows in traced
        ],
        missing="" if traced else f"No step can be shown: {reasons or 'there are no cells'}.",
    )


def _untraced(row: Any) -> TableCell | None:
    return status("not traced") if row.count == 0 else None


def _together(row: Any) -> TableCell | None:
    """Both times as one, where a record does not tell waiting for others from compute."""
    known = pd.notna(row.compute_seconds)
    return None if known else TableCell(f"together {_milliseconds(row.busy_seconds)}")


def _gap_detail(row: Any) -> str:
    share = fmt.percent(row.gap_seconds / row.step_seconds)
    span = fmt.span(1e3 * row.gap_seconds_min, 1e3 * row.gap_seconds_max)
    return share if row.count == 1 else f"{span}, {share}"


def _milliseconds(seconds: float) -> str:
    return fmt.significant(1e3 * seconds)


COLUMNS = [
    Column("step, ms", "step_seconds", _milliseconds, detail=lambda row: f"n = {int(row.count)}"),
    Column("compute, ms", "compute_seconds", _milliseconds, instead=_together),
    Column(
        "communication alone, ms",
        lambda row: row.busy_seconds - row.compute_seconds if row.gpus > 1 else None,
        _milliseconds,
        instead=_together,
    ),
    Column(
        "nothing, ms",
        "gap_seconds",
        _milliseconds,
        detail=_gap_detail,
        flags=lambda row: ("negative",) if row.gap_seconds < 0 else (),
    ),
    Column("kernels", "kernels", lambda count: f"{count:,.0f}"),
]
