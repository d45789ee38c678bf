"""Questions 1 and 2 of the report: epoch time over the batch size, speedup, three views."""

import math
from dataclasses import replace
from functools import partial
from typing import Any

import pandas as pd

from scaling.core import numbers as fmt
from scaling.core.grid import CELL_KEYS
from scaling.report.scaling_views import strong_or_weak
from scaling.report.table import (
    Table,
    TableCell,
    by_batch_and_gpus,
    collect_notes,
    flags_of,
    head,
    no_single,
    status,
)
from scaling.tables.derived import DerivedTables
from scaling.tables.schema import StudyTables, by_configuration

MANY_IMAGES = 0.05
"""The share of an epoch's images from which a last batch that runs otherwise is mentioned."""
STATUSES = {
    "ok": "measured",
    "oom": "the device had no room",
    "oom_host": "the host had no room",
    "infeasible": "could never run: the global batch exceeds the training set, or the machine has "
    "fewer GPUs; decided without starting",
    "diverged": "the loss became NaN or infinite; the time counts, the accuracy does not",
    "timeout": "stopped at the cell's time limit",
    "missing": "not run, or without a record; this report is partial",
}


def batch_size(tables: StudyTables) -> dict[str, Any]:
    """Question 1: epoch time without loading, and loading, over the batch size."""
    timing = _with_last_batches(tables.timing, tables.provenance)
    return {
        "tables": [
            by_batch_and_gpus(
                f"{recipe}, {strategy}: seconds per epoch without loading, and waiting for data",
                rows,
                ["without loading, s", "loading, s"],
                _loading,
            )
            for recipe, strategy, rows in by_configuration(timing)
        ]
    }


def _with_last_batches(timing: pd.DataFrame, provenance: pd.DataFrame) -> pd.DataFrame:
    """`timing` whose messages name the cells with many images in a last batch that is not compiled.

    A run that compiles but does not say for which batch sizes compiled steps of whole batches only.
    """
    runs = provenance[provenance["recipe_options"].str.contains("compile True", regex=False)]
    cells = timing.reset_index(drop=True)
    images = (cells["samples"] / cells["gpus"]).map(math.ceil, na_action="ignore")
    last = images % cells["batch_size"]
    share = last / images
    sizes = cells[CELL_KEYS].assign(place=cells.index, last=last)[share >= MANY_IMAGES]
    eager = [
        row.place
        for row in sizes.merge(runs, on=CELL_KEYS).itertuples(index=False)
        if str(int(row.last)) not in row.compiled_batch_sizes.split("; ")
    ]
    words = share.map(
        lambda part: (
            f"{fmt.percent(part)} of the images are in the epoch's smaller last batch, which is "
            "not compiled and may take longer for an image than the others"
        )
    )
    more = cells["message"].where(cells["message"] == "", cells["message"] + "; ") + words
    return cells.assign(message=cells["message"].where(~cells.index.isin(eager), more))


def speedup(tables: DerivedTables) -> dict[str, Any]:
    """Question 2: Table 1, the three views of scaling and what they say, occurring statuses."""
    occurring = set(tables.timing["status"]) - {"ok"}
    messages = tables.timing[["recipe", "strategy", "gpus", "batch_size", "message"]]
    rows = tables.speedup.merge(messages, how="left")
    configurations = by_configuration(rows)
    return {
        "table_1": [
            _table_1(f"Table 1: {recipe}, {strategy}", cells)
            for recipe, strategy, cells in configurations
        ],
        "views": [
            (
                strong_or_weak(cells),
                _views(f"Three views of scaling: {recipe}, {strategy}", cells[cells["gpus"] > 1]),
            )
            for recipe, strategy, cells in configurations
            if (cells["gpus"] > 1).any()
        ],
        "statuses": [(name, words) for name, words in STATUSES.items() if name in occurring],
    }


def _table_1(title: str, cells: pd.DataFrame) -> Table:
    counts = cells["count"].dropna()
    once = not counts.empty and bool((counts == 1).all())
    table = by_batch_and_gpus(
        title, cells, ["epoch time, s", "speedup"], partial(_time_and_speedup, label_once=not once)
    )
    notes = ["every time was measured once"] * once
    return replace(table, notes=[*notes, *table.notes])


def _loading(row: Any) -> list[TableCell]:
    if pd.isna(row.epoch_seconds):
        return [status(row.status, 2)]
    share = row.loader_seconds / row.epoch_seconds
    return [
        TableCell(fmt.significant(row.epoch_seconds_without_loading), flags=flags_of(row)),
        TableCell(fmt.significant(row.loader_seconds), detail=f"{fmt.percent(share)} of the epoch"),
    ]


def _time_and_speedup(row: Any, label_once: bool) -> list[TableCell]:
    if pd.isna(row.epoch_seconds):
        return [status(row.status, 2)]
    time = TableCell(
        fmt.significant(row.epoch_seconds),
        detail=_range(row.epoch_seconds_min, row.epoch_seconds_max),
        flags=flags_of(row, measured_once=label_once and row.count == 1),
    )
    if pd.isna(row.speedup):
        return [time, no_single(row.batch_size)]
    noise = row.gpus > 1 and row.within_spread
    ratio = TableCell(
        fmt.times(row.speedup),
        detail=_range(row.speedup_min, row.speedup_max) if row.gpus > 1 else "",
        flags=("within noise",) * noise + (f"above {int(row.gpus)}",) * (row.speedup > row.gpus),
    )
    return [time, ratio]


def _range(low: float, high: float) -> str:
    """The range of a figure, nothing where there is none: measured once, or not stated."""
    return fmt.span(low, high) if high > low else ""


def _views(title: str, cells: pd.DataFrame) -> Table:
    rows = []
    for batch, same in cells.sort_values(["batch_size", "gpus"]).groupby("batch_size"):
        for index, row in enumerate(same.itertuples()):
            line = [head(str(batch), rows=len(same))] if index == 0 else []
            line += [TableCell(str(int(row.gpus)))]
            if pd.isna(row.epoch_seconds):
                line.append(status(row.status, 4))
            else:
                global_batch = int(row.gpus) * int(row.batch_size)
                line += [
                    _view(row, "", row.batch_size),
                    _view(row, "weak_", row.batch_size),
                    TableCell(str(global_batch)),
                    _view(row, "fixed_global_batch_", global_batch),
                ]
            rows.append(line)
    return Table(
        title=title,
        groups=[("", 2), ("strong", 1), ("weak", 1), ("fixed global batch", 2)],
        columns=["batch size per GPU", "GPUs", "speedup", "speedup", "global batch", "speedup"],
        rows=rows,
        notes=collect_notes(cells[cells["epoch_seconds"].notna()], "note"),
    )


def _view(row: Any, view: str, baseline: int) -> TableCell:
    """Speedup and efficiency of one view, whose baseline is T(1, `baseline`)."""
    ratio, efficiency = getattr(row, f"{view}speedup"), getattr(row, f"{view}efficiency")
    if pd.isna(ratio):
        return no_single(baseline)
    above = (f"above {int(row.gpus)}",) if ratio > row.gpus else ()
    return TableCell(fmt.times(ratio), detail=f"efficiency {fmt.percent(efficiency)}", flags=above)
