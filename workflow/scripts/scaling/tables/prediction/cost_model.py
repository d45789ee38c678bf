"""A cost model of one epoch, fitted to a study's times, and what it predicts.

    T(N,b) = I · (fixed + A(N) · communication) + D/N · image + W · waiting

I iterations of an epoch of D images; `fixed` seconds of a step whatever its batch; A(N) the
all-reduce of one step (see `links`) and `communication` how much of it the epoch shows; `image`
seconds of compute per image, of which a GPU has D/N, as the last batch is a smaller one; W images
that one process loads and `waiting` the seconds it waits for each. The time of its work, `WORK`, is
the same without the last term. All parameters are 0 or more.
"""

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from scaling.registry.strategy import Strategy
from scaling.tables.prediction.links import AllReduce
from scaling.tables.schema import rows_of

PARAMETERS = ["fixed", "image", "communication", "waiting"]
CONFIDENCE = 0.95
WORK = "work_seconds"
"""The column with the time of an epoch's work, which the model has without its last term."""

LEAST_SHARE = 0.001
"""Of an epoch: a fit that leaves less to communication has put it to its bound, which is 0."""


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
        terms = self._terms(gpus, batch_size, samples)
        value = float(terms @ self.values)
        variance = terms @ self.covariance @ terms + (self.residual * value) ** 2
        return _interval(value, self.quantile * math.sqrt(variance))

    def communicates(self, gpus: int, batch_size: int, samples: int) -> bool:
        """Whether communication was not fitted as 0: it is `LEAST_SHARE` of the epoch or more."""
        parts = self._terms(gpus, batch_size, samples) * self.values
        own = [name == "communication" for name in self.names]
        return bool(parts[own].sum() >= LEAST_SHARE * parts.sum())

    def _terms(self, gpus: int, batch_size: int, samples: int) -> NDArray[np.float64]:
        terms = _terms(self.strategy, gpus, batch_size, samples, self.allreduce)
        return np.array(terms)[[PARAMETERS.index(name) for name in self.names]]


def fit(cells: pd.DataFrame, strategy: Strategy, allreduce: AllReduce) -> CostModel | None:
    """The model of the timed cells of one recipe and strategy; None for fewer than 3 times.

    Least squares of relative errors over the times with and without loading, no parameter below 0.
    These two of one cell are the same epochs, so their errors go together: each has half of the
    cell's weight, and the degrees of freedom are cells less parameters.
    A parameter that the times do not determine is left out, the last of `PARAMETERS` first: on one
    GPU nothing is communicated, and without a time without loading, waiting looks like compute.
    """
    if len(cells) < 3:
        return None
    # Here, as its import takes longer than many a script that only reads these tables.
    from scipy.optimize import nnls
    from scipy.special import stdtrit

    terms = np.array(
        [
            _terms(strategy, cell.gpus, cell.batch_size, int(cell.samples), allreduce)
            for cell in rows_of(cells)
        ]
    )
    times = cells[["epoch_seconds", WORK]].to_numpy(float).ravel()
    known = ~np.isnan(times)
    # Without loading the last term, of waiting, is gone.
    rows = np.stack([terms, terms * [1, 1, 1, 0]], axis=1).reshape(-1, 4)[known]
    weights = np.repeat(1 / known.reshape(-1, 2).sum(axis=1), 2)[known]
    times = times[known]
    deviations = times / np.sqrt(weights)
    # In relative error every time counts the same.
    names = _determined(rows / times[:, None])
    chosen = rows[:, [PARAMETERS.index(name) for name in names]]
    weighted = chosen / deviations[:, None]
    scale = np.linalg.norm(weighted, axis=0)
    values = nnls(weighted / scale, times / deviations)[0] / scale
    inverse = np.linalg.pinv(weighted / scale) / scale[:, None]
    freedom = len(cells) - len(names)
    variance, quantile = math.nan, math.nan
    if freedom > 0:
        variance = float(np.sum(((times - chosen @ values) / deviations) ** 2)) / freedom
        quantile = float(stdtrit(freedom, (1 + CONFIDENCE) / 2))
    covariance = variance * inverse @ inverse.T
    return CostModel(strategy, allreduce, names, values, covariance, math.sqrt(variance), quantile)


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
