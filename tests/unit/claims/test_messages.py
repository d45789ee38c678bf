"""Claims on question 6: which messages a training step sends."""

from functools import partial

import pytest

from examples import synchronization_claims
from examples import synchronization_records as made


@pytest.fixture
def claims(tmp_path):
    """A function that makes the claims of a document, by id."""
    return partial(synchronization_claims.make, tmp_path)


def messages_of(document, way):
    return next(one for one in document["steps"] if one["way"] == way)


def test_gradients_are_the_settled_steps_and_add_up_to_k(claims):
    claim = claims(made.document())["Q6-gradients"]
    assert "sends 2 all-reduces in its backward pass, 600 + 400 = 1,000 B" in claim.sentence


@pytest.mark.parametrize(
    "extra",
    [
        made.message(3, "backward", "all_reduce", 4),
        made.message(3, "update", "all_gather", 1000),
    ],
)
def test_a_message_too_many_refutes_that_gradients_and_buffers_travel_alone(claims, extra):
    document = made.document()
    messages_of(document, "ddp")["messages"].append(extra)
    claim = claims(document)["Q6-gradients"]
    assert claim.verdict == "refuted" and "does not send K = 1,000 B" in claim.sentence


def test_ranks_that_recorded_different_messages_refute(claims):
    document = made.document()
    messages_of(document, "ddp")["ranks_agree"] = False
    claim = claims(document)["Q6-gradients"]
    assert claim.verdict == "refuted" and "recorded different ones" in claim.sentence


def test_buffers_that_travel_where_they_are_switched_off_refute(claims):
    assert "1 message of 40 B together, 4 % of K" in claims(made.document())["Q6-buffers"].sentence
    document = made.document()
    messages_of(document, "ddp, buffers local")["messages"] = made.ddp_messages([1000])
    claim = claims(document)["Q6-buffers"]
    assert claim.verdict == "refuted" and "1 message where broadcasting is switched off" in (
        claim.sentence
    )


def test_parameters_sent_in_a_step_refute_that_they_travel_once(claims):
    document = made.document()
    extra = made.message(3, "forward", "broadcast", made.GRADIENT_BYTES)
    messages_of(document, "ddp")["messages"].append(extra)
    assert claims(document)["Q6-start"].verdict == "refuted"


def test_gradients_of_recipe_tuned_that_are_less_than_k_refute(claims):
    assert "24 B of padding" in claims(made.document())["Q6-tuned"].sentence  # 2 · 512 − 1000
    document = made.document()
    messages_of(document, "tuned")["messages"] = [made.message(3, "backward", "all_reduce", 512)]
    assert claims(document)["Q6-tuned"].verdict == "refuted"


def test_what_passes_through_gpu_0_is_added_up(claims):
    claim = claims(made.document(on_gpus=True))["Q6-data-parallel"]
    # To one other GPU 1000 + 40, from it 1000; half of 5000 + 80 + 80. A ring sends 2 · 1/2 · 1000.
    assert claim.evidence[0].figures["through_gpu_0"] == 2040 + 2580
    assert "pass 4,620 B, 4.62× what a ring" in claim.sentence


def test_data_parallel_that_does_not_copy_its_parameters_refutes(claims):
    document = made.document(on_gpus=True)
    way = messages_of(document, "dp")
    way["messages"] = [row for row in way["messages"] if row["bytes"] != made.GRADIENT_BYTES]
    assert claims(document)["Q6-data-parallel"].verdict == "refuted"
