"""The audit: slow ranks, and times below what is possible."""

import pandas as pd

from examples.records import timing_row, timing_table
from scaling.core.grid import CELL_KEYS
from scaling.tables import schema
from scaling.tables.audit import audit

ONE = dict(zip(CELL_KEYS, ("plain", "ddp", 2, 512), strict=True))


def warnings(**tables):
    """Check and message of each finding on these tables."""
    table = audit(schema.StudyTables("demo", tables, "", {}))
    assert set(table["severity"]) <= {"warning"} and list(table) == schema.columns("audit")
    return list(zip(table["check"], table["message"], strict=True))


def test_an_epoch_takes_at_least_the_time_of_its_operations_at_the_peak():
    shares = pd.DataFrame([ONE | {"utilization": 0.4}, ONE | {"utilization": 1.6}])
    ((check, _),) = warnings(utilization=shares)
    assert check == "epoch_below_peak"


def test_a_slow_rank_is_told():
    rows = [
        ONE
        | {"rank": rank, "slower": slower, "count": 3}
        | {f"own_epoch_seconds{end}": seconds for end in ("", "_min", "_max")}
        | {f"loader_seconds{end}": 0.0 for end in ("", "_min", "_max")}
        for rank, slower, seconds in ((0, -0.2, 8.0), (1, 0.25, 10.0))
    ]
    times = timing_table(timing_row(2, 512, 10.0))
    ((check, message),) = warnings(ranks=schema.frame("ranks", rows), timing=times)
    assert check == "slow_rank" and message == (
        "rank 1 computes 25 % slower than the others; it waits 0 % of the epoch for data, the "
        "others 0 %"
    )
