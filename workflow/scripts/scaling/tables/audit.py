"""What N GPUs and their link cannot do: the audit of a measured study.

A result beyond a limit by more than noise is a warning: what is behind it does not measure what it
is named for. A time measured once has no noise.
"""

from collections.abc import Callable

import pandas as pd

from scaling.core import numbers as fmt
from scaling.core.grid import CELL_KEYS
from scaling.registry.strategy import STRATEGIES
from scaling.tables import schema
from scaling.tables.communication import TRACE
from scaling.tables.schema import StudyTables, rows_of

SLOW = 0.05
"""How much slower a rank may be than the others: GPUs of a kind differ by 1 or 2 %."""


def slow_rank(study: StudyTables) -> pd.DataFrame:
    """No rank is slower than the others by more than `SLOW`, at computing or at loading.

    At computing by its own steps, without gradient exchange; at loading by what it waits for data
    beyond the median of the others, as a share of the epoch. Each of its repeats, or epochs, has to
    be slower than all of theirs.
    """
    table = study.ranks.merge(study.timing[[*CELL_KEYS, "epoch_seconds"]], on=CELL_KEYS)
    found = []
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
            slower = f"computes {fmt.percent(row.slower)} slower than the others; it "
            message = f"rank {row.rank} {slower if computes else ''}waits {fmt.percent(wait)} of "
            message += f"the epoch for data, the others {fmt.percent(usual)}"
            score = max(row.slower, wait - usual)
            found.append(row._asdict() | {"message": message, "found": score, "expected": SLOW})
    return pd.DataFrame(found)


def bandwidth_above_peak(study: StudyTables) -> pd.DataFrame:
    """No cell communicates faster than all-reduces alone in the same study.

    Subtraction does not see what a strategy sends behind computation, so it may seem to.
    """
    table = study.bandwidth
    overlaps = table["strategy"].map(lambda name: STRATEGIES.find(name).overlaps).astype(bool)
    rows = table[(table["utilization"] > 1) & ((table["estimate"] == TRACE) | ~overlaps)]
    message = "faster than all-reduces alone, by " + rows["estimate"]
    return rows.assign(message=message, found=rows["utilization"], expected=1)


def epoch_below_peak(study: StudyTables) -> pd.DataFrame:
    """No epoch takes less time than its operations would at the matrix product rate measured."""
    rows = study.utilization[study.utilization["utilization"] > 1]
    message = "the epoch took less time than its operations take at the measured peak"
    return rows.assign(message=message, found=rows["utilization"], expected=1)


def speedup_above_gpus(study: StudyTables) -> pd.DataFrame:
    """N GPUs are at most N times as fast."""
    table = study.speedup
    lowest = table["speedup_low"].fillna(table["speedup"])
    rows = table[(table["gpus"] > 1) & (lowest > table["gpus"])]
    message = "speedup above the number of GPUs"
    return rows.assign(message=message, found=rows["speedup"], expected=rows["gpus"])


CHECKS: list[Callable[[StudyTables], pd.DataFrame]] = [
    slow_rank,
    bandwidth_above_peak,
    epoch_below_peak,
    speedup_above_gpus,
]


def audit(study: StudyTables) -> pd.DataFrame:
    """Return every finding of every check: what was `found`, and the limit that it is beyond."""
    found = [check(study).assign(check=check.__name__, severity="warning") for check in CHECKS]
    rows = [row for each in found for row in each.to_dict("records")]
    return schema.arrange("audit", rows).astype({"found": float, "expected": float})
