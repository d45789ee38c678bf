"""Names and checks of GPUs, and their link."""

import json
import subprocess
import sys

import torch
from test_gpu_training import GPUS, several

import measure
from scaling.core import environment
from scaling.instruments import machine
from scaling.tables.measurements import interconnect

OCCUPY = """
import torch
free, total = torch.cuda.mem_get_info()
kept = torch.ones(total // 5, dtype=torch.uint8, device="cuda")
print("there", flush=True)
input()
"""


def test_all_gpus_multiply_at_once_and_each_is_looked_at(tmp_path):
    output = tmp_path / "check.json"
    measure.main(check={"gpus": GPUS, "check": "warn", "output": output})
    found = json.loads(output.read_text())
    assert len({gpu["gpu"] for gpu in found["gpus"]}) == GPUS
    assert all(gpu["flops_per_second"] > 1e12 for gpu in found["gpus"])
    assert all(gpu["memory_bytes"] > gpu["free_bytes"] > 0 for gpu in found["gpus"])
    assert [host["cores"] > 0 for host in found["hosts"]] == [True]


def test_another_process_on_a_gpu_is_found():
    entry = environment.visible_gpus()[0]
    before = machine.gpu(entry)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", OCCUPY], **pipes) as other:
        assert other.stdout.readline() == "there\n"
        seen = machine.gpu(entry)
        other.communicate("\n")
    # A container need not be told of processes in another one; of the memory it is.
    assert before["free_bytes"] - seen["free_bytes"] > 0.19 * seen["memory_bytes"]
    seen |= {"flops_per_second": None, "reading": []} | {key: [None, None] for key in machine.PCIE}
    assert "bad" in {finding["severity"] for finding in machine.judge([], [seen])}


def test_driver_and_torch_name_the_same_gpu():
    found = environment.describe_process(torch.device("cuda"))
    assert found["device_names"] == [torch.cuda.get_device_name()]
    assert found["device_ids"][0] in map(environment.gpu_uuid, environment.visible_gpus())
    assert found["cuda"] == torch.version.cuda

    own = torch.cuda.get_device_capability()
    assert environment.older_gpu((99, 0)).endswith(f"has compute capability {own[0]}.{own[1]}")
    assert environment.older_gpu((0, 1)) is None


@several
def test_all_reduces_are_timed_without_their_launches_by_python(images, tmp_path):
    """If Python launches an all-reduce of 4 KiB, it takes at least 28 µs."""
    output, sizes = tmp_path / "sweep.json", [4096, 65536, 1048576, 67108864]
    places = {"output": output, "manifest": images / "manifest.json"}
    measure.main(sweep={"gpus": 2, "message_bytes": sizes, **places})
    table = interconnect([json.loads(output.read_text())])
    assert table["correct"].all() and set(table["launch"]) == {"graph"}
    smallest = table.loc[table["message_bytes"] == 4096, "seconds"].item()
    assert smallest < 28e-6
