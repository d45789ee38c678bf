"""Check a machine before measuring: other users, throttling, connections.

Functions that need PyTorch import it themselves, so the other functions work without PyTorch.
"""

import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import psutil
import pynvml

from scaling.config.devices import cores
from scaling.core import environment
from scaling.core.environment import ask_nvml
from scaling.core.gpu_counters import GpuCounters
from scaling.launch.measure import MachineCheck

FREE_MEMORY, BUSY_CORES = 0.9, 0.25
"""Limits as fractions: minimum free memory of an unused GPU, maximum CPU use by other processes."""
SLOWEST, SLOWER = 0.9, 0.97
"""Fractions of the GPUs' median FLOP/s. A GPU is `bad` below SLOWEST, and `odd` below SLOWER."""
SAVING = ("powersave", "conservative")
"""CPU frequency governors that raise the clock only after a core has been busy for some time."""
WATCHED_SECONDS, MULTIPLYING_SECONDS, MATRIX_SIZE = 1.0, 3.0, 8192
PCIE = ("PcieLinkGeneration", "PcieLinkWidth")
TO_DO = "end what else runs there, or ask for GPUs of your own"


def host() -> dict[str, Any]:
    """Return the state of this machine's CPU, and the last GPU error (Xid) in the kernel's log.

    `busy_share` is the fraction of CPU time that other processes use. Unknown values are None.
    """
    governor = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")
    log = ""
    with suppress(OSError):  # Reading the kernel's log needs privileges.
        log = subprocess.run(["dmesg"], capture_output=True, text=True, check=False).stdout
    return {
        "host": environment.host(),
        "cores": cores(),
        "busy_share": psutil.cpu_percent(WATCHED_SECONDS) / 100,
        "governor": governor.read_text().strip() if governor.exists() else None,
        "xid": next((line for line in log.splitlines()[::-1] if "NVRM: Xid" in line), None),
    }


def _ask(entry: str, what: str, *more: Any) -> Any:
    """Return `nvmlDeviceGet<what>(GPU, *more)` of NVML for GPU `entry`, or None if it fails."""
    return ask_nvml(getattr(pynvml, f"nvmlDeviceGet{what}"), environment.gpu_handle(entry), *more)


