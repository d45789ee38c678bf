"""Tables of the synchronization experiments, from records made by hand."""

from examples import synchronization_records as made
from scaling.tables.experiments import synchronization

SENT = synchronization.collectives([made.document()])


def rows(table, **conditions):
    for column, value in conditions.items():
        table = table[table[column] == value]
    return table


def carried(way, step, table=SENT):
    found = rows(table, way=way, step=step)
    return list(zip(found["content"], found["bytes"], strict=True))


def test_an_order_that_comes_again_names_the_epoch_it_was_first_seen_in():
    # An order that one rank has and another had before is no repeat.
    swapped = made.orders(True)
    for row in swapped:
        row["order_sha256"] = str((row["rank"] + row["epoch"]) % 2)
    drawn = {"sampler": "RandomSampler", "gpus": 2, "seed": 0, "set_epoch": True, "orders": swapped}
    table = synchronization.orders([made.document(permutations=[drawn])])
    assert rows(table, trained=False, rank=0)["first_epoch"].tolist() == [0, 1, 0]


def test_what_is_not_known_says_so():
    assert carried("ddp", 2)[0] == ("order of buckets", 20)
    document = made.document()
    document["steps"][0]["messages"].append(made.message(3, "update", "all_reduce", 4))
    table = synchronization.collectives([document])
    assert carried("ddp", 3, table)[-1] == ("other", 4)
