"""Read GPUs and memory from outside, while a training runs. Does not import torch."""

import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Self

import numpy as np
import pandas as pd
import psutil
import pynvml

from scaling.core import gpu_counters
from scaling.core.environment import ask_nvml
from scaling.core.records.run import GpuReading

INTERVAL_SECONDS, OF_HOST = 0.2, 0.5
"""Between two samples of GPUs, and of the host's memory, which takes milliseconds."""


class FromOutside:
    """Samples of `gpus` (CUDA_VISIBLE_DEVICES entries) or, without any, of our descendants' memory.

    A thread takes them within the block; times are seconds since its start. Of several `nodes` this
    one alone could be read: none is.
    """

    def __init__(self, gpus: Sequence[str], nodes: int = 1) -> None:
        self._handles = gpu_counters.handles(gpus)
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

    def __exit__(self, *_: object) -> None:
        self._over.set()
        if self._alone:
            self._thread.join()

    def seconds(self) -> float:
        """Return the seconds since the block's start."""
        return time.monotonic() - self._start

    def memory(self) -> dict[str, Any]:
        """Return a record's `memory`: the peak of each GPU, or of the host's processes together."""
        peaks = pd.DataFrame(self._rows, columns=["gpu", "bytes"]).groupby("gpu")["bytes"].max()
        whole: Any = psutil.virtual_memory()
        if self._handles:
            whole = ask_nvml(pynvml.nvmlDeviceGetMemoryInfo, self._handles[0])
        return {
            "kind": "device" if self._handles else "host",
            "peak_bytes": list(map(int, peaks)),
            "capacity_bytes": float(whole.total) if whole else None,
        }

    def readings(self, start: float, end: float) -> list[GpuReading]:
        """Return each GPU's counters between two times, interpolated between samples."""
        return [gpu_counters.reading(_at(own, start), _at(own, end)) for own in self._of_gpus()]

    def busy_shares(self, start: float, end: float) -> list[float]:
        """Return in which part of the time between a kernel ran on each GPU, by its driver."""
        last = end + INTERVAL_SECONDS
        return [
            float(own.loc[own["time"].between(start, last), "busy"].mean())
            for own in self._of_gpus()
        ]

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
                rates = ask_nvml(pynvml.nvmlDeviceGetUtilizationRates, handle)
                memory = ask_nvml(pynvml.nvmlDeviceGetMemoryInfo, handle)
                row = {"time": now, "gpu": gpu, "busy": rates.gpu / 100 if rates else None}
                row["bytes"] = memory.used if memory else 0
                self._rows.append(row | gpu_counters.state(handle))
            over = self._over.wait(INTERVAL_SECONDS if self._handles else OF_HOST)


def _at(own: pd.DataFrame, time: float) -> dict[str, float]:
    """Return the state of a GPU at a time, as far as all its samples have it."""
    known = own.drop(columns="busy").dropna(axis="columns")
    return {str(name): float(np.interp(time, own["time"], known[name])) for name in known}


def _resident_bytes() -> int:
    held = 0
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            held += child.memory_info().rss
    return held
