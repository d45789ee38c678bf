"""Where a run took place: hosts, devices, versions, commit. Imports no torch by itself."""

import os
import platform
import re
import runpy
import subprocess
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from itertools import chain, takewhile
from pathlib import Path
from typing import Any, Literal

import psutil
import pynvml

from scaling.core.errors import UserError

Device = Literal["auto", "cpu", "cuda"]
"""Where to compute. `auto` is for command lines: `resolve_device` says what it means here."""
OLDEST_TORCH = (2, 11)
TURING, AMPERE = (7, 5), (8, 0)
"""The least compute capabilities: of GPUs that CUDA 13 knows, and of those with TF32 and bf16."""
TERMINAL_CODES = re.compile(r"\x1b\[[0-9;]*m")


def now() -> str:
    """The current time in UTC, ISO 8601, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def describe(device: Device) -> dict[str, Any]:
    """The environment of a run, as far as it is known without starting a device.

    `device_names` are all of this machine's; the lease narrows them down (`leased_gpus`). The
    workers add what only they see (`seen_by`). `boot_id` is the kernel's: virtual machines often
    share a host's name.
    """
    return {
        "hosts": [host()],
        "boot_id": _text(Path("/proc/sys/kernel/random/boot_id")),
        "slurm_job_id": os.environ.get("SLURM_JOB_ID"),
        "slurm_gpus": slurm_gpus(),
        "device": device,
        "device_names": gpu_names() if device == "cuda" else [],
        "cpu": _cpu_name(),
        "cpu_count": psutil.cpu_count() or 0,
        "driver": ask_nvml(pynvml.nvmlSystemGetDriverVersion) if device == "cuda" else None,
        "topology": _output(["nvidia-smi", "topo", "-m"]) if device == "cuda" else None,
        "python": platform.python_version(),
        "torch": installed("torch"),
        "torchvision": installed("torchvision"),
        "cuda": None,
        "nccl": None,
        "commit": _commit(),
        "started": now(),
        "ended": None,
    }


def describe_process(device: Any) -> dict[str, Any]:
    """Describe where this process computes, on the one `device` (a torch.device) it picked.

    A GPU is asked for its UUID: CUDA need not number the GPUs as their driver does.
    """
    import torch

    if device.type == "cpu":
        return describe("cpu")
    own = f"GPU-{torch.cuda.get_device_properties(device).uuid}"
    return describe("cuda") | leased_gpus([own]) | {"cuda": torch.version.cuda}


def seen_by(starts: list[dict[str, Any]]) -> dict[str, Any]:
    """What the processes of a run know of where they are, from their `start` lines, if any.

    `hosts` and GPUs of all nodes, where there are several; versions of the first process.
    """
    if not starts:
        return {}
    gpus = chain.from_iterable(start["slurm_gpus"] for start in starts)
    hosts = list(dict.fromkeys(start["host"] for start in starts))
    several = ("device_names", "device_ids") if len(hosts) > 1 else ()
    return {
        **{key: [one for start in starts for one in start[key]] for key in several},
        "hosts": hosts,
        "slurm_gpus": list(dict.fromkeys(gpus)),
        "cuda": starts[0]["cuda"],
        "nccl": starts[0]["nccl"],
    }


def host() -> str:
    """The name of this machine; within a Slurm job, the one that Slurm knows it by."""
    return os.environ.get("SLURMD_NODENAME") or platform.node()


def slurm_gpus() -> list[str]:
    """This node and the ids of its GPUs that Slurm gave to this job step, as `node:0,1`."""
    ids = os.environ.get("SLURM_STEP_GPUS")
    return [f"{host()}:{ids}"] if ids else []


def gpu_names() -> list[str]:
    """The names of this machine's GPUs that answer, in NVML's order; empty without a driver."""
    count = ask_nvml(pynvml.nvmlDeviceGetCount) or 0
    return leased_gpus([str(index) for index in range(count)])["device_names"]


def leased_gpus(entries: Sequence[str]) -> dict[str, list[str]]:
    """`device_names` and `device_ids` (UUIDs) of GPUs, given as CUDA_VISIBLE_DEVICES names them.

    Where the driver does not tell, an id is the entry itself and the name is left out.
    """
    names = [ask_nvml(pynvml.nvmlDeviceGetName, gpu_handle(entry)) for entry in entries]
    return {
        "device_names": [name for name in names if name is not None],
        "device_ids": [gpu_uuid(entry) for entry in entries],
    }


def gpu_uuid(entry: str) -> str:
    """The UUID of the GPU that CUDA_VISIBLE_DEVICES names so; the entry if the driver knows none.

    An index means another GPU in another container or job; a UUID does not.
    """
    return ask_nvml(pynvml.nvmlDeviceGetUUID, gpu_handle(entry)) or entry


def gpu_handle(entry: str) -> Any:
    """NVML's handle of the GPU that CUDA_VISIBLE_DEVICES names so, None where it knows none."""
    if entry.isdigit():
        return ask_nvml(pynvml.nvmlDeviceGetHandleByIndex, int(entry))
    return ask_nvml(pynvml.nvmlDeviceGetHandleByUUID, entry)


