"""Question 4 of the report: loss and accuracy, with large batches and from recipe to recipe."""

from typing import Any

import pandas as pd

from scaling.core import numbers as fmt
from scaling.report.sections import remedies
from scaling.report.table import Table, TableCell, head, status, text
from scaling.tables import large_batch, recipe_quality
from scaling.tables.schema import StudyTables, by_configuration


def large_batches(tables: StudyTables) -> dict[str, Any]:
    """Every cell after equal epochs against the reference; recipes side by side; remedies."""
    shared = {
        "recipes": _recipe_tables(tables.accuracy),
        "remedies": remedies.remedies(tables),
    }
    if tables.timing.empty:
        return {"tables": [], **shared}
    cells = large_batch.compare(tables.timing, tables.accuracy)
    return {
        "tables": [
            _table(f"{recipe}, {strategy}", rows)
            for recipe, strategy, rows in by_configuration(cells)
        ],
        **shared,
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


def _row(row: Any) -> list[TableCell]:
    line = [
        head(str(row.global_batch_size)),
        text(f"{row.gpus} × {row.batch_size}"),
        status(row.status) if row.status != "ok" else text("ok"),
        TableCell(str(int(row.seeds))),
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
            line.append(TableCell(fmt.significant(values[0]), detail=spread))
    return [*line, _difference(row)]


def _difference(row: Any) -> TableCell:
    if row.reference:
        return TableCell("reference")
    if pd.isna(row.difference):
        return status("no reference")
    flags = []
    if row.difference_of == "train_accuracy":
        flags.append("training set")
    if row.within_spread is None or pd.isna(row.within_spread):
        flags.append("one seed")
    elif row.within_spread:
        flags.append("within noise")
    return TableCell(fmt.points(100 * row.difference), flags=tuple(flags))


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


def _recipe_tables(accuracy: pd.DataFrame) -> list[Table]:
    """One table for each pair of recipes that share a cell."""
    pairs = recipe_quality.compare(accuracy)
    if pairs.empty:
        return []
    return [
        Table(
            title=f"{first} and {second}: after the last epoch",
            columns=[
                *("strategy, GPUs × batch size", "quantity", "epochs", str(first), str(second)),
                *(f"{second} minus {first}", "95 % interval", "verdict"),
            ],
            rows=[
                _recipe_row(row, heads=index % len(QUANTITIES) == 0)
                for index, row in enumerate(rows.itertuples())
            ],
            text_columns=frozenset({"strategy, GPUs × batch size", "quantity", "verdict"}),
        )
        for (first, second), rows in pairs.groupby(["first", "second"], sort=False)
    ]


QUANTITIES = {
    "train_loss": ("training loss", 1, 3),
    "train_accuracy": ("training accuracy, %", 100, 2),
    "test_accuracy": ("test accuracy, %", 100, 2),
}
"""Of each quantity of `recipe_quality`: its name, the factor and the decimals it is shown with."""


def _recipe_row(row: Any, heads: bool) -> list[TableCell]:
    name, factor, decimals = QUANTITIES[row.quantity]

    def written(value: float, sign: str = "") -> str:
        return f"{factor * value:{sign}.{decimals}f}".replace("-", "−")

    line = []
    if heads:
        place = f"{row.strategy}, {row.gpus} × {row.batch_size}"
        line.append(head(place, rows=len(QUANTITIES)))
    epochs = [*dict.fromkeys((*row.first_epochs, *row.second_epochs))]
    line += [text(name), TableCell(" and ".join(map(str, epochs)) or "none")]
    for recipe in ("first", "second"):
        mean, deviation, seeds = (
            getattr(row, f"{recipe}_{figure}") for figure in ("mean", "std", "seeds")
        )
        spread = "" if pd.isna(deviation) else f"± {written(deviation)}, "
        detail = spread + fmt.plural(seeds, "seed")
        line.append(TableCell(written(mean), detail=detail) if seeds else status("none"))
    line.append(
        status("none") if pd.isna(row.difference) else TableCell(written(row.difference, "+"))
    )
    if row.verdict == recipe_quality.UNDECIDED:
        return [*line, status("none"), TableCell(row.verdict, detail=row.reason, kind="status")]
    return [
        *line,
        TableCell(f"{written(row.low, '+')} to {written(row.high, '+')}"),
        text(row.verdict),
    ]
