"""Question 4 of the report: loss and accuracy, with large batches and from recipe to recipe."""

from typing import Any

import pandas as pd

from scaling.core import numbers as fmt
from scaling.report.sections.techniques import (
    GPUS_AND_BATCH,
    QUANTITIES,
    is_reference,
    mean_and_range,
    techniques,
)
from scaling.report.table import Column, Table, TableCell, make_table, status
from scaling.tables import accuracy as learning
from scaling.tables.schema import StudyTables, by_configuration


def large_batches(tables: StudyTables) -> dict[str, Any]:
    """Every cell after equal epochs against the reference; recipes side by side; techniques."""
    cells = learning.compare_batches(tables.timing, tables.accuracy)
    configurations = by_configuration(cells) if len(cells) else []
    return {
        "tables": [
            _after_equal_epochs(f"{recipe}, {strategy}", rows)
            for recipe, strategy, rows in configurations
        ],
        "recipes": _recipe_tables(tables.accuracy),
        "remedies": techniques(tables),
    }


def _after_equal_epochs(name: str, rows: pd.DataFrame) -> Table:
    epoch = rows["epoch"].max()
    when = "no epoch" if pd.isna(epoch) else f"epoch {int(epoch)}"
    training, test = f"training set, {when}", "test set, after the last epoch"
    return make_table(
        f"{name}: after {when}",
        rows.sort_values(["global_batch_size", "gpus"]),
        [
            Column("global batch", "global_batch_size", fmt.integer, "head"),
            GPUS_AND_BATCH,
            Column(
                "status",
                "status",
                kind="text",
                instead=lambda row: None if row.status == "ok" else status(row.status),
            ),
            Column("seeds", "seeds", fmt.integer),
            *(
                mean_and_range(label, f"{part}_{label.split(',')[0]}", "none", _no_accuracy, group)
                for part, group in (("train", training), ("test", test))
                for label in ("loss", "accuracy, %")
            ),
            DIFFERENCE,
        ],
        notes=[_reference_note(rows)],
    )


def _no_accuracy(row: Any) -> TableCell | None:
    return status("no accuracy") if row.seeds == 0 else None


def _difference_flags(row: Any) -> tuple[str, ...]:
    flags = ("training set",) if row.difference_of == "train_accuracy" else ()
    if row.within_spread is None or pd.isna(row.within_spread):
        return (*flags, "one seed")
    return (*flags, "within noise") if row.within_spread else flags


DIFFERENCE = Column(
    "accuracy minus reference, points",
    lambda row: 100 * row.difference,
    fmt.points,
    flags=_difference_flags,
    missing="no reference",
    instead=lambda row: _no_accuracy(row) or is_reference(row),
)


def _reference_note(rows: pd.DataFrame) -> str:
    reference = rows[rows["reference"]]
    if reference.empty:
        return "The grid has no cell on 1 GPU, so there is nothing to compare with."
    batch, usual = int(reference.iloc[0]["batch_size"]), learning.REFERENCE_BATCH
    why = "" if batch == usual else f", the smallest, as the grid has no {usual} there"
    without = " It has no accuracy to compare with." if reference.iloc[0]["seeds"] == 0 else ""
    return f"The reference is batch {batch} on 1 GPU{why}.{without}"


def _recipe_tables(accuracy: pd.DataFrame) -> list[Table]:
    """One table for each pair of recipes that share a cell."""
    pairs = learning.compare_recipes(accuracy)
    if pairs.empty:
        return []
    return [
        make_table(
            f"{first} and {second}: after the last epoch",
            rows,
            [
                Column(
                    "strategy, GPUs × batch size",
                    lambda row: f"{row.strategy}, {row.gpus} × {row.batch_size}",
                    kind="head",
                    per=("strategy", "gpus", "batch_size"),
                ),
                Column("quantity", lambda row: QUANTITIES[row.quantity][0], kind="text"),
                Column("epochs", _epochs),
                _of_recipe("first", str(first)),
                _of_recipe("second", str(second)),
                Column(
                    f"{second} minus {first}",
                    lambda row: _written(row, row.difference, "+"),
                    missing="none",
                ),
                Column("95 % interval", _interval, missing="none"),
                Column("verdict", "verdict", kind="text", instead=_undecided),
            ],
        )
        for (first, second), rows in pairs.groupby(["first", "second"], sort=False)
    ]


def _epochs(row: Any) -> str:
    epochs = dict.fromkeys((*row.first_epochs, *row.second_epochs))
    return " and ".join(map(str, epochs)) or "none"


def _written(row: Any, value: float, sign: str = "") -> str | None:
    """A figure of the quantity of `row`, with its decimals; None where there is none."""
    _, factor, decimals = QUANTITIES[row.quantity]
    return None if pd.isna(value) else f"{factor * value:{sign}.{decimals}f}".replace("-", "−")


def _of_recipe(which: str, recipe: str) -> Column:
    def spread(row: Any) -> str:
        deviation = _written(row, getattr(row, f"{which}_std"))
        seeds = fmt.plural(getattr(row, f"{which}_seeds"), "seed")
        return f"± {deviation}, {seeds}" if deviation else seeds

    return Column(
        recipe,
        lambda row: _written(row, getattr(row, f"{which}_mean")),
        detail=spread,
        missing="none",
    )


def _interval(row: Any) -> str | None:
    low = _written(row, row.low, "+")
    return f"{low} to {_written(row, row.high, '+')}" if low else None


def _undecided(row: Any) -> TableCell | None:
    undecided = row.verdict == learning.UNDECIDED
    return TableCell(row.verdict, detail=row.reason, kind="status") if undecided else None
