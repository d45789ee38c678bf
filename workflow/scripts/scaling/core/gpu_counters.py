"""Read the driver's counters of GPUs: energy, clocks, throttling. Does not import torch."""

from collections.abc import Mapping, Sequence
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
"""Maps each reason for lowered GPU clocks to the NVML field that counts its nanoseconds."""


class GpuCounters:
    """Counts the energy and throttling of GPUs, from the creation of this object on.

    `gpus` are entries of CUDA_VISIBLE_DEVICES.
    """

    def __init__(self, gpus: Sequence[str]) -> None:
        self.handles = handles(gpus)
        self._states = [state(handle) for handle in self.handles]

    def read(self) -> list[GpuReading]:
        """Return each GPU's counts since the last call (at first: creation); takes milliseconds."""
        before, self._states = self._states, [state(handle) for handle in self.handles]
        return [reading(*both) for both in zip(before, self._states, strict=True)]


def handles(gpus: Sequence[str]) -> list[Any]:
    """Return the NVML handles of `gpus`, or [] if NVML does not know one of the GPUs."""
    known = [gpu_handle(gpu) for gpu in gpus]
    return [] if None in known else known


def state(handle: Any) -> dict[str, float]:
    """Return the counters that NVML reports for a GPU, by name.

    `energy` is in joules, `sm_mhz` in MHz, `celsius` in °C, and every name in `REASONS` in seconds.
    """
    fields = ask_nvml(pynvml.nvmlDeviceGetFieldValues, handle, [*REASONS.values()]) or []
    counts = {
        name: field.value.ullVal / 1e9
        for name, field in zip(REASONS, fields, strict=False)
        if field.nvmlReturn == pynvml.NVML_SUCCESS
    }
    millijoules = ask_nvml(pynvml.nvmlDeviceGetTotalEnergyConsumption, handle)
    others = {
        "energy": millijoules and millijoules / 1e3,
        "sm_mhz": ask_nvml(pynvml.nvmlDeviceGetClockInfo, handle, pynvml.NVML_CLOCK_SM),
        "celsius": ask_nvml(pynvml.nvmlDeviceGetTemperature, handle, pynvml.NVML_TEMPERATURE_GPU),
    }
    return counts | {name: value for name, value in others.items() if value is not None}


def reading(early: Mapping[str, float], late: Mapping[str, float]) -> GpuReading:
    """Return by how much energy and times of lowered clocks grew from `early` to `late`.

    Clock and temperature are the values in `late`. Unknown values are None.
    """
    grown = {name: late[name] - early[name] for name in late if name in early}
    return GpuReading(
        energy_joules=grown.get("energy"),
        held_back_seconds={name: grown[name] for name in REASONS if name in grown},
        sm_mhz=int(late["sm_mhz"]) if "sm_mhz" in late else None,
        celsius=int(late["celsius"]) if "celsius" in late else None,
    )


def power_capped_seconds(readings: list[GpuReading]) -> float | None:
    """Return the longest time (s) of a GPU at its power limit; None for [] or an unknown time."""
    held = [reading["held_back_seconds"].get("power_cap") for reading in readings]
    return None if None in held else max(filter(None, held), default=0.0 if held else None)
