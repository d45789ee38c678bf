"""Read GPUs from outside, while a training runs. Does not import torch."""

import threading
import time
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import pandas as pd
import pynvml

from scaling.core import gpu_counters
from scaling.core.environment import ask_nvml
from scaling.core.records.run import GpuReading

INTERVAL_SECONDS = 0.2


class FromOutside:
    """Samples of `gpus` (CUDA_VISIBLE_DEVICES entries), taken by a thread within the block.

    Times are seconds since its start. Without GPUs nothing is read.
    """

    def __init__(self, gpus: Sequence[str]) -> None:
        self._handles = gpu_counters.handles(gpus)
        self._rows: list[dict[str, Any]] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._start = time.monotonic()

    def __enter__(self) -> Self:
        self._start = time.monotonic()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def seconds(self) -> float:
        """Return the seconds since the block's start."""
        return time.monotonic() - self._start

    def memory(self) -> dict[str, Any]:
        """Return a record's `memory`: the peak of each GPU."""
        peaks = [int(own["bytes"].max()) for own in self._of_gpus()]
        whole = peaks and ask_nvml(pynvml.nvmlDeviceGetMemoryInfo, self._handles[0])
        capacity = float(whole.total) if whole else None
        kind = "device" if peaks else None
        return {"kind": kind, "peak_bytes": peaks, "capacity_bytes": capacity}

    def between(self, start: float, end: float) -> list[tuple[GpuReading, float]]:
        """Return each GPU's counters between two times, and in which share of them a kernel ran."""
        last = end + INTERVAL_SECONDS
        return [
            (
                gpu_counters.reading(_at(own, start), _at(own, end)),
                float(own.loc[own["time"].between(start, last), "busy"].mean()),
            )
            for own in self._of_gpus()
        ]

    def _of_gpus(self) -> list[pd.DataFrame]:
        return [own for _, own in pd.DataFrame(self._rows).groupby("gpu")] if self._rows else []

    def _sample(self) -> None:
        over = not self._handles
        while not over:
            now = self.seconds()
            for gpu, handle in enumerate(self._handles):
                rates = ask_nvml(pynvml.nvmlDeviceGetUtilizationRates, handle)
                memory = ask_nvml(pynvml.nvmlDeviceGetMemoryInfo, handle)
                row = {"time": now, "gpu": gpu, "busy": rates.gpu / 100 if rates else None}
                row["bytes"] = memory.used if memory else 0
                self._rows.append(row | gpu_counters.state(handle))
            over = self._over.wait(INTERVAL_SECONDS)


def _at(own: pd.DataFrame, time: float) -> dict[str, float]:
    """Return the state of a GPU at a time, as far as all its samples have it."""
    known = own.drop(columns="busy").dropna(axis="columns")
    return {str(name): float(np.interp(time, own["time"], known[name])) for name in known}
