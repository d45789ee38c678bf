"""The report's section that sets the measured study beside the published ones."""

from typing import Any

import pandas as pd

from scaling.core import numbers as fmt
from scaling.report.table import Table, TableCell, head, status, text
from scaling.tables.schema import StudyTables

METRICS = {
    "epoch_seconds": ("Seconds per epoch", "median of {} epochs", "count"),
    "speedup": ("Speedup over one GPU", "efficiency {}", "efficiency"),
    "bandwidth_gb_per_s": (
        "Bandwidth, GB/s, and seconds of communication",
        "in {} s",
        "communication_seconds",
    ),
}
"""Each metric's title, and what stands below its figure, from which column: a few short words, as
every study and strategy has a column, and the page is as wide as eight of those are."""
LINE = ["study", "recipe", "strategy"]


def side_by_side(tables: StudyTables) -> dict[str, Any]:
    """What is compared, with its caveats, and a table for each metric; none without other studies.

    The tables of figures have the measured study's batch sizes and those that two studies share.
    """
    table = tables.comparison
    others = table[table["study"] != tables.study]
    if others.empty:
        return {"studies": [], "metrics": []}
    own = table[table["study"] == tables.study]
    batches = table.groupby("batch_size")["study"].nunique()
    shared = {*batches[batches > 1].index, *own["batch_size"]}
    common = table[table["batch_size"].isin(shared)]
    return {
        "studies": [what_is_compared(table, own)],
        "metrics": [_metric(common, m) for m in METRICS],
    }


def what_is_compared(table: pd.DataFrame, own: pd.DataFrame) -> Table:
    """A row for each study, recipe and strategy of a comparison: counts and `caveats`."""
    rows = []
    for (study, recipe, strategy), cells in table.groupby(LINE, sort=False):
        first = cells.iloc[0]
        counts = sorted({int(count) for count in cells["count"].dropna()})
        rows.append(
            [
                head(str(study)),
                text(f"{recipe}, {strategy}"),
                text(first["model"]),
                text(first["hardware"]),
                TableCell(_span(counts)),
                text("; ".join(caveats(cells, own)) or "–"),
            ]
        )
    columns = ["study", "recipe", "model", "hardware", "epochs a cell", "caveats"]
    return Table(
        title="What is compared",
        columns=columns,
        rows=rows,
        text_columns=frozenset(columns) - {"epochs a cell", "study"},
    )


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
    title, below, column = METRICS[metric]
    lines = list(dict.fromkeys(table[LINE].itertuples(index=False, name=None)))
    cells = {
        (*key, row.gpus, row.batch_size): row
        for key, rows in table.groupby(LINE, sort=False)
        for row in rows.itertuples()
    }
    places = table[["batch_size", "gpus"]].drop_duplicates().sort_values(["batch_size", "gpus"])
    if metric != "epoch_seconds":
        places = places[places["gpus"] > 1]
    return Table(
        title=title,
        columns=["b × GPUs", *(" · ".join(map(str, line)) for line in lines)],
        rows=[
            [
                head(f"{batch} × {gpus}"),
                *(_entry(cells.get((*line, gpus, batch)), metric, below, column) for line in lines),
            ]
            for batch, gpus in places.itertuples(index=False, name=None)
        ],
    )


def _entry(row: Any, metric: str, below: str, column: str) -> TableCell:
    if row is None:
        return TableCell("–")
    value = getattr(row, metric)
    if metric == "bandwidth_gb_per_s" and row.communication_seconds <= 0:
        seconds = below.format(fmt.significant(row.communication_seconds))
        negative = row.communication_seconds < 0
        return TableCell("–", detail=seconds, flags=("negative",) if negative else ())
    if pd.isna(value):
        return status(row.status) if row.status != "ok" else TableCell("–")
    more = getattr(row, column)
    if metric == "epoch_seconds":
        detail = "once" if more == 1 else below.format(int(more))
    elif metric == "speedup":
        detail = below.format(fmt.percent(more))
    else:
        detail = below.format(fmt.significant(more))
    return TableCell(fmt.significant(value), detail=detail, flags=_flags(row, metric))


def _flags(row: Any, metric: str) -> tuple[str, ...]:
    """That a figure is above what is possible: N times as fast, or the peak where it is known."""
    if metric == "speedup" and row.speedup > row.gpus:
        return (f"above {int(row.gpus)}",)
    if metric == "bandwidth_gb_per_s" and row.utilization > 1:
        return ("above peak",)
    return ()


def _span(counts: list[int]) -> str:
    if not counts:
        return "–"
    low, high = counts[0], counts[-1]
    return str(low) if low == high else f"{low}–{high}"
