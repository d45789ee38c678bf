"""The look at a machine with GPUs. Skipped without."""

import json
import subprocess
import sys

import pytest
import torch

import machine_check
from scaling.core import environment
from scaling.instruments import machine

GPUS = torch.cuda.device_count()
pytestmark = pytest.mark.skipif(GPUS == 0, reason="needs a GPU")
OCCUPY = """
import torch
free, total = torch.cuda.mem_get_info()
kept = torch.ones(total // 5, dtype=torch.uint8, device="cuda")
print("there", flush=True)
input()
"""


def test_all_gpus_multiply_at_once_and_each_is_looked_at(tmp_path):
    output = tmp_path / "check.json"
    machine_check.main(["--gpus", str(GPUS), "--check", "warn", "--output", str(output)])
    found = json.loads(output.read_text())
    assert len({gpu["gpu"] for gpu in found["gpus"]}) == GPUS
    assert all(gpu["flops_per_second"] > 1e12 for gpu in found["gpus"])
    assert all(gpu["memory_bytes"] > gpu["free_bytes"] > 0 for gpu in found["gpus"])
    assert [host["cores"] > 0 for host in found["hosts"]] == [True]


def test_another_process_on_a_gpu_is_found():
    entry = environment.visible_gpus()[0]
    before = machine.gpu(entry)
    with subprocess.Popen(
        [sys.executable, "-c", OCCUPY], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout.readline() == "there\n"
        seen = machine.gpu(entry)
        other.communicate("\n")
    # A container need not be told of processes in another one; of the memory it is.
    assert before["free_bytes"] - seen["free_bytes"] > 0.19 * seen["memory_bytes"]
    seen |= {"flops_per_second": None, "reading": []} | {
        name: [None, None] for name in machine.PCIE
    }
    assert "bad" in {finding["severity"] for finding in machine.judge([], [seen])}
