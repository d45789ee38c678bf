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


def sent(*extra, **changes):
    """The answer where a step of DDP has further messages, or another entry."""
    document = made.document()
    entry = next(one for one in document["steps"] if one["way"] == "ddp")
    entry["messages"] = [*entry["messages"], *extra]
    entry |= changes
    return answers(document)[1]


def test_a_step_sends_gradients_and_buffers():
    said = sent()
    assert said.text == "No: DDP sends buffers too, 40 B, and 1.00 kB of gradients."
    (claim,) = said.claims
    assert claim.verdict == "supported"
    assert claim.sentence.startswith("2 messages with 1,000 of 1,000 B of gradients; a step sends")
    alone = sent(messages=made.ddp_messages([600, 400], broadcast=False))
    assert (
        alone.text.startswith("Yes: DDP sends 1.00 kB") and alone.claims[0].verdict == "supported"
    )


@pytest.mark.parametrize(
    ("messages", "changes"),
    [
        ([made.message(3, "backward", "all_reduce", 4)], {}),
        ([made.message(3, "update", "all_gather", 1000)], {}),
        ([], {"ranks_agree": False}),
        ([], {"messages": made.ddp_messages([600])}),
    ],
)
def test_a_message_too_many_or_too_few_and_ranks_that_differ_refute(messages, changes):
    assert sent(*messages, **changes).claims[0].verdict == "refuted"


def test_parameters_that_differ_between_ranks_refute():
    document = made.document()
    said = answers(document)[2]
    assert said.claims[0].verdict == "supported"
    assert said.text == (
        "For parameters yes, bit for bit. Not for running statistics: variances end 1.0 % apart, "
        "2.0 % if not sent."
    )
    document["trainings"][-1] = made.training("local", parameters=("p", "q"), drift=None)
    said = answers(document)[2]
    assert said.text == "No: parameters differ between ranks."
    assert said.claims[0].verdict == "refuted"
    assert "differ with buffers local" in said.claims[0].sentence


def test_orders_that_come_again_only_without_set_epoch():
    said = answers(made.document())[0]
    assert said.claims[0].verdict == "supported" and said.text.endswith("all 3 epochs differ.")
    for index, told in ((0, False), (1, True)):
        document = made.document()
        document["trainings"][index]["orders"] = made.orders(told)
        said = answers(document)[0]
        assert said.claims[0].verdict == "refuted" and said.text == said.claims[0].sentence
