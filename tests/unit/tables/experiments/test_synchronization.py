"""Tables of the synchronization experiments, from records made by hand."""

from examples import synchronization_records as made
from scaling.tables.experiments import synchronization


def test_an_order_that_comes_again_names_the_epoch_it_was_first_seen_in():
    # An order that one rank has and another had before is no repeat.
    swapped = made.orders(True)
    for row in swapped:
        row["order_sha256"] = str((row["rank"] + row["epoch"]) % 2)
    drawn = {"sampler": "RandomSampler", "gpus": 2, "seed": 0, "set_epoch": True, "orders": swapped}
    table = synchronization.orders([made.document(permutations=[drawn])])
    assert table.query("not trained and rank == 0")["first_epoch"].tolist() == [0, 1, 0]


def test_what_is_not_known_says_so():
    document = made.document()
    document["steps"][0]["messages"].append(made.message(3, "update", "all_reduce", 4))
    table = synchronization.collectives([document]).query("way == 'ddp' and step == 3")
    assert table["content"].tolist() == ["buffers", "gradients", "gradients", "other"]
