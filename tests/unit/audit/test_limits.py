"""The audit's physical limits: what is beyond one is a warning, what explains it makes a remark."""

import math

import pytest

from examples.records import GRADIENT_BYTES, sweep, timing_row, timing_table
from scaling.audit.limits import audit
from scaling.core.grid import CELL_KEYS
from scaling.tables import schema
from scaling.tables.bandwidth import bandwidth
from scaling.tables.communication import communication
from scaling.tables.limits import interconnect
from scaling.tables.speedup import speedup

# 44,695,848 B in 1 ms on 2 GPUs: a peak of 44.7 GB/s
SWEEP = interconnect([sweep(("bucket", GRADIENT_BYTES, 1e-3), gpus=2)])


def study_of(*rows):
    """The study whose timing table has these rows, everything else derived from it."""
    timing = timing_table(*rows)
    parts = communication(timing)
    rates = bandwidth(timing, parts, SWEEP, GRADIENT_BYTES, schema.frame("costs"))
    ratios = speedup(timing, schema.frame("costs"))
    return but(None, timing=timing, speedup=ratios, communication=parts, bandwidth=rates)


def but(study, **tables):
    """The study with other tables."""
    return schema.StudyTables("demo", (study.found if study else {}) | tables, "", {})


# An iteration communicates for 4 ms: T(2,128) = 18/2 + 196 · 4 ms, T(2,512) = 17/2 + 49 · 4 ms.
# Loading takes 0.2 s on one GPU and 0.1 s on two, so both estimates agree.
TIMED = [
    timing_row(1, 128, 18.0, loader_seconds=0.2),
    timing_row(1, 512, 17.0, loader_seconds=0.2),
    timing_row(2, 128, 9.784, loader_seconds=0.1),
    timing_row(2, 512, 8.696, loader_seconds=0.1),
]
CLEAN = study_of(*TIMED, *(timing_row(gpus, 8192, status="oom") for gpus in (1, 2)))


def changed(table, row, **values):
    """`table` with other values in the row numbered `row`."""
    table = table.copy()
    for column, value in values.items():
        table.loc[row, column] = value
    return table


def only_finding(study):
    table = audit(study)
    assert len(table) == 1, table.to_string()
    return table.iloc[0]


NEGATIVE = "communication below 0"
STRONG = "speedup above the number of GPUs"
FIXED = "fixed global batch speedup above the number of GPUs"
NOISE = "within noise"


def times(batch_size, spread, *seconds, count=3):
    """Timing rows on 1 GPU and on 2, of times that range as far as `spread`."""
    return [
        timing_row(gpus, batch_size, each, spread=spread, count=count)
        for gpus, each in enumerate(seconds, start=1)
    ]


def findings(check, *rows):
    """Severity and message of each finding of one check on the study of these timing rows."""
    table = audit(study_of(*rows))
    table = table[table.check == check]
    return list(zip(table.severity, table.message, strict=True))


@pytest.mark.parametrize(
    ("spread", "count", "severity", "added"),
    [
        # 8.4 - 17 / 2 = -0.1 s, where the times range over 0.4 s each
        (0.2, 3, "info", f"; {NOISE}"),
        # Less than the two ranges together, 0.1 + 0.1 / 2 s, but even 8.45 - 16.95 / 2 is below 0.
        (0.05, 3, "warning", ""),
        (0.0, 1, "warning", ""),
    ],
)
def test_communication_below_zero_is_a_remark_where_some_pair_of_times_makes_it_positive(
    spread, count, severity, added
):
    assert findings("negative_communication", *times(512, spread, 17.0, 8.4, count=count)) == [
        (severity, f"subtraction: {NEGATIVE}{added}"),
        (severity, f"subtraction_without_loading: {NEGATIVE}{added}"),
    ]


