"""Question 5: orders with and without set_epoch."""

from examples import synchronization_records as made
from examples.synchronization_claims import answers


def test_orders_that_come_again_only_without_set_epoch():
    said = answers(made.document())[0]
    assert said.claims[0].verdict == "supported" and said.text.endswith("all 3 epochs differ.")
    for index, told in ((0, False), (1, True)):
        document = made.document()
        document["trainings"][index]["orders"] = made.orders(told)
        said = answers(document)[0]
        assert said.claims[0].verdict == "refuted" and said.text == said.claims[0].sentence
