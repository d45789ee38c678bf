"""What the cost model predicts, and how far off it and simpler models are in unseen cells."""

import math
from typing import Any

import numpy as np
import pandas as pd

from scaling.registry.strategy import STRATEGIES, Strategy
from scaling.tables import schema
from scaling.tables.prediction.cost_model import PARAMETERS, CostModel, fit, timed
from scaling.tables.prediction.links import AllReduce, Links, allreduce, links

UNITS = {"fixed": "s a step", "image": "s an image", "waiting": "s an image"}
LARGEST, ONE_CELL = "largest N", "one cell"
"""What is left out: all cells on the most GPUs at once, or each cell by itself."""
TABLES = ("cost_model", "prediction", "prediction_check")
PREDICTORS = ["cost model", "scales perfectly", "nearest cell"]


def predict(
    timing: pd.DataFrame,
    fits: pd.DataFrame,
    gradient_bytes: float,
    gpus_per_node: int | None = None,
    between_nodes_gb_per_s: float | None = None,
) -> dict[str, pd.DataFrame]:
    """The tables cost_model (of parameters), prediction and prediction_check of a study.

    A model for each recipe and strategy, from its cells that are ok. Predicted are the measured
    cells (`held_out_seconds` without the cells on the most GPUs, `left_out_seconds` without the
    cell itself), and twice, four times, … as many GPUs as were measured, up to the strategy's
    `most_gpus`, for each batch size, as far as the training set has images. The latter are guesses,
    which have no interval; `basis` says so, and which link they take. A node has `gpus_per_node`
    GPUs, or as many as were measured. `predicted_efficiency` is T(1,b) / T(N,b) / N of the model,
    `gpu_seconds` N · T(N,b). For prediction_check see `_check`; `median_error` and `worst_error` of
    cost_model are those of the largest N, in all its cells.
    """
    found: dict[str, list[dict[str, Any]]] = {name: [] for name in TABLES}
    node = gpus_per_node or timing["gpus"].max()
    for (recipe, name), cells in timed(timing).groupby(["recipe", "strategy"]):
        strategy, key = STRATEGIES.find(str(name)), {"recipe": recipe, "strategy": name}
        one_node = node if strategy.spans_nodes else strategy.most_gpus
        link = links(fits, one_node, between_nodes_gb_per_s)
        own, unit = allreduce(strategy, link, gradient_bytes)
        model, unseen = fit(cells, strategy, own), _unseen(cells, strategy, own)
        largest = unseen[unseen["check"].eq(LARGEST) & unseen["cost model"].notna()]
        errors = (largest["cost model"] / largest["epoch_seconds"] - 1).abs()
        judged: dict[str, Any] = {**key, "cells": len(cells), "held_out_cells": len(errors)}
        judged |= {"held_out_gpus": cells["gpus"].max() if len(errors) else math.nan}
        judged |= {"median_error": errors.median(), "worst_error": errors.max()}
        if model is None:
            found["cost_model"].append({**judged, "note": "fewer than 3 cells with a time"})
            continue
        for parameter in PARAMETERS:
            figures = dict(zip(("value", "low", "high"), model.interval(parameter), strict=True))
            note = "" if parameter in model.names else "the times do not determine it"
            row = {"parameter": parameter, "unit": UNITS.get(parameter, unit), "note": note}
            found["cost_model"].append(judged | row | figures)
        found["prediction"] += [key | row for row in _rows(cells, model, unseen, link)]
        found["prediction_check"] += [key | row for row in _check(unseen)]
    tables = {name: schema.frame(name, rows) for name, rows in found.items()}
    # Without a row the column would have no type, and could not be negated.
    prediction = schema.arrange("prediction", tables["prediction"]).astype({"measured": bool})
    return tables | {"prediction": prediction}


