"""Synchronization with NCCL, SyncBatchNorm and DataParallel. Skipped without two GPUs."""

import pytest
import torch

from examples.small_trainings import measure
from scaling.tables.ranks_int8 import buffers, collectives

pytestmark = pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")


@pytest.fixture(scope="module")
def document(images, tmp_path_factory):
    output = tmp_path_factory.mktemp("synchronization") / "synchronization.json"
    return measure(images, output, device="cuda", loader_workers=1)


def settled(document, way):
    table = collectives([document])
    return table[(table["way"] == way) & (table["step"] == 3)]


def carried(rows, content):
    return rows[rows["content"] == content]["bytes"].tolist()


def test_sync_batch_norm_messages_of_all_20_layers(document):
    rows = settled(document, "ddp, SyncBatchNorm")
    statistics = rows[rows["content"] == "batch statistics"]
    assert statistics["phase"].value_counts().to_dict() == {"forward": 20, "backward": 20}
    assert sum(carried(rows, "gradients")) == document["model"]["parameter_bytes"]


def test_data_parallel_moves_parameters_gradients_and_images(document):
    rows = settled(document, "dp")
    model = document["model"]
    assert carried(rows, "parameters") == carried(rows, "gradients") == [model["parameter_bytes"]]
    assert sum(carried(rows, "buffers")) == model["buffer_bytes"]
    assert carried(rows, "images") == [2 * 10 * 3 * 32 * 32 * 4]
    assert carried(rows, "outputs") == carried(rows, "gradients of outputs") == [2 * 10 * 2 * 4]


def test_parameters_stay_equal_and_sync_batch_norm_statistics(document):
    table = buffers([document])
    for kind, rows in table.groupby("buffers"):
        assert rows["parameters_sha256"].nunique() == 1, kind
        assert rows["buffers_sha256"].nunique() == (1 if kind == "sync_batch_norm" else 2), kind
