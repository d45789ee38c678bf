"""Which ratios of times exceed noise: speedups, and those of two studies cell by cell."""

import math
from dataclasses import replace

import pandas as pd
import pytest
from scipy import stats

from examples.claim_study import claims
from examples.records import epoch, record, timing_row, timing_table
from scaling.claims import q2
from scaling.core.grid import Cell
from scaling.tables import ratios, schema
from scaling.tables.communication import communication, readings
from scaling.tables.ratios import speedup
from scaling.tables.timing import timing

NONE = schema.frame("costs")
A = timing_table(
    timing_row(1, 128, 8.0, spread=0.4),
    timing_row(1, 128, 8.0, spread=0.4, strategy="dp"),
    timing_row(2, 128, 5.0, spread=0.25),
    timing_row(2, 512, 2.0, spread=0.25),
    timing_row(2, 2048, 1.0, count=1),
    timing_row(2, 8192, 1.0),
    timing_row(4, 32, status="oom"),
)
B = timing_table(
    timing_row(1, 128, 10.0, spread=0.5, strategy="dp"),
    timing_row(2, 128, 4.0, spread=0.2),
    timing_row(2, 512, 2.5, spread=0.25),
    timing_row(2, 2048, 9.0),
    timing_row(2, 8192, status="oom"),
    timing_row(4, 128, 3.0),
)


def communicated(timing):
    """Its communication by subtraction."""
    none = schema.frame("in_memory"), readings([])
    return communication(timing, *none)


def test_noisy_loading_does_not_make_a_time_without_loading_uncertain():
    # 5.4 - 10 / 2 is 0.4 s; the whole epochs vary by 1 s, all of it loading.
    column = "epoch_seconds_without_loading"
    rows = [timing_row(gpus, 128, each, spread=0.5) for gpus, each in ((1, 10.0), (2, 5.4))]
    rows = [row | {f"{column}_{end}": row[column] for end in ("min", "max")} for row in rows]
    (found,) = communicated(timing_table(*rows)).itertuples()
    ends = (found.communication_seconds_low, found.communication_seconds_high)
    assert ends == pytest.approx((0.4, 0.4)) and not found.within_noise


def measured(*runs):
    """The table of times on 1, 2, … GPUs, from runs of three equal epochs of these seconds."""
    cells = [(Cell("plain", "ddp", gpus, 128, 0), own) for gpus, own in enumerate(runs, start=1)]
    return timing(
        [
            (replace(cell, repeat=n), record(cell, [epoch(e, each) for e in (2, 3, 4)]))
            for cell, own in cells
            for n, each in enumerate(own)
        ]
    )


# Epochs of 10 s in one process and 9 s in the next, so 8.9 s, 8 s is not clearly faster.
ONE, FASTER, TOO_FAST = [10.0, 9.0], [8.9, 8.0], [4.4, 4.0]


@pytest.mark.parametrize(("runs", "within"), [(1, False), (2, True)])
def test_equal_epochs_in_unequal_processes_are_within_noise_wherever_it_is_judged(runs, within):
    table = measured(ONE[:runs], FASTER[:runs])
    found = speedup(table, NONE)
    row = found.iloc[1]
    assert (row["within_spread"], row["runs"]) == (within, runs)
    tables = {"timing": table, "speedup": found}
    claim = claims(q2.answer, tables)["Q2-faster-plain-ddp"]
    assert claim.verdict == ("unclear" if within else "supported")
    assert claim.sentence.endswith("more runs would tell.") == within
    one, other = (table[table["gpus"] == gpus].assign(gpus=1) for gpus in (1, 2))
    match = ratios.match(one, other).iloc[0]
    assert match["verdict"] == ("within noise" if within else "faster")
    # More than twice as fast on two GPUs: communication below 0, or noise.
    table = measured(ONE[:runs], TOO_FAST[:runs])
    assert set(communicated(table)["within_noise"]) == {within}


