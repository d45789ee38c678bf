"""The report's section on prediction: the cost model, its test, what it says, what to do."""

from typing import Any

import pandas as pd

from scaling.claims.claim_tables import measured, row_at
from scaling.core import numbers as fmt
from scaling.registry.strategy import STRATEGIES
from scaling.report.table import Column, Table, TableCell, make_table, status
from scaling.tables.cost_model import timed
from scaling.tables.prediction import limit
from scaling.tables.schema import DerivedTables, by_configuration

MEANINGS = {
    "fixed": "a step, whatever its batch",
    "image": "computing one image",
    "communication": "the all-reduce of a step: its share that the epoch shows where it was "
    "measured, else the seconds in which the gradients travel once",
    "waiting": "waiting for one image that a process loads; with DataParallel, all that the one "
    "process does alone",
}
EFFICIENT = 0.8
BAD_MEDIAN, BAD_WORST = 0.1, 0.2
"""Errors of the cells left out above which the model is said to predict badly: median, worst."""


def prediction(tables: DerivedTables) -> dict[str, Any]:
    """The parameters, the test on the cells left out, the predictions, the recommendation."""
    predicted = _with_expected_errors(tables.prediction)
    unmeasured = predicted[~predicted["measured"]].sort_values(["batch_size", "gpus"])
    tested = predicted[predicted["held_out_seconds"].notna()]
    return {
        "models": [
            make_table(f"Cost model: {recipe}, {strategy}", rows, MODEL, notes=_notes(rows))
            for recipe, strategy, rows in by_configuration(tables.cost_model)
        ],
        "held_out": _tables("Predicted without having seen them", tested, HELD_OUT),
        "predictions": _tables("Not measured, predicted", unmeasured, PREDICTIONS),
        "most_gpus": max(STRATEGIES.find(name).most_gpus for name in STRATEGIES.names()),
        "recommendation": recommendation(tables),
    }


def _tables(title: str, rows: pd.DataFrame, columns: list[Column]) -> list[Table]:
    return [
        make_table(f"{title}: {recipe}, {strategy}", same, columns)
        for recipe, strategy, same in by_configuration(rows)
    ]


def _no_value(row: Any) -> TableCell | None:
    return status(row.note) if pd.isna(row.value) else None


def _scaled(row: Any, value: float) -> float:
    """Seconds of an image in microseconds."""
    return (1e6 if row.unit.startswith("s ") else 1) * value


def _unit(row: Any) -> str:
    per_image = row.unit.startswith("s ")
    return f"{'µs' if per_image else ''} {row.unit.removeprefix('s ')}".strip()


def _signed(share: float) -> str:
    """A relative error: `+13 %`, `−4.2 %`."""
    return ("+" if share > 0 else "") + fmt.percent(share)


MODEL = [
    Column("parameter", lambda row: row.parameter or "model", kind="head"),
    Column(
        "value, 95 % interval",
        lambda row: _scaled(row, row.value),
        fmt.significant,
        detail=lambda row: (
            "" if pd.isna(row.high) else fmt.span(_scaled(row, row.low), _scaled(row, row.high))
        ),
        instead=_no_value,
    ),
    Column("unit", _unit, kind="text", instead=_no_value),
    Column(
        "cost of",
        lambda row: None if pd.isna(row.value) else MEANINGS[row.parameter],
        kind="text",
    ),
]
HELD_OUT = [
    Column("GPUs × b", lambda row: f"{int(row.gpus)} × {int(row.batch_size)}", kind="head"),
    Column("measured, s", "epoch_seconds", fmt.significant),
    Column("predicted, s", "held_out_seconds", fmt.significant),
    Column("error", "held_out_error", _signed),
]
PREDICTIONS = [
    Column("b × GPUs", lambda row: f"{int(row.batch_size)} × {int(row.gpus)}", kind="head"),
    Column(
        "epoch, s",
        "predicted_seconds",
        fmt.significant,
        detail=lambda row: (
            "" if pd.isna(row.high_seconds) else fmt.span(row.low_seconds, row.high_seconds)
        ),
    ),
    Column("efficiency", "predicted_efficiency", fmt.percent),
    Column("GPU-seconds", "gpu_seconds", fmt.significant),
    Column("error on the cells left out", "expected_error"),
]


def _notes(rows: pd.DataFrame) -> list[str]:
    if rows["cells"].isna().all():
        return []
    fitted = [f"fitted to {fmt.plural(int(rows['cells'].iloc[0]), 'cell')}"]
    if rows["value"].notna().any() and rows["high"].isna().all():
        fitted.append("no intervals: there are no more cells than parameters")
    return [*fitted, *filter(None, [limit(rows)])]


def _with_expected_errors(predictions: pd.DataFrame) -> pd.DataFrame:
    """`predictions` with how far off the model was at the batch size, as `expected_error`."""
    judged = predictions.dropna(subset="held_out_error")
    own = {
        (row.recipe, row.strategy, row.batch_size): _signed(row.held_out_error)
        for row in judged.itertuples()
    }
    worst = judged.assign(error=judged["held_out_error"].abs()).groupby(["recipe", "strategy"])
    most = {key: f"up to {fmt.percent(error)}" for key, error in worst["error"].max().items()}
    return predictions.assign(
        expected_error=[
            own.get((*key, batch), most.get(key, "unknown"))
            for *pair, batch in predictions[["recipe", "strategy", "batch_size"]].to_numpy()
            for key in [tuple(pair)]
        ]
    )


def recommendation(tables: DerivedTables) -> dict[str, Any]:
    """Find the fastest cell, the cheapest, the most GPUs that are efficient, and what is beyond.

    Each is a row of a table, or None; `beyond` has what each model says of more GPUs than were
    measured.
    """
    cells = timed(tables.timing)
    cells = cells.assign(gpu_seconds=cells["gpus"] * cells["epoch_seconds"])
    efficient = measured(tables.speedup, "efficiency")
    efficient = efficient[(efficient["gpus"] > 1) & (efficient["efficiency"] >= EFFICIENT)]
    return {
        "fastest": least(cells, "epoch_seconds"),
        "cheapest": least(cells, "gpu_seconds"),
        "efficient": _most_gpus(efficient, "efficiency"),
        "enough": EFFICIENT,
        "beyond": [
            found
            for recipe, strategy, rows in by_configuration(tables.prediction)
            if (found := _beyond(rows, tables.cost_model, recipe, strategy))
        ],
    }


def least(cells: pd.DataFrame, column: str) -> Any | None:
    """The row with the smallest value of a column; None without rows."""
    return row_at(cells, cells[column].idxmin()) if len(cells) else None


def _most_gpus(cells: pd.DataFrame, column: str) -> Any | None:
    """The row with the largest value of a column among those on the most GPUs."""
    if cells.empty:
        return None
    most = cells[cells["gpus"] == cells["gpus"].max()]
    return row_at(most, most[column].idxmax())


def _beyond(
    rows: pd.DataFrame, models: pd.DataFrame, recipe: str, strategy: str
) -> dict[str, Any] | None:
    unmeasured = rows[~rows["measured"]]
    model = models[(models["recipe"] == recipe) & (models["strategy"] == strategy)]
    if unmeasured.empty or model.empty:
        return None
    first = next(model.itertuples())
    good = unmeasured[unmeasured["predicted_efficiency"] >= EFFICIENT]
    return {
        "fastest": least(unmeasured, "predicted_seconds"),
        "efficient": _most_gpus(good, "predicted_efficiency"),
        "model": first,
        "bad": first.median_error > BAD_MEDIAN or first.worst_error > BAD_WORST,
        "limit": limit(model),
    }
