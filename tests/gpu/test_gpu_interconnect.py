"""The all-reduce sweep between GPUs. Skipped without two."""

import json

import pytest
import torch

import interconnect_sweep
from scaling.tables.limits import fit, interconnect

pytestmark = pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")


def test_all_reduces_are_timed_without_their_launches_by_python(images, tmp_path):
    """Launched by Python, one of 4 KiB takes 28 µs and more."""
    output, sizes = tmp_path / "sweep.json", ["4096", "65536", "1048576", "67108864"]
    options = ["--gpus", "2", "--message-bytes", *sizes, "--output", str(output)]
    interconnect_sweep.main([*options, "--manifest", str(images / "manifest.json")])
    table = interconnect([json.loads(output.read_text())])
    assert table["correct"].all() and set(table["launch"]) == {"graph"}
    smallest = table.loc[table["message_bytes"] == 4096, "seconds"].item()
    assert fit(table)["latency_seconds"].item() <= smallest < 28e-6
