"""Sample the driver's counters of GPUs while a user's command trains on them."""

import threading
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
import pandas as pd
import pynvml

from scaling.core import gpu_counters
from scaling.core.environment import ask_nvml
from scaling.core.records.run import GpuReading

SAMPLING_SECONDS = 0.2


class Sampler:
    """Sample GPUs (CUDA_VISIBLE_DEVICES entries) during a `with` block, at times of `clock`."""

    def __init__(self, gpus: Sequence[str], clock: Callable[[], float]) -> None:
        self._handles, self._clock = gpu_counters.handles(gpus), clock
        self._samples: list[dict[str, Any]] = []
        self._over = threading.Event()
        self._sampler = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> Self:
        self._sampler.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._sampler.join()

    def memory(self) -> dict[str, Any]:
        """Return a record's `memory`: the peak bytes of each GPU, and the first GPU's capacity."""
        peaks = [int(own["bytes"].max()) for own in self._of_gpus()]
        whole = peaks and ask_nvml(pynvml.nvmlDeviceGetMemoryInfo, self._handles[0])
        about = {"kind": "device" if peaks else None, "peak_bytes": peaks}
        return about | {"capacity_bytes": float(whole.total) if whole else None}

    def between(self, start: float, end: float) -> list[tuple[GpuReading, float]]:
        """Return each GPU's counters between two times, and how much of the time a kernel ran."""
        last = end + SAMPLING_SECONDS
        return [
            (
                gpu_counters.reading(_at(own, start), _at(own, end)),
                float(own.loc[own["time"].between(start, last), "busy"].mean()),
            )
            for own in self._of_gpus()
        ]

    def _of_gpus(self) -> list[pd.DataFrame]:
        samples = self._samples
        return [own for _, own in pd.DataFrame(samples).groupby("gpu")] if samples else []

    def _sample(self) -> None:
        over = not self._handles
        while not over:
            now = self._clock()
            for gpu, handle in enumerate(self._handles):
                rates = ask_nvml(pynvml.nvmlDeviceGetUtilizationRates, handle)
                memory = ask_nvml(pynvml.nvmlDeviceGetMemoryInfo, handle)
                row = {"time": now, "gpu": gpu, "busy": rates.gpu / 100 if rates else None}
                row["bytes"] = memory.used if memory else 0
                self._samples.append(row | gpu_counters.state(handle))
            over = self._over.wait(SAMPLING_SECONDS)


def _at(own: pd.DataFrame, time: float) -> dict[str, float]:
    """Return a GPU's counters at a time, interpolated; without counters that some samples lack."""
    known = own.drop(columns="busy").dropna(axis="columns")
    return {str(name): float(np.interp(time, own["time"], known[name])) for name in known}
