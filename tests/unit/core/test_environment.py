"""Which GPUs a run had, by name and UUID."""

from types import SimpleNamespace

import pytest
import torch

from scaling.core import environment
from scaling.launch import measure
from scaling.launch.launcher import ProcessResult

MACHINE = [("A40", "GPU-aaaa"), ("A40", "GPU-bbbb"), ("V100", "GPU-cccc")]


@pytest.fixture
def machine(monkeypatch):
    """A driver that knows `MACHINE`; a handle is the GPU's index."""
    nvml = environment.pynvml

    def by_uuid(uuid):
        known = [handle for handle, (_, own) in enumerate(MACHINE) if own == uuid]
        if not known:
            raise nvml.NVMLError(nvml.NVML_ERROR_NOT_FOUND)
        return known[0]

    for name, answer in {
        "nvmlInit": lambda: None,
        "nvmlDeviceGetCount": lambda: len(MACHINE),
        "nvmlDeviceGetHandleByIndex": lambda index: index,
        "nvmlDeviceGetHandleByUUID": by_uuid,
        "nvmlDeviceGetName": lambda handle: MACHINE[handle][0],
        "nvmlDeviceGetUUID": lambda handle: MACHINE[handle][1],
    }.items():
        monkeypatch.setattr(nvml, name, answer)


def test_leased_gpus_are_named_whether_by_index_or_uuid(machine):
    assert environment.leased_gpus(["2", "GPU-aaaa"]) == {
        "device_names": ["V100", "A40"],
        "device_ids": ["GPU-cccc", "GPU-aaaa"],
    }


def test_a_run_without_gpus_has_no_devices():
    assert environment.leased_gpus([]) == {"device_names": [], "device_ids": []}


def test_a_gpu_the_driver_does_not_know_keeps_its_entry(machine):
    assert environment.gpu_uuid("MIG-dddd") == "MIG-dddd"


def test_a_process_names_the_gpu_it_computes_on_however_cuda_numbers_it(machine, monkeypatch):
    own = SimpleNamespace(uuid="cccc")
    monkeypatch.setattr(torch.cuda, "get_device_properties", {torch.device("cuda"): own}.get)
    found = environment.describe_process(torch.device("cuda"))
    assert (found["device"], found["cuda"]) == ("cuda", torch.version.cuda)
    assert (found["device_names"], found["device_ids"]) == (["V100"], ["GPU-cccc"])


def test_a_measurement_names_the_gpus_it_had_and_not_the_others(machine):
    versions = {"host": "n1", "slurm_gpus": [], "cuda": "13.0", "nccl": "2.28.9"}
    starts = [{"kind": "start", "rank": 0, **versions}]
    ends = [{"kind": "end", "rank": rank} for rank in (0, 1)]
    surroundings = {"device": "cuda", "device_names": ["A40", "A40", "V100"]}
    ending = ProcessResult(0, timed_out=False, gpus=("0", "2"))
    found = measure.collect(surroundings, [*starts, *ends], ending, 2, "the sweep")
    assert found.environment["device_names"] == ["A40", "V100"]
    assert found.environment["device_ids"] == ["GPU-aaaa", "GPU-cccc"]
    assert found.gpus == 2


def test_the_topology_is_text_without_the_terminals_codes(machine, monkeypatch):
    printed = "\x1b[4m\tGPU0\tGPU1\x1b[0m\nGPU0\t X \tNV18"
    monkeypatch.setattr(environment, "_output", lambda command: printed)
    assert environment.describe("cuda")["topology"] == "\tGPU0\tGPU1\nGPU0\t X \tNV18"
