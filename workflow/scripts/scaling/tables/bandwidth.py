"""Bytes that a cell communicates, and the share of the measured peak that it reaches."""

import math
from typing import Any

import pandas as pd

from scaling.core.errors import UserError
from scaling.tables import io, schema
from scaling.tables.interconnect import ring_factor
from scaling.tables.io import GB

COLUMNS = schema.columns("bandwidth")
PEAK_KIND = {"ddp": "bucket", "dp": "gradients"}
"""The messages of the interconnect sweep that a strategy is held against."""
OWN_PEAK_KIND = {("tuned", "ddp"): "tuned_bucket"}
"""The same for a recipe that makes messages of its own, where the sweep has them."""

OVERLAPPING_STRATEGY = "ddp"
"""The strategy that communicates during the backward pass. DataParallel sends the parameters before
the forward pass and sums the gradients after the backward pass: nothing is hidden."""
BLIND = "the estimate does not see communication behind computation"


def bytes_per_iteration(strategy: str, gpus: int, gradient_bytes: float) -> float:
    """Bytes of one iteration through the busiest GPU, from K = `gradient_bytes`.

    ddp: a ring all-reduce sends 2(N-1)/N · K from each GPU (Patarasuk & Yuan 2009).
    dp: K of parameters goes from GPU 0 to each of the others and K of gradients comes back, so
    2(N-1) · K passes through GPU 0 (inputs and outputs come on top and are not counted).
    Raises UserError for any other strategy.
    """
    if strategy == "ddp":
        return ring_factor(gpus) * gradient_bytes
    if strategy == "dp":
        return 2 * (gpus - 1) * gradient_bytes
    raise UserError(f"strategy {strategy!r} has no byte count; use ddp or dp")


def swept_gradient_bytes(interconnect: pd.DataFrame) -> float:
    """K as the interconnect sweep sent it, in one message of all gradients; NaN without sweep.

    Raises UserError when the sweeps sent gradients of different models.
    """
    sizes = interconnect.loc[interconnect["kind"] == "gradients", "message_bytes"].unique()
    if len(sizes) > 1:
        listed = " and ".join(str(size) for size in sizes)
        raise UserError(f"the interconnect sweeps sent gradients of {listed} bytes: run them again")
    return float(sizes[0]) if len(sizes) else math.nan


def peak_gb_per_s(interconnect: pd.DataFrame, recipe: str, strategy: str, gpus: int) -> float:
    """Measured bus bandwidth, in GB/s, over the messages that a cell sends; NaN without sweep.

    2(N-1)/N · sum of bytes / sum of seconds over the sweep's rows of the recipe's or strategy's
    kind for the same number of GPUs. A sweep whose sums were wrong gives no peak either.
    """
    swept = interconnect[interconnect["gpus"] == gpus]
    own = swept[swept["kind"] == OWN_PEAK_KIND.get((recipe, strategy))]
    rows = own if len(own) else swept[swept["kind"] == PEAK_KIND[strategy]]
    if rows.empty or not rows["correct"].all():
        return math.nan
    return float(ring_factor(gpus) * rows["message_bytes"].sum() / rows["seconds"].sum() / GB)


def bandwidth(
    timing: pd.DataFrame,
    communication: pd.DataFrame,
    interconnect: pd.DataFrame,
    gradient_bytes: float,
) -> pd.DataFrame:
    """The table of bandwidths: one row per row of `communication`, columns `COLUMNS`.

    bandwidth = bytes_per_iteration · iterations / communication_seconds, in GB/s. These are the
    `moving_seconds` of `communication` where an estimate has them, as bytes that travel behind
    computation travel all the same, and else its communication_seconds;
    utilization = bandwidth / peak, 1.0 being all of it. Where there is no communication time above
    0, no sweep (`interconnect` may be empty) or no K (`gradient_bytes` NaN), the figures stay empty
    and `note` says why. Bytes are rounded to whole ones.
    """
    table = communication.rename(columns={"note": "communication_note"}).merge(
        timing[[*io.CELL_KEYS, "iterations"]], how="left", on=io.CELL_KEYS
    )
    table["communication_seconds"] = table["moving_seconds"].fillna(table["communication_seconds"])
    links = [(row.strategy, row.gpus) for row in table.itertuples()]
    table["bytes_per_iteration"] = pd.Series(
        [bytes_per_iteration(*link, gradient_bytes) for link in links], dtype=float
    ).round()
    table["bytes_per_epoch"] = table["bytes_per_iteration"] * table["iterations"]
    positive = table["communication_seconds"].where(table["communication_seconds"] > 0)
    table["bandwidth_gb_per_s"] = table["bytes_per_epoch"] / positive / GB
    table["peak_gb_per_s"] = [
        peak_gb_per_s(interconnect, row.recipe, row.strategy, row.gpus)
        for row in table.itertuples()
    ]
    table["utilization"] = table["bandwidth_gb_per_s"] / table["peak_gb_per_s"]
    table["note"] = [_note(row) for row in table.itertuples()]
    return io.arrange(table, COLUMNS)


def _note(row: Any) -> str:
    notes = []
    if math.isnan(row.bytes_per_iteration):
        notes.append("size of the gradients unknown")
    if math.isnan(row.communication_seconds):
        status = f"status {row.status}"
        why = row.communication_note if row.status == "ok" else status
        notes.append(f"no communication time ({why or status})")
    elif row.communication_seconds <= 0:
        notes.append("communication not above 0: no bandwidth")
    elif math.isnan(row.iterations):
        notes.append("number of iterations unknown")
    if math.isnan(row.peak_gb_per_s):
        notes.append(f"no correct interconnect sweep for {row.gpus} GPUs")
    elif row.utilization > 1:
        why = f" ({BLIND})" if blind(row) else ""
        notes.append(f"utilization above 100 %{why}")
    return "; ".join(notes)


def blind(row: Any) -> bool:
    """Whether there is communication that the estimate of a row does not see: behind computation.

    `row` has strategy and moving_seconds, as those of `communication` have.
    """
    return row.strategy == OVERLAPPING_STRATEGY and math.isnan(row.moving_seconds)
