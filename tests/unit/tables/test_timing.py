"""Seconds per epoch, by what a cell's status says, and of a start."""

from itertools import pairwise

import pytest

from examples.records import epoch, record
from scaling.core.grid import Cell
from scaling.tables.timing import timing

ONE_GPU = Cell("plain", "ddp", 1, 128, 0)
OTHER_SEED = Cell("plain", "ddp", 1, 128, 1)
WORST_FIRST = ["timeout", "oom", "oom_host", "infeasible", "diverged", "ok"]


@pytest.mark.parametrize("swapped", [1, -1])
def test_a_cell_is_as_good_as_its_worst_seed_and_has_the_times_of_those_that_ended(swapped):
    for worse, better in pairwise(WORST_FIRST):
        one = record(ONE_GPU, [epoch(2, 18.0)], status=better, message="no room")
        other = record(OTHER_SEED, [], status=worse, message="no room")
        (row,) = timing([(ONE_GPU, one), (OTHER_SEED, other)][::swapped]).iloc
        assert (row.status, row.message) == (worse, "no room")
        figures = row[["epoch_seconds", "loader_seconds", "count", "runs", "iterations", "samples"]]
        ended = better in ("diverged", "ok")
        assert figures.notna().all() if ended else figures.isna().all()
