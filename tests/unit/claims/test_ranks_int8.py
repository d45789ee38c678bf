"""Questions 5 to 7 (image orders, messages, equality of ranks) and Part B (cost of int8)."""

import pandas as pd
import pytest

from examples import records as made
from examples.records import claims
from scaling.claims import ranks_int8
from scaling.tables import ranks_int8 as tables
from scaling.tables.schema import StudyTables


def answers(document):
    """Return the answers to questions 5, 6 and 7."""
    names = ("sampler", "collectives", "buffers")
    found = {name: getattr(tables, name)([document]) for name in names}
    asked = (ranks_int8.order, ranks_int8.messages, ranks_int8.replicas)
    return [answer(StudyTables("demo", found)) for answer in asked]


ALONE = "Nothing: each DDP step in float32 sends 44.7 MB of gradients."


def small(phase, kind):
    """Return a message of the third step, when DDP's buckets are final."""
    shared = {"step": 3, "dtype": "float32", "elements": 1, "bytes": 4}
    return shared | {"phase": phase, "kind": kind}


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        (lambda sent: {}, "supported"),
        # Without a broadcast of buffers.
        (lambda sent: {"messages": [x for x in sent if x["phase"] != "forward"]}, "supported"),
        # One too many, one too few, and ranks that recorded different ones.
        (lambda sent: {"messages": [*sent, small("backward", "all_reduce")]}, "refuted"),
        (lambda sent: {"messages": [*sent, small("update", "all_gather")]}, "refuted"),
        (lambda sent: {"messages": sent[:-1]}, "refuted"),
        (lambda sent: {"ranks_agree": False}, "refuted"),
    ],
)
def test_step_sends_gradients_once_and_buffers(change, verdict):
    document = made.synchronization()
    step = document["steps"][0]
    step |= change(step["messages"])
    said = answers(document)[1]
    assert said.claims[0].verdict == verdict
    assert (said.text == ALONE) == all(one["phase"] != "forward" for one in step["messages"])


@pytest.mark.parametrize(("buffers", "index"), [("local", 0), ("broadcast", 5)])
def test_parameters_that_differ_between_ranks_refute(buffers, index):
    document = made.synchronization()
    said = answers(document)[2]
    drift = " No for running variances: in 6 trainings with buffer broadcast their largest "
    drift += "difference between ranks was 3.4–9.1 %."
    equal = "Yes for parameters, which are bit-identical on all ranks."
    assert said.text == f"{equal}{drift}"
    assert said.claims[0].verdict == "supported"
    assert said.claims[0].sentence.startswith("In 8 trainings of 5 epochs on 4 ranks they are")
    changed = [one for one in document["trainings"] if one["buffers"] == buffers][index]
    changed["ranks"][0]["parameters_sha256"] = "another"
    said = answers(document)[2]
    assert said.text == f"No: parameters differ between ranks.{drift}"
    assert said.claims[0].verdict == "refuted"
    assert f"differ with buffers {buffers}." in said.claims[0].sentence


@pytest.mark.parametrize(("index", "other"), [(0, 1), (1, 0)])
def test_orders_against_the_hypothesis_refute_it(index, other):
    document = made.synchronization()
    assert answers(document)[0].claims[0].verdict == "supported"
    trainings = document["trainings"]
    trainings[index]["orders"] = trainings[other]["orders"]
    said = answers(document)[0]
    assert said.claims[0].verdict == "refuted" and said.text == said.claims[0].sentence


STAGE = "weights+activations"


@pytest.mark.parametrize(
    ("differences", "verdict", "words"),
    [
        # Student's 12.706 · 0.00707 / √2 for two seeds that are 0.01 apart: 0.06.
        ((-0.85, -0.86), "supported", "59.14 % against 60.00 % in float32: −0.85 ± 0.06 points"),
        ((-0.8, -1.0), "unclear", "; needs more seeds."),
        ((-1.19, -1.21), "refuted", "−1.20 ± 0.13 points"),
        ((-0.9,), "unclear", "whose noise is unknown"),
    ],
)
def test_cost_is_judged_by_the_interval_over_networks(differences, verdict, words):
    """Each seed's accuracy differs by one of `differences` from 60 % in float32."""
    rows = {"seed": range(len(differences)), "stage": STAGE, "difference_points": differences}
    table = pd.DataFrame(rows).assign(agreement_percent=99.0, mean_standard_error_points=0.01)
    table = table.assign(packed_bytes=1, compression=4)
    table["accuracy_percent"] = 60 + table["difference_points"]
    claim = claims(ranks_int8.int8, {"quantization": table})[f"B-cost-{STAGE}"]
    assert claim.verdict == verdict and words in claim.sentence
