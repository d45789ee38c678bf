"""Questions 1 and 2 of the report: epoch time over the batch size, speedup, three views."""

import math
from collections.abc import Callable
from typing import Any

import pandas as pd

from scaling.core import numbers as fmt
from scaling.core.grid import CELL_KEYS
from scaling.report.table import (
    Column,
    Table,
    TableCell,
    collect_notes,
    flags_of,
    no_single_gpu,
    status,
    table_by_cell,
    table_by_gpus,
)
from scaling.tables.schema import DerivedTables, StudyTables, by_configuration

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
    title = "seconds per epoch without loading, and waiting for data"
    return {
        "tables": [
            table_by_gpus(
                f"{recipe}, {strategy}: {title}",
                rows,
                LOADING,
                instead=_untimed,
                notes=collect_notes(rows, "message"),
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
    """Question 2: Table 1, the three views of scaling with the cell they part at, statuses."""
    occurring = set(tables.timing["status"]) - {"ok"}
    messages = tables.timing[[*CELL_KEYS, "message"]]
    configurations = by_configuration(tables.speedup.merge(messages, how="left"))
    return {
        "table_1": [
            _table_1(f"Table 1: {recipe}, {strategy}", cells)
            for recipe, strategy, cells in configurations
        ],
        "views": [
            (
                clearest_view(cells),
                _views(f"Three views of scaling: {recipe}, {strategy}", cells[cells["gpus"] > 1]),
            )
            for recipe, strategy, cells in configurations
            if (cells["gpus"] > 1).any()
        ],
        "statuses": [(name, words) for name, words in STATUSES.items() if name in occurring],
    }


def clearest_view(cells: pd.DataFrame) -> Any | None:
    """The cell that shows best how the three views differ; None without a speedup.

    `cells` are of one recipe and strategy. It is one on the most GPUs that have a speedup: that
    whose fixed-global-batch speedup differs most from its strong one; without any T(1, N·b), that
    of the largest batch.
    """
    known = cells[(cells["gpus"] > 1) & cells["speedup"].notna()]
    if known.empty:
        return None
    most = known[known["gpus"] == known["gpus"].max()]
    gap = (most["speedup"] / most["fixed_global_batch_speedup"]).map(math.log).abs()
    chosen = gap.idxmax() if gap.notna().any() else most["batch_size"].idxmax()
    return next(most.loc[[chosen]].itertuples())


def _untimed(row: Any) -> TableCell | None:
    return status(row.status) if pd.isna(row.epoch_seconds) else None


def _range(low: float, high: float) -> str:
    """The range of a figure, nothing where there is none: measured once, or not stated."""
    return fmt.span(low, high) if high > low else ""


LOADING = [
    Column("without loading, s", "epoch_seconds_without_loading", fmt.significant, flags=flags_of),
    Column(
        "loading, s",
        "loader_seconds",
        fmt.significant,
        detail=lambda row: f"{fmt.percent(row.loader_seconds / row.epoch_seconds)} of the epoch",
    ),
]
SPEEDUP = Column(
    "speedup",
    "speedup",
    fmt.times,
    detail=lambda row: _range(row.speedup_min, row.speedup_max) if row.gpus > 1 else "",
    flags=lambda row: (
        *(["within noise"] if row.gpus > 1 and row.within_spread else []),
        *_above(row, row.speedup),
    ),
    missing=no_single_gpu,
)


def _above(row: Any, speedup: float) -> tuple[str, ...]:
    """The flag of a speedup above the number of GPUs."""
    return (f"above {int(row.gpus)}",) if speedup > row.gpus else ()


def _table_1(title: str, cells: pd.DataFrame) -> Table:
    counts = cells["count"].dropna()
    once = not counts.empty and bool((counts == 1).all())
    time = Column(
        "epoch time, s",
        "epoch_seconds",
        fmt.significant,
        detail=lambda row: _range(row.epoch_seconds_min, row.epoch_seconds_max),
        flags=lambda row: flags_of(row, measured_once=row.count == 1 and not once),
    )
    notes = ["every time was measured once"] * once + collect_notes(cells, "message")
    return table_by_gpus(title, cells, [time, SPEEDUP], instead=_untimed, notes=notes)


def _view(group: str, prefix: str, batch_size: Callable[[Any], int]) -> Column:
    """The speedup and efficiency of one view, whose baseline is T(1, `batch_size`)."""
    ratio = f"{prefix}speedup"
    return Column(
        "speedup",
        ratio,
        fmt.times,
        detail=lambda row: f"efficiency {fmt.percent(getattr(row, f'{prefix}efficiency'))}",
        flags=lambda row: _above(row, getattr(row, ratio)),
        missing=lambda row: f"no T(1, {batch_size(row)})",
        group=group,
    )


def _global_batch(row: Any) -> int:
    return int(row.gpus * row.batch_size)


VIEWS = [
    _view("strong", "", lambda row: row.batch_size),
    _view("weak", "weak_", lambda row: row.batch_size),
    Column("global batch", _global_batch, group="fixed global batch"),
    _view("fixed global batch", "fixed_global_batch_", _global_batch),
]


def _views(title: str, cells: pd.DataFrame) -> Table:
    notes = collect_notes(cells[cells["epoch_seconds"].notna()], "note")
    return table_by_cell(title, cells, VIEWS, _untimed, notes)