def gpu(entry: str) -> dict[str, Any]:
    """Return what NVML reports on GPU `entry` of CUDA_VISIBLE_DEVICES. Unknown values are None.

    Call this before this process uses the GPU: `processes` then lists only other processes.
    `cores_near` is the number of this process's CPU cores on the GPU's NUMA node.
    """
    ecc = (pynvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, pynvml.NVML_VOLATILE_ECC)
    memory, rows = _ask(entry, "MemoryInfo"), _ask(entry, "RemappedRows")
    others = _ask(entry, "ComputeRunningProcesses") or []
    links = [_ask(entry, "NvLinkState", n) for n in range(pynvml.NVML_NVLINK_MAX_LINKS)]
    words = _ask(entry, "CpuAffinity", -(-(os.cpu_count() or 1) // 64))
    near = {64 * i + b for i, word in enumerate(words or []) for b in range(64) if word >> b & 1}
    return {
        "host": environment.host(),
        "gpu": environment.gpu_uuid(entry),
        "processes": [process.pid for process in others],
        "memory_bytes": memory and memory.total,
        "free_bytes": memory and memory.free,
        "uncorrected_errors": _ask(entry, "TotalEccErrors", *ecc),
        "rows_to_remap": rows and rows[2] + rows[3],
        "nvlinks": links.count(1),
        "cores_near": len(near & os.sched_getaffinity(0)) if near else None,
        "flops_per_second": None,
        "reading": None,
        **{name: [None, None] for name in PCIE},
    }


def start(options: MachineCheck, folder: Path) -> None:
    """Start `options.gpus` processes. Each calls `run(options, folder)`."""
    from scaling.launch import ranks

    ranks.start(options.gpus, run, options, folder)


def run(check: MachineCheck, log_folder: Path) -> None:
    """Log the state of this process's GPU, and its FLOP/s while all GPUs multiply matrices."""
    from scaling.launch import ranks

    local = int(os.environ.get("LOCAL_RANK", "0"))
    entry = environment.visible_gpus()[local]
    seen, own_host = gpu(entry), host() if local == 0 else None
    with ranks.joined(log_folder, "cuda", 1, check.time_limit_seconds) as (rank, log):
        counters = GpuCounters([entry])
        rank.barrier()
        counters.read()
        seen["flops_per_second"] = _multiply(rank.device)
        seen["reading"] = counters.read()
        for name in PCIE:
            seen[name] = [_ask(entry, f"{which}{name}") for which in ("Curr", "Max")]
        log.append("gpu", {"gpu": seen})
        if own_host:
            log.append("host", {"host": own_host})


def _multiply(device: Any) -> float | None:
    """Return the FLOP/s of float16 matrix products, or None if GPU memory is too small."""
    import torch

    try:
        factor = torch.randn(MATRIX_SIZE, MATRIX_SIZE, device=device, dtype=torch.float16)
        product, done, began = factor @ factor, 0, perf_counter()
        while (passed := perf_counter() - began) < MULTIPLYING_SECONDS:
            for _ in range(10):
                torch.mm(factor, factor, out=product)
            torch.cuda.synchronize(device)
            done += 10
    except torch.OutOfMemoryError:
        return None
    return 2 * MATRIX_SIZE**3 * done / passed


def judge(hosts: list[dict[str, Any]], gpus: list[dict[str, Any]]) -> list[dict[str, str]]:
    """Return a row for each problem of `hosts` and `gpus`: severity, host, GPU's UUID, message.

    The UUID is "" for a host's problem. Severity `bad` comes before `odd`.
    """
    judged = [(one, _of_host(one)) for one in hosts] + [(one, _of_gpu(one, gpus)) for one in gpus]
    findings = [
        {"severity": severity, "host": one["host"], "gpu": one.get("gpu", ""), "message": message}
        for one, findings in judged
        for severity, message in findings
    ]
    return sorted(findings, key=lambda finding: finding["severity"])


def _of_host(one: dict[str, Any]) -> Iterator[tuple[str, str]]:
    if (busy := one["busy_share"]) > BUSY_CORES:
        yield "odd", f"others keep {busy:.0%} of its CPU busy: wait until they have ended"
    if one["governor"] in SAVING:
        yield "odd", f"its CPU saves power ({one['governor']}): set the governor to performance"
    if one["xid"]:
        yield "odd", f"the kernel's log tells of an error of a GPU: {one['xid']}"


def _of_gpu(one: dict[str, Any], gpus: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    if one["processes"]:
        pids = ", ".join(map(str, one["processes"]))
        yield "bad", f"other processes compute on it ({pids}): {TO_DO}"
    elif one["memory_bytes"] and one["free_bytes"] < FREE_MEMORY * one["memory_bytes"]:
        taken = 1 - one["free_bytes"] / one["memory_bytes"]
        yield "bad", f"{taken:.0%} of its memory are taken before the study begins: {TO_DO}"
    if one["uncorrected_errors"] or one["rows_to_remap"]:
        yield "bad", "its memory has had errors that were not corrected: reset it, or leave it out"
    rates = [each["flops_per_second"] for each in gpus if each["flops_per_second"]]
    share = (one["flops_per_second"] or 0) / median(rates) if rates else 1
    if share < SLOWER:
        reason = f"it multiplies matrices at {share:.0%} of the median GPU's rate"
        yield (
            "bad" if share < SLOWEST else "odd",
            f"{reason}: leave it out, or say so of all times",
        )
    held = one["reading"][0]["held_back_seconds"] if one["reading"] else {}
    hot = [name.replace("_", " ") for name in held if name != "power_cap" and held[name]]
    if hot:
        yield "odd", f"{' and '.join(hot)} lowered its clocks: look at its cooling and supply"
    for name in PCIE:
        now, most = one[name]
        if now and most and now < most:
            yield "odd", f"its {name} is {now} of {most}: look at its slot"
    if one["nvlinks"] < max(each["nvlinks"] for each in gpus):
        yield "odd", "it has fewer NVLinks than another GPU: look at nvidia-smi nvlink --status"
    if one["cores_near"] == 0:
        yield "odd", "no core of this job is on its side of the machine: ask for those that are"
