"""Describe where a run took place: hosts, devices, versions, commit. Does not import torch."""

import hashlib
import os
import platform
import re
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from itertools import takewhile
from pathlib import Path
from typing import Any, Literal

import psutil
import pynvml

from scaling.core.errors import UserError

Device = Literal["auto", "cpu", "cuda"]
"""The device that a user requests; `auto` means cuda if a GPU is visible, else cpu."""
GIT = ["git", "-C", str(Path(__file__).parent), "describe", "--always"]
VARIABLES = re.compile(r"(NCCL|TORCH|PYTORCH|CUDA|CUBLAS|CUDNN)_")
"""Matches the names of environment variables that CUDA, cuDNN, NCCL and PyTorch read."""
PLACES = re.compile(
    r"CUDA_(VISIBLE_DEVICES|DEVICE_ORDER)|\w+_(HOME|VERSION|PATH|DIR|FILE|DIRECTORY)"
)
"""Matches names of variables that affect no measurement: paths, versions, visible GPUs."""
AMPERE = (8, 0)
"""Minimum compute capability of a GPU for TF32 and bf16."""


def now() -> str:
    """Return the current time in UTC, in ISO 8601 format."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def describe(device: Device) -> dict[str, Any]:
    """Return host, devices, versions and environment variables, for the record of a run.

    All GPUs of the machine are listed. No GPU is initialized.
    """
    on_gpu = device == "cuda"
    return {
        "hosts": [host()],
        "machine": machine(device),
        "variables": {
            name: value
            for name, value in sorted(os.environ.items())
            if VARIABLES.match(name) and not PLACES.fullmatch(name)
        },
        "slurm_job_id": os.environ.get("SLURM_JOB_ID"),
        "slurm_gpus": slurm_gpus(),
        "device": device,
        "device_names": gpu_names() if on_gpu else [],
        "cpu": _cpu_name(),
        "cpu_count": psutil.cpu_count() or 0,
        "driver": ask_nvml(pynvml.nvmlSystemGetDriverVersion) if on_gpu else None,
        "topology": _output(["nvidia-smi", "topo", "-m"]) if on_gpu else None,
        "python": platform.python_version(),
        "torch": installed("torch"),
        "torchvision": installed("torchvision"),
        "cuda": None,
        "nccl": None,
        # With "+changes" if they are not committed; without git it is not known.
        "commit": _output([*GIT, "--abbrev=40", "--exclude=*", "--dirty=+changes"]),
        "started": now(),
        "ended": None,
    }


def describe_process(device: Any) -> dict[str, Any]:
    """Return `describe` for `device` (a torch.device). On a GPU, this is the only GPU listed."""
    import torch

    if device.type == "cpu":
        return describe("cpu")
    # CUDA may number GPUs in another order than the driver.
    uuid = f"GPU-{torch.cuda.get_device_properties(device).uuid}"
    return describe("cuda") | leased_gpus([uuid]) | {"cuda": torch.version.cuda}


def completed(
    before: dict[str, Any], gpus: Sequence[str] = (), starts: Sequence[dict[str, Any]] = ()
) -> dict[str, Any]:
    """Return `before`, a result of `describe`, plus the end time, the GPUs and the ranks' hosts.

    `gpus` are the CUDA_VISIBLE_DEVICES entries of the GPUs that were locked for the run. `starts`
    has the report `start` of each rank.
    """
    found = before | leased_gpus(gpus)
    if starts:
        hosts = list(dict.fromkeys(start["host"] for start in starts))
        given = dict.fromkeys(one for start in starts for one in start["slurm_gpus"])
        found |= {"hosts": hosts, "slurm_gpus": list(given)}
        found["machine"] = "+".join(sorted({start["machine"] for start in starts}))
        for key in ("device_names", "device_ids") if len(hosts) > 1 else ():
            found[key] = [one for start in starts for one in start[key]]
        found |= {key: starts[0][key] for key in ("cuda", "nccl")}
    return found | {"ended": now()}


def host() -> str:
    """Return this machine's name; inside a Slurm job, the name that Slurm uses."""
    return os.environ.get("SLURMD_NODENAME") or platform.node()


