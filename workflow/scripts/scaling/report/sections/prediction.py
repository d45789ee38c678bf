"""The report's section on prediction: the cost model, its test, what it says, what to do."""

from typing import Any

import pandas as pd

from scaling.core import numbers as fmt
from scaling.report.recommendation import recommend
from scaling.report.table import Table, TableCell, head, status, text
from scaling.tables.derived import DerivedTables
from scaling.tables.prediction import MOST_GPUS, limit
from scaling.tables.schema import by_configuration

MEANINGS = {
    "fixed": "a step, whatever its batch",
    "image": "computing one image",
    "communication": "the all-reduce of a step: its share that the epoch shows where it was "
    "measured, else the seconds in which the gradients travel once",
    "waiting": "waiting for one image that a process loads; with DataParallel, all that the one "
    "process does alone",
}


def prediction(tables: DerivedTables) -> dict[str, Any]:
    """The parameters, the test on the cells left out, the predictions, the recommendation."""
    return {
        "models": [
            _model(f"Cost model: {recipe}, {strategy}", rows)
            for recipe, strategy, rows in by_configuration(tables.cost_model)
        ],
        "held_out": [
            _held_out(f"Predicted without having seen them: {recipe}, {strategy}", rows)
            for recipe, strategy, rows in by_configuration(
                tables.prediction[tables.prediction["held_out_seconds"].notna()]
            )
        ],
        "predictions": [
            _predictions(f"Not measured, predicted: {recipe}, {strategy}", rows, tables.prediction)
            for recipe, strategy, rows in by_configuration(
                tables.prediction[~tables.prediction["measured"]]
            )
        ],
        "most_gpus": max(MOST_GPUS[strategy] for strategy in MOST_GPUS),
        "recommendation": recommend(tables),
    }


def _model(title: str, rows: pd.DataFrame) -> Table:
    lines = []
    for row in rows.itertuples():
        if pd.isna(row.value):
            lines.append([head(row.parameter or "model"), status(row.note, 2), text("–")])
            continue
        # Seconds of an image are microseconds.
        scale, unit = (1e6, "µs") if row.unit.startswith("s ") else (1, "")
        value, low, high = (scale * number for number in (row.value, row.low, row.high))
        known = "" if pd.isna(high) else fmt.span(low, high)
        rest = row.unit.removeprefix("s ")
        lines.append(
            [
                head(row.parameter),
                TableCell(fmt.significant(value), detail=known),
                text(f"{unit} {rest}".strip()),
                text(MEANINGS[row.parameter]),
            ]
        )
    return Table(
        title=title,
        columns=["parameter", "value, 95 % interval", "unit", "cost of"],
        rows=lines,
        text_columns=frozenset({"unit", "cost of"}),
        notes=_notes(rows),
    )


def _notes(rows: pd.DataFrame) -> list[str]:
    if rows["cells"].isna().all():
        return []
    fitted = [f"fitted to {fmt.plural(int(rows['cells'].iloc[0]), 'cell')}"]
    if rows["value"].notna().any() and rows["high"].isna().all():
        fitted.append("no intervals: there are no more cells than parameters")
    return [*fitted, *filter(None, [limit(rows)])]


def _held_out(title: str, rows: pd.DataFrame) -> Table:
    return Table(
        title=title,
        columns=["GPUs × b", "measured, s", "predicted, s", "error"],
        rows=[
            [
                head(f"{int(row.gpus)} × {int(row.batch_size)}"),
                TableCell(fmt.significant(row.epoch_seconds)),
                TableCell(fmt.significant(row.held_out_seconds)),
                TableCell(_signed(row.held_out_error)),
            ]
            for row in rows.itertuples()
        ],
    )


def _predictions(title: str, rows: pd.DataFrame, all_rows: pd.DataFrame) -> Table:
    same = all_rows[
        (all_rows["recipe"] == rows["recipe"].iloc[0])
        & (all_rows["strategy"] == rows["strategy"].iloc[0])
    ]
    judged = same.dropna(subset="held_out_error")
    own = dict(zip(judged["batch_size"], judged["held_out_error"], strict=True))
    worst = judged["held_out_error"].abs().max()
    return Table(
        title=title,
        columns=[
            *("b × GPUs", "epoch, s", "efficiency", "GPU-seconds"),
            "error on the cells left out",
        ],
        rows=[
            [
                head(f"{int(row.batch_size)} × {int(row.gpus)}"),
                TableCell(
                    fmt.significant(row.predicted_seconds),
                    detail=""
                    if pd.isna(row.high_seconds)
                    else fmt.span(row.low_seconds, row.high_seconds),
                ),
                TableCell(fmt.percent(row.predicted_efficiency)),
                TableCell(fmt.significant(row.gpu_seconds)),
                TableCell(
                    _signed(own[row.batch_size])
                    if row.batch_size in own
                    else "unknown"
                    if pd.isna(worst)
                    else f"up to {fmt.percent(worst)}"
                ),
            ]
            for row in rows.sort_values(["batch_size", "gpus"]).itertuples()
        ],
    )


def _signed(share: float) -> str:
    """A relative error: `+13 %`, `−4.2 %`."""
    return ("+" if share > 0 else "") + fmt.percent(share)
