"""What N GPUs and their link cannot do: the audit of a measured study.

A check is a function from the study to its findings, called as in column `check` of audit.csv. A
result beyond a limit is a `warning`: the estimate behind it does not measure what it is named for.
It is a remark (`info`) where its own definition explains it, or where it is beyond by no more than
noise; the message then says so. A time measured once
has no noise.
"""

from collections.abc import Callable
from typing import Any

import pandas as pd

from scaling.core import numbers as fmt
from scaling.core.grid import CELL_KEYS
from scaling.tables import noise, schema
from scaling.tables.bandwidth import BLIND, blind
from scaling.tables.schema import StudyTables, rows_of
from scaling.tables.speedup import VIEWS, why_above_gpus

TOLERANCE = 1e-6
"""Relative difference that rounding explains: far above float noise, far below any real mistake."""
COMMUNICATION_FACTOR = 2.0
"""Largest over smallest communication time of an iteration that noise may explain: subtracting two
large times leaves a small one, easily wrong by tens of percent, hardly by a factor of 2."""
SLOW = 0.05
"""How much slower a rank may be than the others: GPUs of a kind differ by 1 or 2 %."""


def findings(
    rows: pd.DataFrame, message: Any, found: Any, limit: Any, reasons: Any = ""
) -> pd.DataFrame:
    """Return a finding on the cell of each row: what was `found`, and the limit that it is beyond.

    A warning, or a remark where there is a reason, which is added to the message. Each argument is
    one for all rows, or has one for each.
    """
    added = pd.Series(reasons, rows.index, str)
    severity = added.map(lambda reason: "info" if reason else "warning")
    said = message + added.map(lambda reason: f"; {reason}" if reason else "")
    figures = {"severity": severity, "message": said, "found": found, "expected": limit}
    return pd.DataFrame({**rows[CELL_KEYS], **figures}, index=rows.index)


def negative_communication(study: StudyTables) -> pd.DataFrame:
    """Communication takes time: below 0 the estimate has subtracted something else.

    A remark where it is no further below than noise, as `noise.with_uncertainty` has it.
    """
    table = noise.with_uncertainty(study.communication, study.timing)
    rows = table[table["communication_seconds"] < 0]
    reasons = [noise.within(row.basis) if row.within_noise else "" for row in rows.itertuples()]
    message = rows["estimate"] + ": communication below 0"
    return findings(rows, message, rows["communication_seconds"], 0, reasons)


def utilization_above_one(study: StudyTables) -> pd.DataFrame:
    """No cell can communicate faster than the peak measured in the same study.

    A remark for an estimate that does not see communication behind computation, of a strategy
    which has some there: the time is too short by that.
    """
    moving = study.communication[[*CELL_KEYS, "estimate", "moving_seconds"]]
    table = study.bandwidth.merge(moving, how="left", on=[*CELL_KEYS, "estimate"])
    rows = table[table["utilization"] > 1]
    reasons = [BLIND if blind(row) else "" for row in rows.itertuples()]
    message = rows["estimate"] + ": utilization above 100 %"
    return findings(rows, message, rows["utilization"], 1, reasons)


def above_the_matrix_peak(study: StudyTables) -> pd.DataFrame:
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
    return pd.concat(
        findings(table[table[column] > 1], message, table[column], 1)
        for column, message in messages.items()
    )


def speedup_above_gpus(study: StudyTables) -> pd.DataFrame:
    """N GPUs are at most N times as fast, in both views.

    A remark where the ranges of the two times reach N.
    """
    table, found = study.speedup, []
    for view, name in VIEWS.items():
        rows = table[table[view] > table["gpus"] * (1 + TOLERANCE)]
        reasons = ["; ".join(why_above_gpus(row, view)) for row in rows.itertuples()]
        message = f"{name} above the number of GPUs"
        found.append(findings(rows, message, rows[view], rows["gpus"], reasons))
    return pd.concat(found)


