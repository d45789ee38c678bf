"""What noise leaves of differences: between runs where there are several, else between epochs."""

import math
from dataclasses import replace

import pytest
from scipy import stats

from examples.claim_study import claims
from examples.records import epoch, record, timing_row, timing_table
from scaling.claims import q2
from scaling.core.grid import Cell
from scaling.tables import comparison, noise, schema
from scaling.tables.communication import communication, readings
from scaling.tables.speedup import speedup
from scaling.tables.timing import timing


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
    found = speedup(table, schema.frame("costs"))
    row = found.iloc[1]
    basis = "between 2 runs" if within else "within one run"
    assert (row["within_spread"], row["basis"], row["runs"]) == (within, basis, runs)
    tables = {"timing": table, "speedup": found}
    claim = claims(q2.answer, tables)["Q2-faster-plain-ddp"]
    assert claim.verdict == ("unclear" if within else "supported")
    assert claim.sentence.endswith("more runs would tell.") == within
    one, other = (table[table["gpus"] == gpus].assign(gpus=1) for gpus in (1, 2))
    match = comparison.match(one, other).iloc[0]
    assert match["verdict"] == ("within noise" if within else "faster") and match["basis"] == basis
    # More than twice as fast on two GPUs: communication below 0, or noise.
    table = measured(ONE[:runs], TOO_FAST[:runs])
    assert set(communicated(table)["within_noise"]) == {within}


def test_times_are_judged_within_one_run_where_one_of_them_has_no_other():
    found = speedup(measured(ONE, FASTER[:1]), schema.frame("costs")).iloc[1]
    # 9 to 10 s of one GPU, all epochs of two processes, against 8.9 s.
    assert (found["basis"], found["speedup_low"]) == ("within one run", pytest.approx(9 / 8.9))


def test_between_runs_the_ends_are_those_of_welchs_interval():
    ends = noise.ratio(*measured([10.0, 10.1, 10.3], [9.9, 9.7]).itertuples())
    logarithms = [[math.log(each) for each in own] for own in ([10.0, 10.1, 10.3], [9.9, 9.7])]
    interval = stats.ttest_ind(*logarithms, equal_var=False).confidence_interval(0.95)
    assert math.log(ends.high / ends.low) == pytest.approx(interval.high - interval.low, rel=0.02)


def test_a_time_of_nothing_or_next_to_it_has_an_interval():
    one, two = measured(ONE, FASTER).itertuples()
    # Where all of an epoch was a wait for data, none of it is left.
    assert noise.ratio(one, two._replace(epoch_seconds=0.0)).basis == "within one run"
    assert noise.ratio(one, two._replace(epoch_seconds=1e-9)).high == math.inf