@pytest.mark.parametrize(
    ("estimate", "moving", "strategy", "severity"),
    [
        ("profiler", 0.01, "ddp", "warning"),
        # Exposed communication alone; DataParallel hides none.
        ("subtraction", math.nan, "ddp", "info"),
        ("without_communication", math.nan, "ddp", "info"),
        ("subtraction", math.nan, "dp", "warning"),
    ],
)
def test_a_utilization_above_one_is_explained_by_communication_that_is_not_seen(
    estimate, moving, strategy, severity
):
    named = {"estimate": estimate, "strategy": strategy}
    table = CLEAN.communication.assign(moving_seconds=moving, **named)
    rates = changed(CLEAN.bandwidth.assign(**named), 2, utilization=1.1)
    one = table.gpus.eq(2) & table.batch_size.eq(512)
    first = one & ~one.duplicated()
    table = audit(but(CLEAN, communication=table[first], bandwidth=rates[2:3]))
    found = table[table.check == "utilization_above_one"].iloc[0]
    assert (found.severity, found.batch_size, found.found, found.expected) == (
        *(severity, 512, 1.1, 1),
    )
    assert ("does not see communication" in found.message) == (severity == "info")


@pytest.mark.parametrize(
    ("column", "why"),
    [
        ("utilization", "the epoch took less time"),
        ("utilization_without_loading", "the device computed while the host waited"),
    ],
)
def test_a_time_below_what_the_measured_peak_allows_is_a_warning(column, why):
    rates = CLEAN.timing.assign(utilization=0.4, utilization_without_loading=1.0)
    clean = audit(but(CLEAN, utilization=rates))
    assert clean.empty and clean.columns.tolist() == schema.columns("audit")
    found = only_finding(but(CLEAN, utilization=changed(rates, 1, **{column: 1.6})))
    assert (found.check, found.severity) == ("above_the_matrix_peak", "warning")
    assert (found.gpus, found.batch_size, found.found) == (1, 512, 1.6)
    assert why in found.message


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        # 17 / 8 = 2.125, at least 16.9 / 8.1 = 2.09
        (times(512, 0.1, 17.0, 8.0), [("warning", STRONG)]),
        (times(512, 0.0, 17.0, 8.0, count=1), [("warning", STRONG)]),
        # 16.5 / 8.5 = 1.94
        (times(512, 0.5, 17.0, 8.0), [("info", f"{STRONG}; {NOISE}")]),
        # 19 / 9 = 2.11 at least 18.9 / 9.1 = 2.08, or with the larger spread 18 / 10 = 1.8
        (
            [*times(512, 0.1, 17.0, 9.0), timing_row(1, 1024, 19.0, spread=0.1)],
            [("warning", FIXED)],
        ),
        (
            [*times(512, 1.0, 17.0, 9.0), timing_row(1, 1024, 19.0, spread=1.0)],
            [("info", f"{FIXED}; {NOISE}")],
        ),
    ],
)
def test_a_speedup_above_the_number_of_gpus_is_explained_by_noise(rows, expected):
    assert findings("speedup_above_gpus", *rows) == expected


@pytest.mark.parametrize(
    ("mhz", "clocks"),
    [((1980.0, 1400.0), " (clocks 1,400 against 1,980 MHz)"), ((math.nan, math.nan), "")],
)
def test_a_slow_rank_is_told_with_its_clock_where_that_was_read(mhz, clocks):
    rows = [
        dict(zip(CELL_KEYS, CLEAN.timing.loc[2, CELL_KEYS], strict=True))
        | {"rank": rank, "slower": slower, "sm_mhz": mhz[rank], "count": 3}
        | {f"own_epoch_seconds{end}": seconds for end in ("", "_min", "_max")}
        | {f"loader_seconds{end}": 0.0 for end in ("", "_min", "_max")}
        for rank, slower, seconds in ((0, -0.2, 8.0), (1, 0.25, 10.0))
    ]
    found = only_finding(but(CLEAN, ranks=schema.arrange("ranks", rows)))
    assert (found.check, found.severity) == ("slow_rank", "warning")
    assert found.message == (
        f"rank 1 computes 25 % slower than the others{clocks}; it waits 0 % of the epoch for "
        "data, the others 0 %"
    )
