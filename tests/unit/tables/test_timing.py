"""Seconds per epoch: which epoch is the figure, and what a cell's status says."""

import pytest

from examples.records import epoch, record
from scaling.core.grid import Cell
from scaling.tables.timing import timing

ONE_GPU = Cell("course", "ddp", 1, 128, 0)
OTHER_SEED = Cell("course", "ddp", 1, 128, 1)
TWO_GPUS = Cell("course", "ddp", 2, 128, 0)


def only_row(*runs):
    (row,) = timing(list(runs)).iloc
    return row


def test_an_odd_number_of_epochs_gives_the_median_epoch_with_its_own_loading():
    # Ordered: 18.0, 18.3, 19.0. The median epoch is 18.3, which waited 0.3 s; the median wait
    # (0.4 s) belongs to another epoch. Without loading 17.5, 18.0 and 17.6: the longest epoch is
    # the shortest. Warm-up and instrumented epochs are never averaged.
    epochs = [epoch(2, 19.0, 1.5), epoch(3, 18.3, 0.3), epoch(4, 18.0, 0.4)]
    others = [epoch(1, 99.0, role="warmup"), epoch(5, 77.0, role="instrumented")]
    row = only_row((ONE_GPU, record(ONE_GPU, [*epochs, *others])))
    assert (row.epoch_seconds, row.loader_seconds) == (18.3, 0.3)
    assert row.epoch_seconds_without_loading == pytest.approx(18.0)
    assert (row.epoch_seconds_min, row.epoch_seconds_max, row["count"]) == (18.0, 19.0, 3)
    assert row.epoch_seconds_without_loading_min == pytest.approx(17.5)
    assert row.epoch_seconds_without_loading_max == pytest.approx(18.0)


def test_an_even_number_of_epochs_gives_the_mean_of_the_two_middle_ones():
    # Ordered: 10, 12, 13, 20. Middle: 12 and 13, which waited 1 and 3 s.
    epochs = [epoch(2, 13.0, 3.0), epoch(3, 20.0, 9.0), epoch(4, 10.0, 5.0), epoch(5, 12.0, 1.0)]
    row = only_row((ONE_GPU, record(ONE_GPU, epochs)))
    assert (row.epoch_seconds, row.loader_seconds, row["count"]) == (12.5, 2.0, 4)
    assert row.epoch_seconds_without_loading == 10.5


def test_the_slowest_rank_is_the_time_and_the_longest_wait_is_the_loading():
    # Rank 1 is slowest; rank 0 waited longest, and rank 1 waited for it in the all-reduce.
    epochs = [
        epoch(2, 10.0, 2.0, rank=0, iterations=196, samples=25_000),
        epoch(2, 10.4, 0.5, rank=1, iterations=196, samples=25_000),
    ]
    row = only_row((TWO_GPUS, record(TWO_GPUS, epochs)))
    assert (row.epoch_seconds, row.loader_seconds) == (10.4, 2.0)
    assert row.epoch_seconds_without_loading == pytest.approx(8.4)
    assert (row.iterations, row.samples, row["count"]) == (196, 50_000, 1)


def test_the_epochs_of_all_seeds_are_pooled():
    # Seed 0: 18, 22; seed 1: 19, 20, 21. Pooled and ordered: 18, 19, 20, 21, 22.
    row = only_row(
        (ONE_GPU, record(ONE_GPU, [epoch(2, 18.0), epoch(3, 22.0)])),
        (OTHER_SEED, record(OTHER_SEED, [epoch(2, 21.0), epoch(3, 19.0), epoch(4, 20.0)])),
    )
    assert (row.epoch_seconds, row.epoch_seconds_min, row.epoch_seconds_max) == (20.0, 18.0, 22.0)
    assert (row["count"], row.status) == (5, "ok")


@pytest.mark.parametrize("status", ["diverged", "oom", "oom_host", "infeasible", "timeout"])
def test_a_cell_has_figures_where_it_ran_to_its_end(status):
    made = record(ONE_GPU, [epoch(2, 18.0)], status=status, message="why")
    row = only_row((ONE_GPU, made))
    assert (row.status, row.message) == (status, "why")
    unknown = [name for name in row.index if name.endswith("_std")]
    figures = row.drop(["recipe", "strategy", "gpus", "batch_size", "status", "message", *unknown])
    assert len(figures) == 13
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


def test_a_run_without_record_makes_its_cell_missing_and_the_message_counts_it():
    row = only_row((ONE_GPU, record(ONE_GPU, [epoch(2, 18.0)])), (OTHER_SEED, None))
    assert (row.status, row.epoch_seconds) == ("missing", 18.0)
    assert row.message == "1 of 2 runs have no record"