def machine(device: Device) -> str:
    """Return an identifier of this machine: a hash of its host name and of the UUIDs of its GPUs.

    The identifier has 12 hexadecimal digits. In Slurm and on a CPU, only the name is hashed: a
    Slurm job may not see all GPUs of its node.
    """
    count = ask_nvml(pynvml.nvmlDeviceGetCount) or 0
    seen = range(count) if device == "cuda" and "SLURMD_NODENAME" not in os.environ else ()
    parts = [host(), *sorted(gpu_uuid(str(index)) for index in seen)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


def slurm_gpus() -> list[str]:
    """Return the GPUs that Slurm gave this job, such as [`node:0,1`]; [] outside Slurm."""
    ids = os.environ.get("SLURM_STEP_GPUS")
    return [f"{host()}:{ids}"] if ids else []


def gpu_names() -> list[str]:
    """Return the names of this machine's working GPUs, in NVML's order; [] without a driver."""
    count = ask_nvml(pynvml.nvmlDeviceGetCount) or 0
    return leased_gpus([str(index) for index in range(count)])["device_names"]


def leased_gpus(entries: Sequence[str]) -> dict[str, list[str]]:
    """Return UUIDs (`device_ids`) and names (`device_names`) of CUDA_VISIBLE_DEVICES entries."""
    names = [ask_nvml(pynvml.nvmlDeviceGetName, gpu_handle(entry)) for entry in entries]
    return {
        "device_names": [name for name in names if name is not None],
        "device_ids": [gpu_uuid(entry) for entry in entries],
    }


def gpu_uuid(entry: str) -> str:
    """Return the UUID of a CUDA_VISIBLE_DEVICES entry, or the entry itself if NVML knows none."""
    return ask_nvml(pynvml.nvmlDeviceGetUUID, gpu_handle(entry)) or entry


def gpu_handle(entry: str) -> Any:
    """Return NVML's handle of a CUDA_VISIBLE_DEVICES entry; None if NVML does not know the GPU."""
    if entry.isdigit():
        return ask_nvml(pynvml.nvmlDeviceGetHandleByIndex, int(entry))
    return ask_nvml(pynvml.nvmlDeviceGetHandleByUUID, entry)


def ask_nvml(ask: Callable[..., Any], *arguments: Any) -> Any:
    """Return `ask(*arguments)`, a call of NVML; None if NVML fails or an argument is None."""
    with suppress(pynvml.NVMLError):
        pynvml.nvmlInit()
        return None if None in arguments else ask(*arguments)
    return None


def visible_gpus() -> list[str]:
    """Return CUDA_VISIBLE_DEVICES entries of all GPUs that this process sees, each GPU once."""
    there = len(gpu_names())
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named is None or not there:
        return [str(index) for index in range(there)]
    entries = map(str.strip, named.split(","))
    known = takewhile(lambda entry: entry not in ("", "-1", "NoDevFiles"), entries)
    return list({gpu_uuid(entry): entry for entry in known}.values())


def resolve_device(requested: Device) -> Device:
    """Return "cpu" or "cuda" for `requested`; UserError if a required GPU is not visible."""
    if requested == "cpu":
        return "cpu"
    if visible_gpus():
        return "cuda"
    if given := slurm_gpus():
        none = f"Slurm gave this job GPUs ({given[0]}) and none of them is visible here"
        raise UserError(f"{none}: look at nvidia-smi there, or set device to cpu")
    if requested == "cuda":
        none = "device is cuda, but no GPU is visible (nvidia-smi, CUDA_VISIBLE_DEVICES)"
        raise UserError(f"{none}: run on a machine with one, or set device to cpu")
    return "cpu"


def older_gpu(capability: tuple[int, int]) -> str | None:
    """Return a phrase on a visible GPU with compute capability below `capability`, else None."""
    for handle in map(gpu_handle, visible_gpus()):
        level = ask_nvml(pynvml.nvmlDeviceGetCudaComputeCapability, handle)
        if level and tuple(level) < capability:
            name = ask_nvml(pynvml.nvmlDeviceGetName, handle) or "a GPU"
            return f"{name} has compute capability {level[0]}.{level[1]}"
    return None


def applied_precision(requested: str, device: str) -> str:
    """Return the precision `requested`, but "float32" for "tf32" if `device` has no TF32."""
    lacks = device == "cpu" or older_gpu(AMPERE)
    return "float32" if requested == "tf32" and lacks else requested


def _cpu_name() -> str:
    path = Path("/proc/cpuinfo")  # macOS has none.
    match = re.search(r"model name\s*:\s*(.+)", path.read_text() if path.exists() else "")
    return match[1].strip() if match else platform.machine()


def installed(package: str) -> str | None:
    """Return the version of an installed package; None if it is not installed."""
    with suppress(PackageNotFoundError):
        return version(package)
    return None


def _output(command: list[str]) -> str | None:
    with suppress(OSError, subprocess.SubprocessError):
        finished = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30)
        return re.sub(r"\x1b\[[0-9;]*m", "", finished.stdout.strip())
    return None
