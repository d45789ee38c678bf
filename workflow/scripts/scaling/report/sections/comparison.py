"""The report's section that sets the measured study beside the published ones."""

from collections.abc import Callable
from typing import Any

import pandas as pd

from scaling.core import numbers as fmt
from scaling.report.table import Column, Table, TableCell, head, make_table, status
from scaling.tables.schema import StudyTables

METRICS: dict[str, tuple[str, Callable[[Any], str]]] = {
    "epoch_seconds": (
        "Seconds per epoch",
        lambda row: "once" if row.count == 1 else f"median of {int(row.count)} epochs",
    ),
    "speedup": ("Speedup over one GPU", lambda row: f"efficiency {fmt.percent(row.efficiency)}"),
    "bandwidth_gb_per_s": (
        "Bandwidth, GB/s, and seconds of communication",
        lambda row: f"in {fmt.significant(row.communication_seconds)} s",
    ),
}
"""Each metric's title and the second line of its cells: a few short words, as every study and
strategy has a column, and the page is as wide as eight of those are."""
LINE = ["study", "recipe", "strategy"]
COMPARED = [
    Column("study", "study", kind="head"),
    Column("recipe", lambda row: f"{row.recipe}, {row.strategy}", kind="text"),
    Column("model", "model", kind="text"),
    Column("hardware", "hardware", kind="text"),
    Column("epochs a cell", "epochs"),
    Column("caveats", "caveats", lambda found: "; ".join(found) or "–", "text"),
]


def side_by_side(tables: StudyTables) -> dict[str, Any]:
    """What is compared, with its caveats, and a table for each metric; none without other studies.

    The tables of figures have the measured study's batch sizes and those that two studies share.
    """
    table = tables.comparison
    own = table[table["study"] == tables.study]
    if len(own) == len(table):
        return {"studies": [], "metrics": []}
    batches = table.groupby("batch_size")["study"].nunique()
    shared = {*batches[batches > 1].index, *own["batch_size"]}
    common = table[table["batch_size"].isin(shared)]
    return {
        "studies": [what_is_compared(table, own)],
        "metrics": [_metric(common, metric) for metric in METRICS],
    }


def what_is_compared(table: pd.DataFrame, own: pd.DataFrame) -> Table:
    """A row for each study, recipe and strategy of a comparison: counts and `caveats`."""
    rows = [
        cells.iloc[[0]].assign(
            epochs=fmt.whole_span(cells["count"], "–"), caveats=[caveats(cells, own)]
        )
        for _, cells in table.groupby(LINE, sort=False)
    ]
    return make_table("What is compared", pd.concat(rows), COMPARED)


def caveats(cells: pd.DataFrame, own: pd.DataFrame) -> list[str]:
    """What keeps a study's figures from being compared with those of the measured one, `own`.

    Without a measured one (no rows), only what its own figures lack.
    """
    found = []
    first = cells.iloc[0]
    is_own = own.empty or own.index.isin(cells.index).any()
    # A measured model's name goes on with its width; a published ResNet-18 has the usual one.
    if not is_own and not own["model"].str.startswith(f"{first['model']}, width 64").any():
        found.append("other model")
    if not is_own and not own["hardware"].eq(first["hardware"]).any():
        found.append("other hardware")
    samples = cells["samples"].dropna()
    if not is_own and not own["samples"].dropna().isin(samples).any():
        found.append(f"{int(samples.iloc[0]):,} images an epoch" if len(samples) else "no times")
    if (cells["count"] == 1).any():
        found.append("one sample")
    if (cells["estimate"] == "subtraction").any():
        found.append("bandwidth counts loading as communication")
    return found


def _metric(table: pd.DataFrame, metric: str) -> Table:
    """A row for each batch size and number of GPUs, a column for each study and strategy."""
    groups = table.groupby(LINE, sort=False)
    cells = {
        (line, row.batch_size, row.gpus): row for line, rows in groups for row in rows.itertuples()
    }
    places = table[["batch_size", "gpus"]].drop_duplicates().sort_values(["batch_size", "gpus"])
    if metric != "epoch_seconds":
        places = places[places["gpus"] > 1]
    return Table(
        title=METRICS[metric][0],
        columns=["b × GPUs", *(" · ".join(line) for line, _ in groups)],
        rows=[
            [
                head(f"{batch} × {gpus}"),
                *(_cell(cells.get((line, batch, gpus)), metric) for line, _ in groups),
            ]
            for batch, gpus in places.itertuples(index=False, name=None)
        ],
    )


def _cell(row: Any, metric: str) -> TableCell:
    if row is None:
        return TableCell("–")
    value, detail = getattr(row, metric), METRICS[metric][1]
    if metric == "bandwidth_gb_per_s" and row.communication_seconds <= 0:
        flags = ("negative",) if row.communication_seconds < 0 else ()
        return TableCell("–", detail=detail(row), flags=flags)
    if pd.isna(value):
        return status(row.status) if row.status != "ok" else TableCell("–")
    return TableCell(fmt.significant(value), detail=detail(row), flags=_flags(row, metric))


def _flags(row: Any, metric: str) -> tuple[str, ...]:
    """That a figure is above what is possible: N times as fast, or the peak where it is known."""
    if metric == "speedup" and row.speedup > row.gpus:
        return (f"above {int(row.gpus)}",)
    if metric == "bandwidth_gb_per_s" and row.utilization > 1:
        return ("above peak",)
    return ()
