"""What the page's tables do not show: the audit of a measured study.

Each finding is a warning: a rank that holds up the others, or a time that cannot be.
"""

import pandas as pd

from scaling.core import numbers as fmt
from scaling.core.grid import CELL_KEYS
from scaling.tables import schema
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


def epoch_below_peak(study: StudyTables) -> pd.DataFrame:
    """No epoch takes less time than its operations would at the matrix product rate measured."""
    rows = study.utilization[study.utilization["utilization"] > 1]
    message = "the epoch took less time than its operations take at the measured peak"
    return rows.assign(message=message, found=rows["utilization"], expected=1)


def audit(study: StudyTables) -> pd.DataFrame:
    """Return every finding of every check: what was `found`, and the limit that it is beyond."""
    rows = [
        row | {"check": check.__name__, "severity": "warning"}
        for check in (slow_rank, epoch_below_peak)
        for row in check(study).to_dict("records")
    ]
    return schema.arrange("audit", rows).astype({"found": float, "expected": float})
