"""What the cost model says of every measured cell, and of those that nobody measured."""

import math
from typing import Any

import pandas as pd

from scaling.registry.strategy import STRATEGIES
from scaling.tables import cost_model, schema
from scaling.tables.cost_model import PARAMETERS, CostModel

UNITS = {"fixed": "s a step", "image": "s an image", "waiting": "s an image"}


def predict(
    timing: pd.DataFrame, fits: pd.DataFrame, gradient_bytes: float
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The tables cost_model (of parameters) and prediction of a study.

    A model for each recipe and strategy, from its cells that are ok. It is judged by leaving out
    the largest number of GPUs: `held_out_seconds` is what a model of the others predicts there,
    `median_error` and `worst_error` how far off it is (a share, without sign). Predicted are the
    measured cells, and twice, four times, … as many GPUs as were measured, up to the strategy's
    `most_gpus`, for each batch size, as far as the training set has images.
    `predicted_efficiency` is T(1,b) / T(N,b) / N of the model, `gpu_seconds` N · T(N,b).
    """
    parameters: list[dict[str, Any]] = []
    rows: list[dict[str, Any]] = []
    for (recipe, name), cells in cost_model.timed(timing).groupby(["recipe", "strategy"]):
        strategy, most = STRATEGIES.find(str(name)), int(cells["gpus"].max())
        has_sweep = strategy.all_reduces and len(fits) > 0
        measured = not fits["seconds_per_byte"].dropna().empty and not math.isnan(gradient_bytes)
        allreduce = (
            cost_model.from_sweep(fits, gradient_bytes)
            if strategy.all_reduces and measured
            else lambda gpus, once=strategy.busiest_bytes: once(gpus, 1.0)
        )
        model, held_out = (
            cost_model.fit(some, strategy, allreduce)
            for some in (cells, cells[cells["gpus"] < most])
        )
        key = {"recipe": recipe, "strategy": name}
        predicted = [key | row for row in _rows(cells, model, held_out)] if model else []
        errors = pd.Series(
            [abs(row["held_out_error"]) for row in predicted if "held_out_error" in row],
            dtype=float,
        )
        judged = {
            "cells": len(cells),
            "held_out_gpus": most if len(errors) else math.nan,
            "held_out_cells": len(errors),
            "median_error": errors.median(),
            "worst_error": errors.max(),
        }
        rows += predicted
        if model is None:
            parameters.append({**key, "note": "fewer than 3 cells with a time", **judged})
            continue
        communication = "of the all-reduce" if has_sweep else "s of travel"
        units = {**UNITS, "communication": communication}
        for parameter in PARAMETERS:
            value, low, high = model.interval(parameter)
            note = "" if parameter in model.names else "the times do not determine it"
            found = {"parameter": parameter, "unit": units[parameter], "note": note}
            parameters.append({**key, **found, "value": value, "low": low, "high": high, **judged})
    return (
        schema.frame("cost_model", parameters),
        # Without a row the column would have no type, and could not be negated.
        schema.arrange("prediction", rows).astype({"measured": bool}),
    )


def _rows(
    cells: pd.DataFrame, model: CostModel, held_out: CostModel | None
) -> list[dict[str, Any]]:
    samples, most = int(cells["samples"].max()), int(cells["gpus"].max())
    measured = {(row.gpus, row.batch_size): row.epoch_seconds for row in cells.itertuples()}
    beyond = [
        (gpus, batch)
        for batch in sorted({int(size) for size in cells["batch_size"]})
        for gpus in cost_model.doublings(2 * most, model.strategy.most_gpus)
        if gpus * batch <= samples and "communication" in model.names
    ]
    found = []
    for gpus, batch in [*measured, *beyond]:
        value, low, high = model.epoch_seconds(gpus, batch, samples)
        single = model.epoch_seconds(1, batch, samples)[0]
        row: dict[str, Any] = {
            "gpus": gpus,
            "batch_size": batch,
            "measured": (gpus, batch) in measured,
            "predicted_seconds": value,
            "low_seconds": low,
            "high_seconds": high,
            "predicted_efficiency": single / value / gpus,
            "gpu_seconds": gpus * value,
        }
        if seconds := measured.get((gpus, batch)):
            row |= {"epoch_seconds": seconds, "error": value / seconds - 1}
            if held_out and gpus == most and "communication" in held_out.names:
                without = held_out.epoch_seconds(gpus, batch, samples)[0]
                row |= {"held_out_seconds": without, "held_out_error": without / seconds - 1}
        found.append(row)
    return found
