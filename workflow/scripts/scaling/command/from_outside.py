"""Read GPUs and memory from outside, while a training runs. Does not import torch."""

import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

import numpy as np
import pandas as pd
import psutil
import pynvml

from scaling.core.environment import ask_nvml, gpu_handle
from scaling.core.gpu_counters import REASONS, counts
from scaling.core.records.run import GpuReading

INTERVAL_SECONDS, OF_HOST = 0.2, 0.5
"""Between two samples of GPUs, and of the host's memory, which takes milliseconds."""


class FromOutside:
    """Samples of `gpus` (CUDA_VISIBLE_DEVICES entries) or, without any, of our descendants' memory.

    They are taken by a thread within the block; times are seconds since its start. Of several
    `nodes` this one alone could be read, which would be taken for all: none is.
    """

    def __init__(self, gpus: Sequence[str], nodes: int = 1) -> None:
        found = [gpu_handle(gpu) for gpu in gpus]
        self._handles = [] if None in found else found
        self._alone = nodes == 1
        self._rows: list[dict[str, Any]] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._start = time.monotonic()

    def __enter__(self) -> Self:
        self._start = time.monotonic()
        if self._alone:
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._over.set()
        if self._alone:
            self._thread.join()

    def seconds(self) -> float:
        """Return the seconds since the block's start."""
        return time.monotonic() - self._start

    def memory(self) -> dict[str, Any]:
        """Return a record's `memory`: the peak of each GPU, or of the host's processes together."""
        kind = "device" if self._handles else "host"
        peaks = pd.DataFrame(self._rows, columns=["gpu", "bytes"]).groupby("gpu")["bytes"].max()
        whole: Any = psutil.virtual_memory()
        if self._handles:
            whole = ask_nvml(pynvml.nvmlDeviceGetMemoryInfo, self._handles[0])
        capacity = float(whole.total) if whole else None
        return {"kind": kind, "peak_bytes": list(map(int, peaks)), "capacity_bytes": capacity}

    def readings(self, start: float, end: float) -> list[GpuReading]:
        """Return each GPU's counters between two times, interpolated between samples."""
        return [_reading(own, start, end) for own in self._of_gpus()]

    def busy_shares(self, start: float, end: float) -> list[float]:
        """Return in which part of the time between a kernel ran on each GPU, by its driver."""
        inside = [
            own[own["time"].between(start, end + INTERVAL_SECONDS)] for own in self._of_gpus()
        ]
        return [float(own["busy"].mean()) for own in inside]

    def _of_gpus(self) -> list[pd.DataFrame]:
        rows = pd.DataFrame(self._rows)
        return [own for _, own in rows.groupby("gpu")] if self._handles and self._rows else []

    def _sample(self) -> None:
        over = False
        while not over:
            now = self.seconds()
            if not self._handles:
                self._rows.append({"time": now, "gpu": 0, "bytes": _resident_bytes()})
            for gpu, handle in enumerate(self._handles):
                self._rows.append({"time": now, "gpu": gpu, **_state(handle), **counts(handle)})
            over = self._over.wait(INTERVAL_SECONDS if self._handles else OF_HOST)


def _state(handle: Any) -> dict[str, Any]:
    rates = ask_nvml(pynvml.nvmlDeviceGetUtilizationRates, handle)
    memory = ask_nvml(pynvml.nvmlDeviceGetMemoryInfo, handle)
    return {
        "busy": rates.gpu / 100 if rates else None,
        "bytes": memory.used if memory else 0,
        "sm_mhz": ask_nvml(pynvml.nvmlDeviceGetClockInfo, handle, pynvml.NVML_CLOCK_SM),
        "celsius": ask_nvml(pynvml.nvmlDeviceGetTemperature, handle, pynvml.NVML_TEMPERATURE_GPU),
    }


def _reading(own: pd.DataFrame, start: float, end: float) -> GpuReading:
    grown = {
        name: float(np.ptp(np.interp([start, end], own["time"], own[name])))
        for name in ("energy", *REASONS)
        if name in own and own[name].notna().all()
    }
    last = own[own["time"] <= end].iloc[-1]
    return GpuReading(
        energy_joules=grown.pop("energy", None),
        held_back_seconds=grown,
        sm_mhz=None if pd.isna(last["sm_mhz"]) else int(last["sm_mhz"]),
        celsius=None if pd.isna(last["celsius"]) else int(last["celsius"]),
    )


def _resident_bytes() -> int:
    """Return the memory that our descendants hold."""
    held = 0
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            held += child.memory_info().rss
    return held
