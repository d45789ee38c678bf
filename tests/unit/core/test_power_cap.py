"""The driver's counters of the time at the power limit."""

from types import SimpleNamespace

import pytest

from scaling.core import environment
from scaling.core.environment import PowerCap, held_back

COUNTED = {"GPU-a": 3_000_000_000, "GPU-b": 500_000_000, "old": None}
"""Nanoseconds of each GPU; None for one whose driver does not count."""


@pytest.fixture(autouse=True)
def driver(monkeypatch):
    """Where a handle is the GPU's name."""
    nvml = environment.pynvml

    def read(handle, fields):
        assert fields == [nvml.NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_POWER_CAP]
        counted = COUNTED[handle]
        status = nvml.NVML_ERROR_NOT_SUPPORTED if counted is None else nvml.NVML_SUCCESS
        return [SimpleNamespace(nvmlReturn=status, value=SimpleNamespace(ullVal=counted))]

    monkeypatch.setattr(environment, "gpu_handle", lambda gpu: gpu if gpu in COUNTED else None)
    monkeypatch.setattr(nvml, "nvmlDeviceGetFieldValues", read)


def test_the_counters_are_nanoseconds():
    assert PowerCap(["GPU-a", "GPU-b"]).seconds() == [3.0, 0.5]


@pytest.mark.parametrize("gpus", [[], ["old"], ["GPU-a", "old"], ["GPU-a", "unknown"]])
def test_without_a_count_for_every_gpu_there_is_none(gpus):
    assert PowerCap(gpus).seconds() == []


def test_the_gpu_held_back_longest_counts():
    assert held_back([3.0, 0.5], [3.25, 1.5]) == 1.0
    assert held_back([], []) is None
