"""Tables of the synchronization experiments, from a stored record with a change."""

from examples import records as made
from scaling.tables import synchronization


def test_repeated_order_names_its_first_epoch():
    # An order that one rank has and another had before is no repeat.
    document = made.synchronization()
    for row in document["trainings"][0]["orders"]:
        row["order_sha256"] = str((row["rank"] + row["epoch"]) % 2)
    table = synchronization.sampler([document]).query("seed == 0 and set_epoch")
    assert table.query("rank == 0")["first_epoch"].tolist() == [0, 1, 0, 1, 0]


def test_unrecognized_message_is_other():
    document = made.synchronization()
    document["steps"][0]["messages"].append(made.step_message("update", "all_reduce", 4))
    table = synchronization.collectives([document]).query("way == 'ddp' and step == 3")
    assert table["content"].tolist() == 2 * ["buffers"] + 3 * ["gradients"] + ["other"]
