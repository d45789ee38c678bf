"""Questions 5 to 7: orders of images, what a step of DDP sends, and what that keeps equal."""

import pytest

from examples import synchronization_records as made
from scaling.claims import q5_to_q7
from scaling.tables.experiments import synchronization
from scaling.tables.schema import StudyTables


def answers(document):
    """The answers to questions 5, 6 and 7."""
    made = {"sampler": "orders", "collectives": "collectives", "buffers": "buffers"}
    found = {name: getattr(synchronization, of)([document]) for name, of in made.items()}
    asked = (q5_to_q7.order, q5_to_q7.messages, q5_to_q7.replicas)
    return [answer(StudyTables("demo", found)) for answer in asked]


@pytest.mark.parametrize(
    ("messages", "changes", "verdict"),
    [
        ([], {}, "supported"),
        ([], {"messages": made.ddp_messages([600, 400], broadcast=False)}, "supported"),
        # One too many, one too few, and ranks that recorded different ones.
        ([made.message(3, "backward", "all_reduce", 4)], {}, "refuted"),
        ([made.message(3, "update", "all_gather", 1000)], {}, "refuted"),
        ([], {"messages": made.ddp_messages([600])}, "refuted"),
        ([], {"ranks_agree": False}, "refuted"),
    ],
)
def test_a_step_sends_every_gradient_once_and_buffers(messages, changes, verdict):
    document = made.document()
    entry = next(one for one in document["steps"] if one["way"] == "ddp")
    entry |= {"messages": [*entry["messages"], *messages]} | changes
    said = answers(document)[1]
    assert said.claims[0].verdict == verdict
    if not any(message["bytes"] == made.BUFFER_BYTES for message in entry["messages"]):
        assert said.text == "Yes: DDP sends 1.00 kB of gradients in a step, and nothing else."


def test_parameters_that_differ_between_ranks_refute():
    document = made.document()
    assert answers(document)[2].claims[0].verdict == "supported"
    document["trainings"][-1] = made.training("local", parameters=("p", "q"), drift=None)
    said = answers(document)[2]
    assert said.text == "No: parameters differ between ranks."
    assert said.claims[0].verdict == "refuted"
    assert "differ with buffers local" in said.claims[0].sentence


@pytest.mark.parametrize(("index", "told"), [(0, False), (1, True)])
def test_orders_that_come_again_with_set_epoch_or_new_ones_without_it_refute(index, told):
    document = made.document()
    assert answers(document)[0].claims[0].verdict == "supported"
    document["trainings"][index]["orders"] = made.orders(told)
    said = answers(document)[0]
    assert said.claims[0].verdict == "refuted" and said.text == said.claims[0].sentence