def test_times_are_judged_within_one_run_where_one_of_them_has_no_other():
    found = speedup(measured(ONE, FASTER[:1]), NONE).iloc[1]
    # 9 to 10 s of one GPU, all epochs of two processes, against 8.9 s.
    assert found["speedup_low"] == pytest.approx(9 / 8.9)


def interval(times):
    """The noise interval of the ratio of the first two times of a table."""
    one, two = (times.iloc[[row]].reset_index(drop=True) for row in (0, 1))
    return ratios.ratios(one.add_prefix("a_").join(two.add_prefix("b_")), "a_", "b_").iloc[0]


def test_between_runs_the_ends_are_those_of_welchs_interval():
    ends = interval(measured([10.0, 10.1, 10.3], [9.9, 9.7]))
    logarithms = [[math.log(each) for each in own] for own in ([10.0, 10.1, 10.3], [9.9, 9.7])]
    welch = stats.ttest_ind(*logarithms, equal_var=False).confidence_interval(0.95)
    assert math.log(ends.high / ends.low) == pytest.approx(welch.high - welch.low, rel=0.02)


def test_a_time_of_nothing_or_next_to_it_has_an_interval():
    times = measured(ONE, FASTER)
    # Where all of an epoch was a wait for data, none of it is left.
    assert interval(times.assign(epoch_seconds=[9.5, 0.0])).low == pytest.approx(9 / 8.9)
    assert interval(times.assign(epoch_seconds=[9.5, 1e-9])).high == math.inf


def cell(timing, gpus, batch_size, costs=NONE):
    table = speedup(timing, costs)
    (row,) = table[(table.gpus == gpus) & (table.batch_size == batch_size)].iloc
    return row


@pytest.mark.parametrize(
    ("switches", "ratio"),
    [
        ("channels_last, compile", True),
        ("bf16_compression, channels_last, compile", True),
        ("channels_last", False),
    ],
)
def test_a_cell_without_a_switch_of_its_baseline_has_no_ratio(switches, ratio):
    timing = timing_table(timing_row(1, 128, 20), timing_row(2, 128, 10), timing_row(1, 256, 20))
    costs = timing[["recipe", "strategy", "gpus", "batch_size"]].assign(
        switches=["channels_last, compile", switches, "channels_last, compile"]
    )
    row = cell(timing, 2, 128, costs)
    assert (row.speedup == 2) == (row.fixed_global_batch_speedup == 2) == ratio
    assert ("no ratio: one GPU ran with compile, which" in row.note) != ratio


def test_cells_are_matched_with_the_ratio_of_their_seconds_and_its_range_worst_first():
    found = ratios.match(A, B)
    cells = list(found[["gpus", "batch_size"]].itertuples(index=False, name=None))
    assert cells[:4] == [(2, 2048), (1, 128), (2, 512), (2, 128)]
    assert list(found["verdict"]) == [
        *("not repeated", "slower", "within noise", "faster", "only in A", "only in B")
    ]
    # 8 / 10 on one GPU, whatever the strategy; 7.6 / 10.5 and 8.4 / 9.5
    ratio = list(found.loc[1, ["ratio", "ratio_min", "ratio_max"]])
    assert ratio == pytest.approx([0.8, 7.6 / 10.5, 8.4 / 9.5])
    # 2.25 s is in both ranges; 5 / 4, 4.75 / 4.2
    assert found.iloc[3]["ratio"] == 1.25 and found.iloc[3]["ratio_min"] == 4.75 / 4.2
    assert pd.isna(found.iloc[0]["ratio_max"]) and found.iloc[0]["ratio"] == 1 / 9
    assert found["b_status"][4] == "oom" and found["a_status"][5] == "not in the grid"


def test_below_the_pass_mark_are_cells_with_all_of_their_range_there_and_those_that_failed():
    found, highest = ratios.match(A, B), 8.4 / 9.5
    assert set(ratios.too_slow(found, highest)["batch_size"]) == {8192}
    assert set(ratios.too_slow(found, highest + 1e-9)["batch_size"]) == {8192, 128}