def communication_varies_with_batch(study: StudyTables) -> pd.DataFrame:
    """Communication of one iteration moves the same bytes at every b, so it takes the same time.

    For each recipe, strategy, number of GPUs and estimate: the largest communication time of an
    iteration is more than `COMMUNICATION_FACTOR` times the smallest. Reported at the largest; a
    remark where no two differ by as much between their lowest and highest values. Values of 0 or
    below are left to `negative_communication`.
    """
    noisy = ["spread_seconds", "runs", "run_std_seconds"]
    spreads = study.communication[[*CELL_KEYS, "estimate", *noisy]]
    table = study.bandwidth[study.bandwidth["communication_seconds"] > 0]
    table = noise.with_uncertainty(table.merge(spreads, how="left"), study.timing)
    table["seconds"] = table["communication_seconds"] / table["iterations"]
    table = table.dropna(subset="seconds")
    for end in ("lowest", "highest"):
        seconds = table[f"{end}_seconds"] / table["iterations"]
        table[end] = seconds.fillna(table["seconds"])
    groups = table.groupby(["recipe", "strategy", "gpus", "estimate"])
    least = groups["seconds"].transform("min")
    lowest, highest = groups["lowest"].transform("max"), groups["highest"].transform("min")
    certain = lowest > COMMUNICATION_FACTOR * highest
    table = table.assign(least=least, reason=certain.map({True: "", False: "within noise"}))
    worst = table.loc[groups["seconds"].idxmax()]
    rows = worst[worst["seconds"] > COMMUNICATION_FACTOR * worst["least"]]
    message = rows["estimate"] + ": communication of one iteration changes with b (in seconds)"
    return findings(rows, message, rows["seconds"], rows["least"], rows["reason"])


def slow_rank(study: StudyTables) -> pd.DataFrame:
    """No rank is slower than the others by more than `SLOW`, at computing or at loading.

    At computing by its own steps, without gradient exchange; at loading by what it waits for data
    beyond the median of the others, as a share of the epoch. Each of its repeats, or epochs, has to
    be slower than all of theirs.
    """
    table = study.ranks.merge(study.timing[[*CELL_KEYS, "epoch_seconds"]], on=CELL_KEYS)
    found = [findings(table.head(0), "", 0, SLOW)]
    for _, ranks in table.groupby(CELL_KEYS):
        for row in rows_of(ranks):
            others = ranks.drop(row.Index)
            wait = row.loader_seconds / row.epoch_seconds
            usual = others["loader_seconds"].median() / row.epoch_seconds
            computes = row.slower > SLOW
            computes &= row.own_epoch_seconds_min > others["own_epoch_seconds_max"].max()
            loads = wait - usual > SLOW
            loads &= row.loader_seconds_min > others["loader_seconds_max"].max()
            if not computes and not loads:
                continue
            clocks = f"{row.sm_mhz:,.0f} against {others['sm_mhz'].median():,.0f}"
            clocks = f" (clocks {clocks} MHz)" if row.sm_mhz > 0 else ""
            slower = f"computes {fmt.percent(row.slower)} slower than the others{clocks}; it "
            message = f"rank {row.rank} {slower if computes else ''}waits {fmt.percent(wait)} of "
            message += f"the epoch for data, the others {fmt.percent(usual)}"
            score = max(row.slower, wait - usual)
            found.append(findings(ranks.loc[[row.Index]], message, score, SLOW))
    return pd.concat(found)


CHECKS: list[Callable[[StudyTables], pd.DataFrame]] = [
    slow_rank,
    negative_communication,
    utilization_above_one,
    above_the_matrix_peak,
    speedup_above_gpus,
    communication_varies_with_batch,
]


def audit(study: StudyTables) -> pd.DataFrame:
    """Return every finding of every check."""
    found = [check(study).assign(check=check.__name__) for check in CHECKS]
    rows = [row for each in found for row in each.to_dict("records")]
    return schema.arrange("audit", rows).astype({"found": float, "expected": float})