def _rows(
    cells: pd.DataFrame, model: CostModel, unseen: pd.DataFrame, link: Links
) -> list[dict[str, Any]]:
    samples, most = int(cells["samples"].max()), int(cells["gpus"].max())
    measured = {(row.gpus, row.batch_size): row.epoch_seconds for row in schema.rows_of(cells)}
    without = unseen.set_index(["check", "gpus", "batch_size"])["cost model"].to_dict()
    beyond = [
        (gpus, batch)
        for batch in sorted({int(size) for size in cells["batch_size"]})
        for gpus in (most << power for power in range(1, 32))
        if gpus <= model.strategy.most_gpus and gpus * batch <= samples
        if "communication" in model.names
    ]
    found = []
    for gpus, batch in [*measured, *beyond]:
        value, low, high = model.epoch_seconds(gpus, batch, samples)
        row: dict[str, Any] = {
            "gpus": gpus,
            "batch_size": batch,
            "measured": (gpus, batch) in measured,
            "basis": f"a guess, {link(gpus).source}",
            "predicted_seconds": value,
            "predicted_efficiency": model.epoch_seconds(1, batch, samples)[0] / value / gpus,
            "gpu_seconds": gpus * value,
        }
        if seconds := measured.get((gpus, batch)):
            row |= {"basis": "measured", "low_seconds": low, "high_seconds": high}
            row |= {"epoch_seconds": seconds, "error": value / seconds - 1}
            for name, check in (("held_out", LARGEST), ("left_out", ONE_CELL)):
                other = without.get((check, gpus, batch), math.nan)
                row |= {f"{name}_seconds": other, f"{name}_error": other / seconds - 1}
        found.append(row)
    return found


def _unseen(cells: pd.DataFrame, strategy: Strategy, own: AllReduce) -> pd.DataFrame:
    """Seconds of cells by each of `PREDICTORS`, from the cells that a check leaves."""
    parts = [(LARGEST, cells[cells["gpus"] == cells["gpus"].max()])]
    parts += [(ONE_CELL, cells.loc[[label]]) for label in cells.index]
    rows = []
    for check, tested in parts:
        seen = cells.drop(tested.index)
        model = fit(seen, strategy, own)
        for cell in tested.itertuples():
            place = (cell.gpus, cell.batch_size, int(cell.samples))
            found = {"cost model": math.nan, "communicates": False}
            if model and (cell.gpus == 1 or "communication" in model.names):
                found["cost model"] = model.epoch_seconds(*place)[0]
                found["communicates"] = model.communicates(*place)
            rows.append({**cell._asdict(), "check": check, **found, **_simple(cell, seen)})
    return pd.DataFrame(rows)


def _simple(cell: Any, seen: pd.DataFrame) -> dict[str, float]:
    """Seconds of a cell by the two simple models; NaN where `seen` has not what they need.

    Perfect scaling is T(1,b) / N, of several GPUs alone. The nearest cell, on as many GPUs or on
    the next number, and then of the next batch size, has as many images a second and GPU.
    """
    if cell.gpus == 1 or seen.empty:
        return dict.fromkeys(PREDICTORS[1:], math.nan)
    single = seen[(seen["gpus"] == 1) & (seen["batch_size"] == cell.batch_size)]["epoch_seconds"]
    apart = [np.log2(seen[key] / getattr(cell, key)).abs() for key in ("gpus", "batch_size")]
    near = seen.loc[pd.concat(apart, axis=1).sort_values(["gpus", "batch_size"]).index[0]]
    nearest = near["epoch_seconds"] * near["gpus"] / cell.gpus
    return dict(zip(PREDICTORS[1:], (single.sum(min_count=1) / cell.gpus, nearest), strict=True))


def _check(unseen: pd.DataFrame) -> list[dict[str, Any]]:
    """How far off each predictor is (a share, without sign), in the cells where all of them are.

    These are on several GPUs. A cost model whose communication was fitted as 0 tests none of it,
    however small its errors: `note` says in how many cells.
    """
    rows = []
    for check, tested in unseen.dropna(subset=PREDICTORS).groupby("check", sort=False):
        blind = int((~tested["communicates"].astype(bool)).sum())
        note = f"tests no communication, fitted as 0 ({blind} of {len(tested)} cells)"
        for name in PREDICTORS:
            errors = (tested[name] / tested["epoch_seconds"] - 1).abs()
            row = {"check": check, "predictor": name, "cells": len(tested)}
            row |= {"median_error": errors.median(), "worst_error": errors.max()}
            rows.append({**row, "note": note if blind and name == PREDICTORS[0] else ""})
    return rows
