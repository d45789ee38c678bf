"""The all-reduce sweep: seconds and bandwidth by message size, and the line fitted through them."""

import math
from statistics import median
from typing import Any

import numpy as np
import pandas as pd

from scaling.tables import io, schema
from scaling.tables.io import GB

COLUMNS = schema.columns("interconnect")
FIT_COLUMNS = schema.columns("interconnect_fit")


def ring_factor(gpus: int) -> float:
    """Bytes that each GPU sends for every byte all-reduced over a ring: 2(N-1)/N.

    Patarasuk & Yuan 2009; also the factor from algbw to busbw in nccl-tests' PERFORMANCE.md.
    """
    return 2 * (gpus - 1) / gpus


def interconnect(sweeps: list[dict[str, Any]]) -> pd.DataFrame:
    """The table of all-reduce times, one row per message of each sweep document, `COLUMNS`.

    `seconds` is the median over the repeats; algbw = message bytes / seconds and
    busbw = algbw · 2(N-1)/N, in GB/s with 1 GB = 1e9 bytes.
    """
    rows = []
    for sweep in sweeps:
        for row in sweep["rows"]:
            seconds = median(row["seconds"])
            algbw = row["message_bytes"] / seconds / GB
            rows.append(
                {
                    "gpus": sweep["gpus"],
                    "backend": sweep["backend"],
                    "kind": row["kind"],
                    "message_bytes": row["message_bytes"],
                    "seconds": seconds,
                    "seconds_min": min(row["seconds"]),
                    "seconds_max": max(row["seconds"]),
                    "count": len(row["seconds"]),
                    "algbw_gb_per_s": algbw,
                    "busbw_gb_per_s": algbw * ring_factor(sweep["gpus"]),
                    "correct": row["correct"],
                }
            )
    order = ["gpus", "backend", "kind", "message_bytes"]
    table = pd.DataFrame(rows, columns=COLUMNS).sort_values(order, kind="stable")
    return io.arrange(table, COLUMNS)


def fit(table: pd.DataFrame) -> pd.DataFrame:
    """Latency and time per byte of each (gpus, backend) in `table`, columns `FIT_COLUMNS`.

    Least squares of seconds = latency + seconds_per_byte · message_bytes over the correct rows of
    kind `sweep`, in relative error (weights 1/seconds: sizes span many orders of magnitude); the
    errors are standard errors, from the covariance scaled by the residuals. With fewer than 3
    sizes there is no residual to judge by, and the figures stay empty. The asymptotic bus
    bandwidth is 2(N-1)/N / seconds_per_byte, empty when the slope is not above 0.
    """
    rows = []
    for (gpus, backend), group in table.groupby(["gpus", "backend"]):
        points = group[(group["kind"] == "sweep") & group["correct"].astype(bool)]
        figures = _line(points) if points["message_bytes"].nunique() >= 3 else [math.nan] * 4
        slope = figures[2]
        busbw = ring_factor(gpus) / slope / GB if slope > 0 else math.nan
        rows.append([gpus, backend, *figures, busbw, len(points)])
    return io.arrange(pd.DataFrame(rows, columns=FIT_COLUMNS), FIT_COLUMNS)


def _line(points: pd.DataFrame) -> list[float]:
    """Intercept, its standard error, slope, its standard error."""
    size, seconds = points["message_bytes"].to_numpy(float), points["seconds"].to_numpy(float)
    (slope, intercept), covariance = np.polyfit(size, seconds, 1, w=1 / seconds, cov=True)
    slope_error, intercept_error = np.sqrt(np.diag(covariance))
    return [float(x) for x in (intercept, intercept_error, slope, slope_error)]
