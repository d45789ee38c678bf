"""A cost model of one epoch, fitted to a study's times, and what it predicts.

    T(N,b) = I · (fixed + A(N) · communication) + D/N · image + W · waiting

I iterations of an epoch of D images; `fixed` seconds of a step whatever its batch; A(N) the
all-reduce of one step (see `allreduce`) and `communication` how much of it the epoch shows; `image`
seconds of compute per image, of which a GPU has D/N, as the last batch is a smaller one; W images
that one process loads and `waiting` the seconds it waits for each. The time without loading is the
same without its last term. All parameters are 0 or more.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from scaling.registry.strategy import STRATEGIES, Strategy
from scaling.tables import schema
from scaling.tables.limits import ring_factor

PARAMETERS = ["fixed", "image", "communication", "waiting"]
UNITS = {"fixed": "s a step", "image": "s an image", "waiting": "s an image"}
CONFIDENCE = 0.95
AllReduce = Callable[[int], float]
"""From a number of GPUs to the cost of one step's all-reduce; its unit is the caller's."""


@dataclass(frozen=True)
class CostModel:
    """Fitted parameters: those that the times determine, in the order of `PARAMETERS`.

    `covariance` is theirs, `residual` the relative standard deviation of a cell's time around the
    model, `quantile` Student's t for a 95 % interval. The last three give no interval (NaN) unless
    there are more cells than parameters.
    """

    strategy: Strategy
    allreduce: AllReduce
    names: list[str]
    values: NDArray[np.float64]
    covariance: NDArray[np.float64]
    residual: float
    quantile: float

    def interval(self, name: str) -> tuple[float, float, float]:
        """A parameter and its 95 % interval, which ends at 0; NaN where it is not determined."""
        if name not in self.names:
            return math.nan, math.nan, math.nan
        index = self.names.index(name)
        half = self.quantile * math.sqrt(self.covariance[index, index])
        return _interval(float(self.values[index]), half)

    def epoch_seconds(self, gpus: int, batch_size: int, samples: int) -> tuple[float, float, float]:
        """The epoch of `samples` images, and the 95 % interval of one measurement of it.

        The uncertainty of the parameters, and the residual of a single cell.
        """
        terms = np.array(_terms(self.strategy, gpus, batch_size, samples, self.allreduce))
        terms = terms[[PARAMETERS.index(name) for name in self.names]]
        value = float(terms @ self.values)
        variance = terms @ self.covariance @ terms + (self.residual * value) ** 2
        return _interval(value, self.quantile * math.sqrt(variance))


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
    for (recipe, name), cells in timed(timing).groupby(["recipe", "strategy"]):
        strategy, most = STRATEGIES.find(str(name)), int(cells["gpus"].max())
        has_sweep = strategy.all_reduces and len(fits) > 0
        measured = not fits["seconds_per_byte"].dropna().empty and not math.isnan(gradient_bytes)
        allreduce = (
            from_sweep(fits, gradient_bytes)
            if strategy.all_reduces and measured
            else lambda gpus, once=strategy.busiest_bytes: once(gpus, 1.0)
        )
        model, held_out = (
            fit(some, strategy, allreduce) for some in (cells, cells[cells["gpus"] < most])
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
        for gpus in (most << power for power in range(1, 32))
        if gpus <= model.strategy.most_gpus and gpus * batch <= samples
        if "communication" in model.names
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


def fit(cells: pd.DataFrame, strategy: Strategy, allreduce: AllReduce) -> CostModel | None:
    """The model of the timed cells of one recipe and strategy; None for fewer than 3 times.

    Least squares of relative errors (scipy's `curve_fit`), over the times with and without loading.
    These two of one cell are the same epochs, so their errors go together: each has half of the
    cell's weight, and the degrees of freedom are cells less parameters.
    A parameter that the times do not determine is left out, the last of `PARAMETERS` first: on one
    GPU nothing is communicated, and without a time without loading, waiting looks like compute.
    """
    if len(cells) < 3:
        return None
    # Here, as its import takes longer than many a script that only reads these tables.
    from scipy.optimize import curve_fit
    from scipy.special import stdtrit

    terms = np.array(
        [
            _terms(strategy, cell.gpus, cell.batch_size, int(cell.samples), allreduce)
            for cell in cells.itertuples()
        ]
    )
    times = cells[["epoch_seconds", "epoch_seconds_without_loading"]].to_numpy(float).ravel()
    known = ~np.isnan(times)
    # Without loading the last term, of waiting, is gone.
    rows = np.stack([terms, terms * [1, 1, 1, 0]], axis=1).reshape(-1, 4)[known]
    weights = np.repeat(1 / known.reshape(-1, 2).sum(axis=1), 2)[known]
    times = times[known]
    deviations = times / np.sqrt(weights)
    # In relative error every time counts the same.
    names = _determined(rows / times[:, None])
    chosen = rows[:, [PARAMETERS.index(name) for name in names]]
    values, unscaled = curve_fit(
        lambda terms, *parameters: terms @ np.array(parameters),
        chosen,
        times,
        p0=np.full(len(names), 1e-4),
        sigma=deviations,
        absolute_sigma=True,
        bounds=(0, np.inf),
    )
    freedom = len(cells) - len(names)
    variance, quantile = math.nan, math.nan
    if freedom > 0:
        variance = float(np.sum(((times - chosen @ values) / deviations) ** 2)) / freedom
        quantile = float(stdtrit(freedom, (1 + CONFIDENCE) / 2))
    covariance = variance * unscaled
    return CostModel(strategy, allreduce, names, values, covariance, math.sqrt(variance), quantile)


def from_sweep(fits: pd.DataFrame, gradient_bytes: float) -> AllReduce:
    """A(N) in seconds, from the lines fitted through measured all-reduces (`interconnect.fit`).

    latency · 2(N-1) + 2(N-1)/N · K / bandwidth: a ring's steps and bytes, with the latency of a
    step and the bandwidth that agree best with the lines of all measured N. `communication` is
    then the share of it that the epoch shows.
    """
    known = fits.dropna(subset=["latency_seconds", "seconds_per_byte"])
    steps = 2 * (known["gpus"] - 1)
    # The best single factor of y = factor · x in relative error is the mean of y / x.
    latency = max(0.0, float((known["latency_seconds"] / steps).mean()))
    seconds_per_byte = float((known["seconds_per_byte"] / ring_factor(known["gpus"])).mean())

    def seconds(gpus: int) -> float:
        return latency * 2 * (gpus - 1) + ring_factor(gpus) * gradient_bytes * seconds_per_byte

    return seconds


def _interval(value: float, half: float) -> tuple[float, float, float]:
    # maximum(), unlike max(), keeps a NaN.
    return value, float(np.maximum(0.0, value - half)), value + half


def _terms(
    strategy: Strategy, gpus: int, batch_size: int, samples: int, allreduce: AllReduce
) -> list[float]:
    """What each of `PARAMETERS` is multiplied by, for one epoch."""
    iterations = math.ceil(samples / (gpus * batch_size))
    communication = iterations * allreduce(gpus) if gpus > 1 else 0.0
    # Each process loads for its GPUs: that of DataParallel for all.
    return [iterations, samples / gpus, communication, samples / strategy.processes(gpus)]


def _determined(rows: NDArray[np.float64]) -> list[str]:
    """The parameters whose columns are independent; a later one yields to the earlier ones."""
    kept: list[str] = []
    for name in PARAMETERS:
        columns = rows[:, [PARAMETERS.index(other) for other in [*kept, name]]]
        scale = np.linalg.norm(columns, axis=0)
        if (scale > 0).all() and np.linalg.matrix_rank(columns / scale, tol=1e-6) == len(scale):
            kept.append(name)
    return kept


def timed(cells: pd.DataFrame) -> pd.DataFrame:
    """The cells whose times a model may use: ok, and no larger than the training set."""
    possible = cells["gpus"] * cells["batch_size"] <= cells["samples"]
    return cells[(cells["status"] == "ok") & cells["epoch_seconds"].notna() & possible]
