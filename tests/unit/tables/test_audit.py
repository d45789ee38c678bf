"""The audit: what is beyond a physical limit by more than noise is a warning."""

import pandas as pd
import pytest

from examples.records import timing_row, timing_table
from scaling.core.grid import CELL_KEYS
from scaling.tables import schema
from scaling.tables.audit import audit
from scaling.tables.speedup import speedup

ONE = dict(zip(CELL_KEYS, ("plain", "ddp", 2, 512), strict=True))


def warnings(**tables):
    """Check and message of each finding on these tables."""
    table = audit(schema.StudyTables("demo", tables, "", {}))
    assert set(table["severity"]) <= {"warning"} and list(table) == schema.columns("audit")
    return list(zip(table["check"], table["message"], strict=True))


@pytest.mark.parametrize(
    ("estimate", "strategy", "utilization", "found"),
    [
        ("profiler", "ddp", 1.1, True),
        ("profiler", "ddp", 0.9, False),
        # Subtraction has exposed communication alone; DataParallel hides none.
        ("subtraction_without_loading", "ddp", 1.1, False),
        ("subtraction_without_loading", "dp", 1.1, True),
    ],
)
def test_a_bandwidth_is_not_above_that_of_all_reduces_alone(estimate, strategy, utilization, found):
    row = ONE | {"strategy": strategy, "estimate": estimate, "utilization": utilization}
    expected = [("bandwidth_above_peak", f"faster than all-reduces alone, by {estimate}")]
    assert warnings(bandwidth=pd.DataFrame([row])) == expected * found


def test_an_epoch_takes_at_least_the_time_of_its_operations_at_the_peak():
    shares = pd.DataFrame([ONE | {"utilization": 0.4}, ONE | {"utilization": 1.6}])
    ((check, _),) = warnings(utilization=shares)
    assert check == "epoch_below_peak"


@pytest.mark.parametrize(
    ("spread", "count", "found"),
    # 17 / 8 = 2.125: at least 16.9 / 8.1 = 2.09, or 16.5 / 8.5 = 1.94; measured once it is 2.125.
    [(0.1, 3, True), (0.5, 3, False), (0.5, 1, True)],
)
def test_a_speedup_above_the_number_of_gpus_is_explained_by_noise(spread, count, found):
    times = [
        timing_row(gpus, 512, seconds, spread=spread, count=count)
        for gpus, seconds in ((1, 17.0), (2, 8.0))
    ]
    ratios = speedup(timing_table(*times), schema.frame("costs"))
    expected = [("speedup_above_gpus", "speedup above the number of GPUs")]
    assert warnings(speedup=ratios) == expected * found


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
