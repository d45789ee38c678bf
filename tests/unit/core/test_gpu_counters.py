"""What GPUs took over an epoch: what a driver does not count is absent, and never an error."""

from types import SimpleNamespace

import pytest

from scaling.core import gpu_counters
from scaling.core.gpu_counters import REASONS, GpuCounters, power_capped_seconds

HELD = {"new": (0.5, 0.25), "other": (1.5, 0.0)}
"""Seconds at the power limit and in heat that GPUs are held back between two readings."""


@pytest.fixture
def driver(monkeypatch):
    """A driver of two GPUs that counts all but energy on one, and of an old one with nothing."""
    nvml, asked = gpu_counters.pynvml, []

    def fields(handle, numbers):
        asked.append(handle)
        counted = dict.fromkeys(numbers)
        if handle in HELD:
            times = asked.count(handle)
            names = ("power_cap", "heat")
            counted |= {
                REASONS[name]: 1e9 * (7 + times * held)
                for name, held in zip(names, HELD[handle], strict=True)
            }
        return [
            SimpleNamespace(nvmlReturn=nvml.NVML_SUCCESS, value=SimpleNamespace(ullVal=value))
            if value is not None
            else SimpleNamespace(nvmlReturn=nvml.NVML_ERROR_NOT_SUPPORTED)
            for value in counted.values()
        ]

    def energy(handle):
        if handle != "new":
            raise nvml.NVMLError(nvml.NVML_ERROR_NOT_SUPPORTED)
        return 4_000_000 + 90_000 * asked.count(handle)

    def unknown(handle, what):
        raise nvml.NVMLError(nvml.NVML_ERROR_NOT_SUPPORTED)

    monkeypatch.setattr(gpu_counters, "gpu_handle", lambda g: g if g in {*HELD, "old"} else None)
    monkeypatch.setattr(nvml, "nvmlInit", lambda: None)
    monkeypatch.setattr(nvml, "nvmlDeviceGetFieldValues", fields)
    monkeypatch.setattr(nvml, "nvmlDeviceGetTotalEnergyConsumption", energy)
    monkeypatch.setattr(nvml, "nvmlDeviceGetClockInfo", lambda handle, kind: 1980)
    monkeypatch.setattr(nvml, "nvmlDeviceGetTemperature", unknown)


def test_a_reading_is_what_was_added_since_the_one_before(driver):
    counters = GpuCounters(["new", "other", "old"])
    counters.read()
    new, other, old = counters.read()
    assert new["energy_joules"] == pytest.approx(90) and other["energy_joules"] is None
    assert new["held_back_seconds"] == pytest.approx({"power_cap": 0.5, "heat": 0.25})
    assert (old["held_back_seconds"], old["sm_mhz"], old["celsius"]) == ({}, 1980, None)
    # The GPU that was held back longest counts, where all are counted.
    assert power_capped_seconds([new, other]) == pytest.approx(1.5)
    assert power_capped_seconds([new, old]) is power_capped_seconds([]) is None


@pytest.mark.parametrize("gpus", [[], ["new", "MIG-unknown"]])
def test_without_a_driver_that_knows_all_gpus_nothing_is_read(driver, gpus):
    assert GpuCounters(gpus).read() == []
