"""What DistributedDataParallel can be told, between GPUs by NCCL. Skipped without two."""

import pytest
import torch

from examples.small_knobs import measure
from scaling.models.resnet import ResNet18

pytestmark = pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")


def test_every_knob_runs_and_sends_what_it_says(images, tmp_path):
    table = measure(images, tmp_path / "knobs.json", device="cuda")
    assert table[["seconds", "plain_seconds", "seconds_without_exchange"]].gt(0).all(axis=None)
    whole = 4 * sum(parameter.numel() for parameter in ResNet18(1, 2).parameters())
    assert table["bytes_sent"].iloc[:2].eq(whole).all()
    assert table.loc["bf16_compression", "bytes_sent"] == whole / 2
    assert 0 < table.loc["powersgd_rank 1", "bytes_sent"] < whole / 2
