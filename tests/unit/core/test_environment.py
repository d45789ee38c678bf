"""Names, UUIDs and counters of a run's GPUs; GPUs that cannot measure are refused."""

import re
from types import SimpleNamespace

import pytest
import torch

from scaling.core import environment, gpu_counters
from scaling.core.errors import UserError
from scaling.core.gpu_counters import GpuCounters, power_capped_seconds, reading

MACHINE = [("A40", "GPU-aaaa"), ("A40", "GPU-bbbb"), ("V100", "GPU-cccc")]


@pytest.fixture
def machine(monkeypatch):
    """Replace the driver by one that knows `MACHINE`. A handle is the GPU's index."""
    nvml = environment.pynvml

    def by_uuid(uuid):
        if uuid not in (uuids := [own for _, own in MACHINE]):
            raise nvml.NVMLError(nvml.NVML_ERROR_NOT_FOUND)
        return uuids.index(uuid)

    for name, answer in {
        "nvmlInit": lambda: None,
        "nvmlDeviceGetCount": lambda: len(MACHINE),
        "nvmlDeviceGetHandleByIndex": lambda index: index,
        "nvmlDeviceGetHandleByUUID": by_uuid,
        "nvmlDeviceGetName": lambda handle: MACHINE[handle][0],
        "nvmlDeviceGetUUID": lambda handle: MACHINE[handle][1],
    }.items():
        monkeypatch.setattr(nvml, name, answer)


def test_cuda_or_slurms_gpus_are_refused_where_none_is_visible(monkeypatch):
    monkeypatch.setattr(environment, "visible_gpus", list)
    assert environment.resolve_device("auto") == "cpu"
    with pytest.raises(UserError, match="device is cuda, but no GPU is visible"):
        environment.resolve_device("cuda")
    monkeypatch.setenv("SLURM_STEP_GPUS", "0,1")
    with pytest.raises(UserError, match=r"Slurm gave this job GPUs .*:0,1.* none of them is"):
        environment.resolve_device("auto")
    assert environment.resolve_device("cpu") == "cpu"


def test_gpu_named_twice_is_one(machine, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,0,GPU-aaaa,GPU-cccc,2,-1,1")
    assert environment.visible_gpus() == ["GPU-aaaa", "2"]


def test_device_without_tf32_computes_in_float32(machine, monkeypatch):
    asked = "nvmlDeviceGetCudaComputeCapability"
    for capability, precision in {(7, 0): "float32", (8, 0): "tf32"}.items():
        monkeypatch.setattr(environment.pynvml, asked, lambda _, own=capability: own)
        assert environment.applied_precision("tf32", "cuda") == precision
    assert environment.applied_precision("bf16", "cpu") == "bf16"
    assert environment.applied_precision("tf32", "cpu") == "float32"


def test_process_names_its_gpu_in_any_cuda_order(machine, monkeypatch):
    own = SimpleNamespace(uuid="cccc")
    monkeypatch.setattr(torch.cuda, "get_device_properties", {torch.device("cuda"): own}.get)
    found = environment.describe_process(torch.device("cuda"))
    assert (found["device"], found["cuda"]) == ("cuda", torch.version.cuda)
    assert (found["device_names"], found["device_ids"]) == (["V100"], ["GPU-cccc"])


def start(host, letter):
    """Return the first report of a rank."""
    about = {"host": host, "machine": letter, "slurm_gpus": [], "cuda": "13", "nccl": "2.28"}
    return about | {"device_names": ["H100"], "device_ids": [f"GPU-{letter}"]}


def test_measurement_names_only_its_gpus(machine):
    surroundings = {"device": "cuda", "device_names": ["A40", "A40", "V100"]}
    found = environment.completed(surroundings, ["0", "MIG-dddd"], [start("n1", "a")])
    # One that the driver does not know keeps its entry.
    assert (found["device_names"], found["device_ids"]) == (["A40"], ["GPU-aaaa", "MIG-dddd"])


def test_gpus_of_all_nodes_are_known():
    seen = environment.completed({}, ["0"], [start("n2", "b"), start("n1", "a")])
    assert (seen["device_names"], seen["device_ids"]) == (["H100"] * 2, ["GPU-b", "GPU-a"])
    assert seen["machine"] == "a+b"
    one = environment.completed({}, ["0"], [start("n1", "a"), start("n1", "b")])
    assert one["device_ids"] == ["0"]


def test_machine_has_one_name_whichever_gpus_are_leased(machine, monkeypatch):
    monkeypatch.delenv("SLURMD_NODENAME", raising=False)
    monkeypatch.setattr(environment.platform, "node", lambda: "vm")
    name = environment.machine("cuda")
    assert re.fullmatch("[0-9a-f]{12}", name)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    monkeypatch.setattr(environment.pynvml, "nvmlDeviceGetUUID", lambda n: MACHINE[::-1][n][1])
    assert environment.machine("cuda") == name  # In another order.
    monkeypatch.setattr(environment.pynvml, "nvmlDeviceGetUUID", lambda n: f"GPU-{n}")
    assert environment.machine("cuda") != name != environment.machine("cpu")
    # Slurm's name identifies a node, of which a job may see a part.
    monkeypatch.setenv("SLURMD_NODENAME", "n1")
    assert environment.machine("cuda") == environment.machine("cpu")


def test_environment_lists_variables_that_change_figures(monkeypatch):
    for name in ("NCCL_NVLS_ENABLE", "NCCL_TOPO_FILE", "CUDA_VISIBLE_DEVICES", "MY_NCCL_X"):
        monkeypatch.setenv(name, "0")
    found = environment.describe("cpu")["variables"]
    assert found.items() >= {("NCCL_NVLS_ENABLE", "0")}
    assert not found.keys() & {"NCCL_TOPO_FILE", "CUDA_VISIBLE_DEVICES", "MY_NCCL_X"}


EARLY = {"energy": 4000.0, "power_cap": 7.0, "heat": 7.0, "sm_mhz": 1200.0}


def test_reading_is_the_growth_since_the_last():
    new = reading(EARLY, EARLY | {"energy": 4090.0, "power_cap": 7.5, "sm_mhz": 1980.0})
    assert new == {
        "energy_joules": 90.0,
        "held_back_seconds": {"power_cap": 0.5, "heat": 0.0},
        **{"sm_mhz": 1980, "celsius": None},
    }
    # The GPU that was held back longest counts, where all are counted.
    other, old = reading(EARLY, EARLY | {"power_cap": 8.5}), reading({}, {"celsius": 50.0})
    assert power_capped_seconds([new, other]) == 1.5
    assert power_capped_seconds([new, old]) is power_capped_seconds([]) is None


@pytest.mark.parametrize("gpus", [[], ["GPU-known", "MIG-unknown"]])
def test_gpus_unknown_to_the_driver_are_not_read(monkeypatch, gpus):
    monkeypatch.setattr(gpu_counters, "gpu_handle", lambda gpu: None if "MIG" in gpu else gpu)
    assert GpuCounters(gpus).read() == []
