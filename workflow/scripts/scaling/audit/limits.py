"""What N GPUs and their link cannot do: the audit's checks of physical limits.

A result beyond a limit is a warning. It is a remark where its own definition explains it (the
estimate does not see all communication, a partial last batch counts as a whole step), or where it
is beyond by no more than noise; the message then says so. A time measured once has no noise.
"""

from typing import Any

from scaling.audit.finding import TOLERANCE, Check, Finding, Severity, Study, finding
from scaling.core.grid import CELL_KEYS
from scaling.tables import noise
from scaling.tables.bandwidth import BLIND, blind
from scaling.tables.speedup import VIEWS, why_above_gpus

COMMUNICATION_FACTOR = 2.0
"""Largest over smallest communication time of an iteration that noise may explain: subtracting two
large times leaves a small one, easily wrong by tens of percent, hardly by a factor of 2."""


def negative_communication(study: Study) -> list[Finding]:
    """Communication takes time: below 0 the estimate has subtracted something else.

    A remark where it is no further below than noise, as `noise.with_resolution` has it.
    """
    table = noise.with_resolution(study.communication, study.timing)
    found = []
    for row in table[table["communication_seconds"] < 0].itertuples():
        message = f"{row.estimate}: communication below 0"
        reasons = ["within noise"] if row.within_noise else []
        found.append(_beyond(row, message, reasons, row.communication_seconds, 0))
    return found


def utilization_above_one(study: Study) -> list[Finding]:
    """No cell can communicate faster than the peak measured in the same study.

    A remark for an estimate that does not see communication behind computation, of a strategy
    which has some there: the time is too short by that.
    """
    moving = study.communication[[*CELL_KEYS, "estimate", "moving_seconds"]]
    table = study.bandwidth.merge(moving, how="left", on=[*CELL_KEYS, "estimate"])
    found = []
    for row in table[table["utilization"] > 1].itertuples():
        reasons = [BLIND] if blind(row) else []
        message = f"{row.estimate}: utilization above 100 %"
        found.append(_beyond(row, message, reasons, row.utilization, 1))
    return found


def above_the_matrix_peak(study: Study) -> list[Finding]:
    """No epoch takes less time than its operations would at the matrix product rate measured.

    "Without loading" comes out below it where the device computes while the host waits for data:
    the time subtracted was not idle, so what is left is too short. The whole epoch never may.
    """
    table = study.utilization
    messages = {
        "utilization": "the epoch took less time than its operations take at the measured peak",
        "utilization_without_loading": "the time without loading is less than the operations take "
        "at the measured peak: the device computed while the host waited for data",
    }
    return [
        finding(row, "warning", message, getattr(row, column), 1)
        for column, message in messages.items()
        for row in table[table[column] > 1].itertuples()
    ]


def speedup_above_gpus(study: Study) -> list[Finding]:
    """N GPUs are at most N times as fast, in each of the three views.

    A remark where the ranges of the two times reach N, and in the weak view where a partial last
    batch, which counts as a whole step, is what lifts it above N.
    """
    table = study.speedup
    return [
        _beyond(
            row,
            f"{name} above the number of GPUs",
            why_above_gpus(row, view),
            getattr(row, view),
            row.gpus,
        )
        for view, name in VIEWS.items()
        for row in table[table[view] > table["gpus"] * (1 + TOLERANCE)].itertuples()
    ]


def communication_varies_with_batch(study: Study) -> list[Finding]:
    """Communication of one iteration moves the same bytes at every b, so it takes the same time.

    For each recipe, strategy, number of GPUs and estimate: the largest communication time of an
    iteration is more than `COMMUNICATION_FACTOR` times the smallest. Reported at the largest; a
    remark where no two differ by as much between their lowest and highest values. Values of 0 or
    below are left to `negative_communication`.
    """
    spreads = study.communication[[*CELL_KEYS, "estimate", "spread_seconds"]]
    table = study.bandwidth[study.bandwidth["communication_seconds"] > 0]
    table = noise.with_resolution(table.merge(spreads, how="left"), study.timing)
    table["seconds"] = table["communication_seconds"] / table["iterations"]
    table = table.dropna(subset="seconds")
    for end, extreme in (("low", "lowest_seconds"), ("high", "highest_seconds")):
        table[end] = (table[extreme] / table["iterations"]).fillna(table["seconds"])
    found = []
    for _, rows in table.groupby(["recipe", "strategy", "gpus", "estimate"]):
        worst = next(rows.loc[[rows["seconds"].idxmax()]].itertuples())
        smallest = rows["seconds"].min()
        if worst.seconds <= COMMUNICATION_FACTOR * smallest:
            continue
        certain = rows["low"].max() > COMMUNICATION_FACTOR * rows["high"].min()
        reasons = [] if certain else ["within noise"]
        message = f"{worst.estimate}: communication of one iteration changes with b (in seconds)"
        found.append(_beyond(worst, message, reasons, worst.seconds, smallest))
    return found


CHECKS: list[Check] = [
    negative_communication,
    utilization_above_one,
    above_the_matrix_peak,
    speedup_above_gpus,
    communication_varies_with_batch,
]


def _beyond(row: Any, message: str, reasons: list[str], figure: float, limit: float) -> Finding:
    """A warning, a remark where `reasons` explain it."""
    severity: Severity = "info" if reasons else "warning"
    return finding(row, severity, "; ".join([message, *reasons]), figure, limit)
