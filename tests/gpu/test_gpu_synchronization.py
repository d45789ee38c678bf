"""Synchronization with NCCL, SyncBatchNorm and DataParallel. Skipped without two GPUs."""

import pytest
from test_gpu_training import several

from examples.small_trainings import measure
from scaling.tables.ranks_int8 import buffers

pytestmark = several


@pytest.fixture(scope="module")
def document(images, tmp_path_factory):
    output = tmp_path_factory.mktemp("synchronization") / "synchronization.json"
    return measure(images, output, device="cuda", loader_workers=1)


def settled(document, way):
    """Return the messages of step 3."""
    (messages,) = (one["messages"] for one in document["steps"] if one["way"] == way)
    return [message for message in messages if message["step"] == 3]


def sizes(messages, phase, kind):
    return [one["bytes"] for one in messages if (one["phase"], one["kind"]) == (phase, kind)]


def test_sync_batch_norm_messages_of_all_20_layers(document):
    messages, model = settled(document, "ddp, SyncBatchNorm"), document["model"]
    reduced = sizes(messages, "backward", "all_reduce")
    # Two float32 values a channel
    statistics = [size for size in reduced if size <= model["widest_norm"] * 8]
    assert len(sizes(messages, "forward", "all_gather")) == len(statistics) == 20
    assert sum(reduced) - sum(statistics) == model["parameter_bytes"]


def test_data_parallel_moves_parameters_gradients_and_images(document):
    messages, model = settled(document, "dp"), document["model"]
    broadcast = sizes(messages, "forward", "broadcast")
    assert max(broadcast) == model["parameter_bytes"]
    assert sum(broadcast) == model["parameter_bytes"] + model["buffer_bytes"]
    assert sizes(messages, "backward", "reduce") == [model["parameter_bytes"]]
    assert sizes(messages, "forward", "scatter") == [2 * 10 * 3 * 32 * 32 * 4]
    outputs = [2 * 10 * 2 * 4]
    assert sizes(messages, "forward", "gather") == sizes(messages, "backward", "scatter") == outputs


def test_parameters_stay_equal_and_sync_batch_norm_statistics(document):
    table = buffers([document])
    for (kind, *_), rows in table.groupby(["buffers", "set_epoch", "seed"]):
        assert rows["parameters_sha256"].nunique() == 1, kind
        assert rows["buffers_sha256"].nunique() == (1 if kind == "sync_batch_norm" else 2), kind
