"""Read the driver's counters of GPUs: energy, clocks, throttling. Does not import torch."""

from collections.abc import Sequence
from typing import Any

import pynvml

from scaling.core.environment import ask_nvml, gpu_handle
from scaling.core.records.run import GpuReading

REASONS = {
    "power_cap": pynvml.NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_POWER_CAP,
    "sync_boost": pynvml.NVML_FI_DEV_CLOCKS_EVENT_REASON_SYNC_BOOST,
    "heat": pynvml.NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN,
    "hardware_heat": pynvml.NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN,
    "power_brake": pynvml.NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN,
}
"""Reasons for lowered GPU clocks, each with the driver's counter of its nanoseconds."""


class GpuCounters:
    """Counters of `gpus` (CUDA_VISIBLE_DEVICES entries), starting now."""

    def __init__(self, gpus: Sequence[str]) -> None:
        handles = [gpu_handle(gpu) for gpu in gpus]
        self._handles = [] if None in handles else handles
        self._counts = [counts(handle) for handle in self._handles]

    def read(self) -> list[GpuReading]:
        """Return each GPU's counts since the last reading; empty if the driver lacks one of them.

        Takes milliseconds on the host: call it outside of timed sections.
        """
        before, self._counts = self._counts, [counts(handle) for handle in self._handles]
        found = []
        for handle, early, late in zip(self._handles, before, self._counts, strict=True):
            grown = {name: late[name] - early[name] for name in late if name in early}
            sensor = pynvml.NVML_TEMPERATURE_GPU
            reading = GpuReading(
                energy_joules=grown.pop("energy", None),
                held_back_seconds=grown,
                sm_mhz=ask_nvml(pynvml.nvmlDeviceGetClockInfo, handle, pynvml.NVML_CLOCK_SM),
                celsius=ask_nvml(pynvml.nvmlDeviceGetTemperature, handle, sensor),
            )
            found.append(reading)
        return found


def power_capped_seconds(readings: list[GpuReading]) -> float | None:
    """Return the longest time that any GPU spent at its power limit; None if not counted."""
    held = [reading["held_back_seconds"].get("power_cap") for reading in readings]
    return None if None in held else max(filter(None, held), default=0.0 if held else None)


def counts(handle: Any) -> dict[str, float]:
    """Return the joules and seconds counted so far, by name, where available."""
    fields = ask_nvml(pynvml.nvmlDeviceGetFieldValues, handle, [*REASONS.values()]) or []
    counted = {
        name: field.value.ullVal / 1e9
        for name, field in zip(REASONS, fields, strict=False)
        if field.nvmlReturn == pynvml.NVML_SUCCESS
    }
    millijoules = ask_nvml(pynvml.nvmlDeviceGetTotalEnergyConsumption, handle)
    return counted if millijoules is None else counted | {"energy": millijoules / 1e3}
