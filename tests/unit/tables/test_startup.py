"""The fixed cost of a cell: what a run takes besides its measured epochs."""

from examples.records import epoch, record
from scaling.core.grid import Cell
from scaling.launch import supervisor
from scaling.tables.timing import startup


def test_a_cell_that_was_missing_or_not_clocked_keeps_its_row():
    before, missing = (Cell("plain", "ddp", gpus, 128, 0) for gpus in (3, 4))
    table = startup([(before, record(before, [epoch(2, 5.0)])), (missing, None)])
    assert table[["status", "count"]].values.tolist() == [["ok", 0], ["missing", 0]]
    assert table.filter(like="_seconds").isna().all(axis=None)


def test_a_phase_ends_when_the_last_rank_has_ended_it():
    # Rank 0 waits 2 s in `join` for rank 1, which imports until 7.
    ends = [
        {"launch": 1.0, "imports": 5.0, "join": 7.5, "dataset": 8.0, "recipe": 9.0},
        {"launch": 2.0, "imports": 7.0, "join": 7.5, "dataset": 8.5, "recipe": 8.75},
    ]
    merged = {"launch": 2.0, "imports": 5.0, "join": 0.5, "dataset": 1.0, "recipe": 0.5}
    assert supervisor.merged_phases(ends) == merged | {"total": 9.0}
