"""Seconds per epoch, by what a cell's status says, and of a start."""

import pytest

from examples.records import epoch, record
from scaling.core.grid import Cell
from scaling.tables.timing import timing

ONE_GPU = Cell("plain", "ddp", 1, 128, 0)
OTHER_SEED = Cell("plain", "ddp", 1, 128, 1)


def only_row(*runs):
    (row,) = timing(list(runs)).iloc
    return row


@pytest.mark.parametrize("status", ["diverged", "oom", "oom_host", "infeasible", "timeout"])
def test_a_cell_has_figures_where_it_ran_to_its_end(status):
    made = record(ONE_GPU, [epoch(2, 18.0)], status=status, message="why")
    row = only_row((ONE_GPU, made))
    assert (row.status, row.message) == (status, "why")
    figures = row[["epoch_seconds", "loader_seconds", "count", "runs", "iterations", "samples"]]
    assert figures.notna().all() if status == "diverged" else figures.isna().all()


@pytest.mark.parametrize("swapped", [1, -1])
def test_a_cell_is_as_good_as_its_worst_seed_and_keeps_the_times_of_the_others(swapped):
    order = ["timeout", "oom", "oom_host", "infeasible", "diverged"]
    for worse, better in zip(order, [*order[1:], "ok"], strict=True):
        runs = [
            (ONE_GPU, record(ONE_GPU, [epoch(2, 18.0)], status=better, message="no room")),
            (OTHER_SEED, record(OTHER_SEED, [], status=worse, message="no room")),
        ]
        row = only_row(*runs[::swapped])
        assert (row.status, row.message) == (worse, "no room")
    assert (row.epoch_seconds, row["count"]) == (18.0, 1)
