"""Tables of the synchronization experiments, from records made by hand."""

import math

import pytest

from examples import synchronization_records as made
from scaling.tables.experiments import synchronization

ON_GPUS = synchronization.collectives([made.document(on_gpus=True)])


def rows(table, **conditions):
    for column, value in conditions.items():
        table = table[table[column] == value]
    return table


def carried(way, step, table=ON_GPUS):
    found = rows(table, way=way, step=step)
    return list(zip(found["content"], found["bytes"], strict=True))


def test_an_order_that_comes_again_names_the_epoch_it_was_first_seen_in():
    table = synchronization.orders([made.document()])
    told = rows(table, sampler="DistributedSampler", set_epoch=True)
    assert (told["first_epoch"] == told["epoch"]).all() and told["trained"].any()
    untold = rows(table, sampler="DistributedSampler", set_epoch=False)
    assert set(untold["first_epoch"]) == {0} and set(untold["epoch"]) == {0, 1, 2}
    # An order that one rank has and another had before is no repeat.
    swapped = made.orders(True)
    for row in swapped:
        row["order_sha256"] = str((row["rank"] + row["epoch"]) % 2)
    drawn = made.document()["permutations"][0] | {"orders": swapped}
    table = synchronization.orders([made.document(permutations=[drawn])])
    assert rows(table, trained=False, rank=0)["first_epoch"].tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    ("way", "step", "messages"),
    [
        ("ddp", 0, [("shapes", 8), ("parameters and buffers", 1040)]),
        ("ddp", 1, [("buffers", 40), ("gradients", 1000)]),
        ("ddp", 3, [("buffers", 40), ("gradients", 600), ("gradients", 400)]),
        ("ddp, buffers local", 3, [("gradients", 600), ("gradients", 400)]),
        (
            "dp",
            3,
            [
                *(("images", 5000), ("parameters", 1000), ("buffers", 40), ("outputs", 80)),
                *(("gradients of outputs", 80), ("gradients", 1000)),
            ],
        ),
        # Statistics of SyncBatchNorm are no gradients.
        (
            "ddp, SyncBatchNorm",
            3,
            [
                *[("batch statistics", 36)] * 2,
                *(("batch statistics", 32), ("gradients", 700)),
                *(("batch statistics", 32), ("gradients", 300)),
            ],
        ),
    ],
)
def test_messages_are_told_by_phase_kind_and_size(way, step, messages):
    assert carried(way, step) == messages


def test_what_is_not_known_or_cannot_be_run_says_so():
    assert carried("ddp", 2)[0] == ("order of buckets", 20)
    document = made.document()
    document["steps"][0]["messages"].append(made.message(3, "update", "all_reduce", 4))
    table = synchronization.collectives([document])
    assert carried("ddp", 3, table)[-1] == ("other", 4)
    for way in ("dp", "ddp, SyncBatchNorm"):
        (row,) = rows(table, way=way).itertuples()
        assert row.note.endswith("runs on GPUs only") and math.isnan(row.bytes)


def test_buffers_have_a_row_for_each_rank_and_the_slowest_ranks_seconds():
    table = synchronization.buffers([made.document(on_gpus=True)])
    assert list(zip(table["buffers"], table["rank"], strict=True)) == [
        (kind, rank) for kind in synchronization.KINDS for rank in (0, 1)
    ]
    # Epochs of 1, 1.2 and 1.1 s on batches in memory, rank 1 10 % slower.
    row = table.iloc[0]
    assert (row.epoch_seconds_min, row.epoch_seconds_max) == (1.1, pytest.approx(1.32))
    assert row.epoch_seconds == pytest.approx(1.21)
    assert table["count"].tolist() == [3] * 6 and set(table["epochs"]) == {3}
    assert table["test_accuracy"].tolist() == [0.6, 0.61] * 3
    assert table["variance_drift_max"].tolist() == [0.01, 0.01, 0.02, 0.02, 0.0, 0.0]
