"""Question 4 of the report: what a large batch does to loss and accuracy."""

from typing import Any

import pandas as pd

from scaling import large_batch
from scaling import report_format as fmt
from scaling.report_table import Entry, Table, head, status, text
from scaling.result_tables import StudyTables, by_configuration


def large_batches(tables: StudyTables) -> dict[str, Any]:
    """Loss and accuracy of every cell after the same number of epochs, against the reference."""
    if tables.timing.empty:
        return {"tables": []}
    cells = large_batch.compare(tables.timing, tables.accuracy)
    return {
        "tables": [
            _table(f"{recipe}, {strategy}", rows)
            for recipe, strategy, rows in by_configuration(cells)
        ]
    }


def _table(name: str, rows: pd.DataFrame) -> Table:
    epoch = rows["epoch"].max()
    when = "no epoch" if pd.isna(epoch) else f"epoch {int(epoch)}"
    ordered = rows.sort_values(["global_batch_size", "gpus"])
    return Table(
        title=f"{name}: after {when}",
        groups=[
            ("", 4),
            (f"training set, {when}", 2),
            ("test set, after the last epoch", 2),
            ("", 1),
        ],
        columns=[
            *("global batch", "GPUs × batch size", "status", "seeds"),
            *(("loss", "accuracy, %") * 2),
            "accuracy minus reference, points",
        ],
        rows=[_row(row) for row in ordered.itertuples()],
        notes=[_reference_note(rows)],
        text_columns=frozenset({"GPUs × batch size", "status"}),
    )


def _row(row: Any) -> list[Entry]:
    line = [
        head(str(row.global_batch_size)),
        text(f"{row.gpus} × {row.batch_size}"),
        status(row.status) if row.status != "ok" else text("ok"),
        Entry(str(int(row.seeds))),
    ]
    if row.seeds == 0:
        return [*line, status("no accuracy", 5)]
    for quantity, factor in (
        ("train_loss", 1),
        ("train_accuracy", 100),
        ("test_loss", 1),
        ("test_accuracy", 100),
    ):
        values = [factor * getattr(row, quantity + suffix) for suffix in ("", "_min", "_max")]
        if pd.isna(values[0]):
            line.append(status("none"))
        else:
            spread = fmt.span(*values[1:]) if row.seeds > 1 else ""
            line.append(Entry(fmt.significant(values[0]), detail=spread))
    return [*line, _difference(row)]


def _difference(row: Any) -> Entry:
    if row.reference:
        return Entry("reference")
    if pd.isna(row.difference):
        return status("no reference")
    flags = []
    if row.difference_of == "train_accuracy":
        flags.append("training set")
    if row.within_spread is None or pd.isna(row.within_spread):
        flags.append("one seed")
    elif row.within_spread:
        flags.append("within noise")
    return Entry(fmt.points(100 * row.difference), flags=tuple(flags))


def _reference_note(rows: pd.DataFrame) -> str:
    reference = rows[rows["reference"]]
    if reference.empty:
        return "The grid has no cell on 1 GPU, so there is nothing to compare with."
    batch = int(reference.iloc[0]["batch_size"])
    why = (
        ""
        if batch == large_batch.REFERENCE_BATCH
        else f", the smallest, as the grid has no {large_batch.REFERENCE_BATCH} there"
    )
    without = " It has no accuracy to compare with." if reference.iloc[0]["seeds"] == 0 else ""
    return f"The reference is batch {batch} on 1 GPU{why}.{without}"