def ask_nvml(ask: Callable[..., Any], *arguments: Any) -> Any:
    """What the driver answers; None without one, or where it cannot tell, or of no GPU (None)."""
    try:
        pynvml.nvmlInit()
        return None if None in arguments else ask(*arguments)
    except pynvml.NVMLError:
        return None


def visible_gpus() -> list[str]:
    """The GPUs this process may use, as CUDA_VISIBLE_DEVICES would name them, each once."""
    there = len(gpu_names())
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named is None or not there:
        return [str(index) for index in range(there)]
    entries = (entry.strip() for entry in named.split(","))
    known = takewhile(lambda entry: entry not in ("", "-1", "NoDevFiles"), entries)
    return list({gpu_uuid(entry): entry for entry in known}.values())


def resolve_device(requested: Device) -> Device:
    """Replace `auto`, by `cuda` exactly where a GPU is visible; UserError for `cuda` elsewhere.

    And for a PyTorch that is too old, or that cannot use the GPUs.
    """
    built = torch_build()
    told = built.get("__version__", "")
    if told and tuple(map(int, told.split(".")[:2])) < OLDEST_TORCH:
        raise UserError(f"PyTorch is {told}, and 2.11 or newer is needed: make env installs it")
    if requested == "cpu":
        return "cpu"
    if built.get("hip"):
        raise UserError(
            f"torch.version.hip is {built['hip']}, and only NVIDIA GPUs through CUDA are "
            "supported: set device to cpu, or install PyTorch for CUDA"
        )
    if visible_gpus():
        cuda = built.get("cuda") or ""
        if cuda >= "13" and (old := older_gpu(TURING)):
            raise UserError(
                f"{old}, and CUDA {cuda} of PyTorch {told} begins at 7.5 (Turing): leave it out of "
                "CUDA_VISIBLE_DEVICES, or set device to cpu"
            )
        return "cuda"
    if given := slurm_gpus():
        raise UserError(
            f"Slurm gave this job GPUs ({given[0]}) and none of them is visible here: look at "
            "nvidia-smi on that node, or set device to cpu"
        )
    if requested == "cuda":
        raise UserError(
            "device is cuda, and no GPU is visible here (nvidia-smi, CUDA_VISIBLE_DEVICES): "
            "run where there is one, or set device to cpu"
        )
    return "cpu"


def torch_build() -> dict[str, Any]:
    """What torch.version says, without the seconds of importing PyTorch; empty where there is none.

    `__version__`, and the versions of `cuda` or `hip` that it was built for, else null.
    """
    found = find_spec("torch")
    there = found and found.origin
    return runpy.run_path(str(Path(there).with_name("version.py"))) if there else {}


def older_gpu(capability: tuple[int, int]) -> str | None:
    """Say which visible GPU has a lower compute capability, if one of them is known to."""
    for handle in map(gpu_handle, visible_gpus()):
        own = ask_nvml(pynvml.nvmlDeviceGetCudaComputeCapability, handle)
        if own and tuple(own) < capability:
            name = ask_nvml(pynvml.nvmlDeviceGetName, handle) or "a GPU"
            return f"{name} has compute capability {own[0]}.{own[1]}"
    return None


def applied_precision(asked: str, device: str) -> str:
    """The precision that the visible GPUs, or the CPU, apply: what has no TF32 keeps to float32."""
    lacks = device == "cpu" or older_gpu(AMPERE)
    return "float32" if asked == "tf32" and lacks else asked


def _text(file: Path) -> str | None:
    return file.read_text().strip() if file.exists() else None


def _cpu_name() -> str:
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def installed(package: str) -> str | None:
    """The version of a package, None where it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _commit() -> str | None:
    here = str(Path(__file__).parent)
    commit = _output(["git", "-C", here, "rev-parse", "HEAD"])
    changed = _output(["git", "-C", here, "status", "--porcelain", "--untracked-files=no"])
    return f"{commit}+changes" if commit and changed else commit


def _output(command: list[str]) -> str | None:
    try:
        finished = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30)
    except (OSError, subprocess.SubprocessError):
        return None
    return TERMINAL_CODES.sub("", finished.stdout.strip())
