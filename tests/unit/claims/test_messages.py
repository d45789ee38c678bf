"""Question 6: claims on the messages of a training step."""

import pytest

from examples import synchronization_records as made
from examples.synchronization_claims import make

BACKWARD = (3, "backward", "all_reduce")


def changed(way, *extra, **changes):
    """The claims where a way to train has further messages, or other entries."""
    document = made.document(on_gpus=True)
    entry = next(one for one in document["steps"] if one["way"] == way)
    entry["messages"] = [*entry["messages"], *extra]
    entry |= changes
    return make(document)


@pytest.fixture(scope="module")
def example():
    return make(made.document(on_gpus=True))


def test_every_way_to_train_sends_what_is_expected_of_it(example):
    verdicts = {claim.verdict for id, claim in example.items() if id.startswith("Q6")}
    assert verdicts == {"supported"}
    # Round the ring 1000 + 40 and 1000, whatever the GPUs; half of 5000 + 80 + 80 by GPU 0.
    figures = example["Q6-data-parallel"].evidence[0].figures
    assert figures["over_busiest_link"] == 2040 + 2580
    four = make(made.document(on_gpus=True) | {"gpus": 4})["Q6-data-parallel"].evidence[0].figures
    assert four["over_busiest_link"] == 2040 + 3870 and four["ring_bytes"] == 1500


@pytest.mark.parametrize(
    ("id", "way", "messages"),
    [
        ("Q6-gradients", "ddp", [made.message(*BACKWARD, 4)]),
        ("Q6-gradients", "ddp", [made.message(3, "update", "all_gather", 1000)]),
        ("Q6-start", "ddp", [made.message(3, "forward", "broadcast", made.GRADIENT_BYTES)]),
        ("Q6-buffers", "ddp, buffers local", made.ddp_messages([1000])),
        ("Q6-sync-batch-norm", "ddp, SyncBatchNorm", [made.message(*BACKWARD, 100)]),
        ("Q6-tuned", "tuned", [made.message(0, "start", "broadcast", 4)]),
        ("Q6-data-parallel", "dp", [made.message(3, "forward", "broadcast", 1000)]),
        ("Q6-fsdp", "fsdp", [made.message(3, "backward", "all_gather", 500)]),
        ("Q6-zero1", "zero1", [made.message(3, "update", "broadcast", 500)]),
    ],
)
def test_a_message_too_many_refutes(id, way, messages):
    assert changed(way, *messages)[id].verdict == "refuted"


def test_parameters_that_sharding_drives_apart_refute(example):
    assert "FullyShardedDataParallel is 0.002 %" in example["Q6-agreement"].sentence
    rows = [{"strategy": name, "steps": 10, "distance": 0.01} for name in ("ddp", "fsdp")]
    assert make(made.document(agreement=rows))["Q6-agreement"].verdict == "supported"
    rows[0]["distance"] = 0.02
    assert make(made.document(agreement=rows))["Q6-agreement"].verdict == "unclear"
    rows[0]["distance"] = 1e-4
    assert make(made.document(agreement=rows))["Q6-agreement"].verdict == "refuted"


def test_a_network_without_batch_norms_has_no_claims_on_them():
    found = make(
        made.document(model={"parameter_bytes": 1000, "buffer_bytes": 0, "widest_norm": 0})
    )
    ids = {id for id in found if id[:2] in ("Q6", "Q7")}
    assert not ids & {"Q6-buffers", "Q6-sync-batch-norm", "Q7-sync-statistics"}
    assert {"Q6-fsdp", "Q7-parameters"} <= ids


def test_messages_too_few_or_that_ranks_recorded_differently_refute():
    assert changed("ddp", ranks_agree=False)["Q6-gradients"].verdict == "refuted"
    few = changed("tuned", messages=[made.message(*BACKWARD, 512)])
    assert few["Q6-tuned"].verdict == "refuted"
