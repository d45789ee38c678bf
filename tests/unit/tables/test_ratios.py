"""Times of configurations by status, speedups, and the comparison of two studies."""

import math
from itertools import pairwise

import pytest

from examples.records import derived, epoch, record, runs_of, timing_row, timing_table
from scaling.core.grid import CELL_KEYS, Cell
from scaling.tables import ratios
from scaling.tables.noise import NO_CHAIN, NO_TIME, OTHER_CODE
from scaling.tables.schema import StudyTables
from scaling.tables.timing import WORST_FIRST, timing

A = timing_table(
    timing_row(1, 128, 8.0, spread=0.4),
    timing_row(2, 128, 5.0, spread=0.25),
    timing_row(2, 512, 2.0, spread=0.1),
    timing_row(2, 2048, 1.0, spread=0.1, recipe="tuned"),
    timing_row(2, 8192, 1.0),
    timing_row(4, 32, status="oom"),
)
B = timing_table(
    timing_row(1, 128, 10.0, spread=0.5),
    timing_row(2, 128, 4.0, spread=0.2),
    timing_row(2, 512, 2.1, spread=0.1),
    timing_row(2, 2048, 9.0, spread=0.1, recipe="tuned"),
    timing_row(2, 8192, status="oom"),
    timing_row(4, 128, 3.0),
)


def test_cell_has_its_worst_status_and_times_of_runs_that_ended():
    first, second = (Cell("plain", "ddp", 1, 128, seed) for seed in (0, 1))
    for worse, better in pairwise(WORST_FIRST[1:]):
        one = record(first, [epoch(2, 18.0)], status=better, message="no room")
        other = record(second, [], status=worse, message="no room")
        (row,) = timing([(first, one), (second, other)]).iloc
        assert (row.status, row.message) == (worse, "no room")
        figures = row[["epoch_seconds", "loader_seconds", "count", "runs", "iterations", "samples"]]
        ended = better in ("diverged", "ok")
        assert figures.notna().all() if ended else figures.isna().all()


def test_loader_seconds_do_not_depend_on_the_order_of_runs():
    cells = [(Cell("plain", "ddp", 1, size, 0), wait) for size, wait in ((128, 2.0), (512, 3.0))]
    runs = [(cell, record(cell, [epoch(2, 18.0, loader_seconds=wait)])) for cell, wait in cells]
    for made in (runs, runs[::-1]):
        assert timing(made)["loader_seconds"].tolist() == pytest.approx([2.0, 3.0])


def test_speedup_compares_one_batch_or_one_global_batch():
    """An epoch takes 20 s at 1 × 128, 16 s at 2 × 64, 12 s at 2 × 128, and 24 s at 1 × 256."""
    rows = timing_row(1, 128, 20), timing_row(1, 256, 24), timing_row(2, 64, 16)
    found = derived(timing=timing_table(*rows, timing_row(2, 128, 12))).speedup
    strong, row = found.iloc[2], found.iloc[3]
    assert row.speedup == pytest.approx(20 / 12) and row.efficiency == pytest.approx(20 / 24)
    assert row.fixed_global_batch_speedup == pytest.approx(2)
    assert row.training_speedup == pytest.approx(20 / 12)
    assert strong.note == "strong scaling alone: of the global batch of 1 × 128"
    assert strong.fixed_global_batch_speedup == pytest.approx(20 / 16)
    assert math.isnan(strong.speedup)


@pytest.mark.parametrize(
    ("gpus", "timed", "ran", "note"),
    [
        ([2], {}, {}, NO_TIME),
        ([1, 2], {}, {"machine": ["m"] * 3 + ["n"] * 3}, NO_CHAIN),
        ([1, 2], {}, {"code": ["c"] * 3 + ["d"] * 3}, OTHER_CODE),
        ([1, 2], {"runs": 1, "whole": [True, False]}, {}, ratios.MIXED),
        ([1, 2], {"runs": 1, "whole": [False, True]}, {}, ratios.MIXED),
        ([1, 2], {"runs": 1, "whole": True}, {}, ratios.OF_WHOLE),
        ([1, 2], {"runs": 1, "status": ["diverged", "ok"]}, {}, ratios.DIVERGED),
        ([1, 2], {"runs": 1, "status": ["ok", "diverged"]}, {}, ratios.DIVERGED),
    ],
)
def test_speedup_without_a_baseline_or_of_whole_runs_has_a_note(gpus, timed, ran, note):
    times = timing_table(*(timing_row(n, 128, 10 / n, spread=0.1) for n in gpus)).assign(**timed)
    made = {"timing": times, "provenance": runs_of(times).assign(**ran)}
    found = derived(**made).speedup
    row = found[found["gpus"] == 2].iloc[0]
    assert row.note == note
    if note in (ratios.OF_WHOLE, ratios.DIVERGED):
        assert row.speedup == pytest.approx(2)
    else:
        assert math.isnan(row.speedup) and row.verdict == row.scope == ""


@pytest.mark.parametrize(
    ("switches", "ratio"),
    [("compile", True), ("bf16_compression, compile", True), ("channels_last", False)],
)
def test_cell_without_a_switch_of_its_baseline_has_no_ratio(switches, ratio):
    timing = timing_table(timing_row(1, 128, 20), timing_row(1, 256, 20), timing_row(2, 128, 10))
    costs = timing[CELL_KEYS].assign(switches=["compile", "compile", switches])
    row = derived(timing=timing, costs=costs).speedup.iloc[2]
    assert (row.speedup > 1.99) == (row.fixed_global_batch_speedup > 1.99) == ratio
    assert ("no ratio: one GPU ran with compile, which" in row.note) != ratio


def test_ratio_takes_the_code_that_most_configurations_share():
    timing = timing_table(*(timing_row(n, 128, 10 / n, spread=0.1) for n in (1, 2)))
    ran = runs_of(timing).query("gpus == 2 or repeat > 0")
    codes = ran["gpus"].astype(str) + ran["repeat"].astype(str)
    shared = {"11": "a", "12": "b", "20": "a", "21": "z", "22": "z"}
    found = derived(timing=timing, provenance=ran.assign(code=codes.map(shared))).speedup
    assert found["speedup"].iloc[1] == pytest.approx(9.9 / 4.95, rel=0.05)


def test_studies_are_matched_by_cell_worst_first():
    tables = ({"timing": timing, "provenance": runs_of(timing)} for timing in (A, B))
    found = ratios.match(*(StudyTables("", own) for own in tables))
    cells = list(found[["gpus", "batch_size"]].itertuples(index=False, name=None))
    assert cells[:4] == [(2, 2048), (1, 128), (2, 512), (2, 128)]
    verdicts = ["slower", "slower", "unclear", "faster", "only in A", "only in B"]
    assert list(found["verdict"]) == verdicts
    one = found.loc[1]
    assert one["ratio"] == pytest.approx(0.8, rel=1e-3) and one["low"] < 0.8 < one["high"] < 1
    assert one["ratio"] == pytest.approx(one["a_epoch_seconds"] / one["b_epoch_seconds"])
    assert found["b_status"][4] == "oom" and found["a_status"][5] == "not in the grid"
