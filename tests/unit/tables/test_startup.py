"""The fixed cost of a cell: what a run takes besides its measured epochs."""

from examples.records import epoch, record
from scaling.core.grid import Cell
from scaling.launch import startup_clock
from scaling.tables.timing import startup

PHASES = {"launch": 3.0, "imports": 4.0, "join": 1.0, "dataset": 0.5, "recipe": 1.5, "total": 10.0}
PHASE_COLUMNS = [f"{phase}_seconds" for phase in ("imports", "join", "dataset", "recipe")]
PARTS = [f"{part}_seconds" for part in ("startup", "warmup", "measured", "shutdown")]


def timed(seed=0, gpus=2, *, run_seconds=30.0, shutdown_seconds=2.0, status="ok"):
    """A run of 30 s: 10 s to the first epoch, 4 s warm-up, two epochs of 5 s, 2 s shutdown.

    So 4 s are left for evaluation and the like.
    """
    cell = Cell("plain", "ddp", gpus, 128, seed)
    seconds = {1: (4.0, 3.9), 2: (4.8, 5.0), 3: (5.0, 4.7)}
    epochs = [
        epoch(number, each, rank=rank, role="warmup" if number == 1 else "measured")
        for number, ranks in seconds.items()
        for rank, each in enumerate(ranks)
    ]
    made = record(cell, epochs, status=status)
    shutdown = {"run_seconds": run_seconds, "shutdown_seconds": shutdown_seconds}
    return cell, made | {"startup": PHASES} | shutdown


def test_a_cell_that_was_stopped_missing_or_not_clocked_keeps_its_row():
    stopped, before = timed(gpus=1, status="timeout"), Cell("plain", "ddp", 3, 128, 0)
    missing = Cell("plain", "ddp", 4, 128, 0)
    table = startup([stopped, (before, record(before, [epoch(2, 5.0)])), (missing, None)])
    assert table.status.tolist() == ["timeout", "ok", "missing"]
    assert table["count"].tolist() == [0, 0, 0]
    assert table[[*PHASE_COLUMNS, *PARTS, "run_seconds"]].isna().all(axis=None)


def test_a_phase_ends_when_the_last_rank_has_ended_it():
    # Rank 0 waits 2 s in `join` for rank 1, which imports until 7.
    ends = [
        {"launch": 1.0, "imports": 5.0, "join": 7.5, "dataset": 8.0, "recipe": 9.0},
        {"launch": 2.0, "imports": 7.0, "join": 7.5, "dataset": 8.5, "recipe": 8.75},
    ]
    merged = {"launch": 2.0, "imports": 5.0, "join": 0.5, "dataset": 1.0, "recipe": 0.5}
    assert startup_clock.merge(ends) == merged | {"total": 9.0}
