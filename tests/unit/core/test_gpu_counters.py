"""GPU counters of an epoch. Counters that the driver does not have are absent."""

import pytest

from scaling.core import gpu_counters
from scaling.core.gpu_counters import GpuCounters, power_capped_seconds, reading

EARLY = {"energy": 4000.0, "power_cap": 7.0, "heat": 7.0, "sm_mhz": 1200.0}


def test_reading_is_the_growth_since_the_last():
    new = reading(EARLY, EARLY | {"energy": 4090.0, "power_cap": 7.5, "sm_mhz": 1980.0})
    assert new == {
        "energy_joules": 90.0,
        "held_back_seconds": {"power_cap": 0.5, "heat": 0.0},
        **{"sm_mhz": 1980, "celsius": None},
    }
    # The GPU that was held back longest counts, where all are counted.
    other, old = reading(EARLY, EARLY | {"power_cap": 8.5}), reading({}, {"celsius": 50.0})
    assert power_capped_seconds([new, other]) == 1.5
    assert power_capped_seconds([new, old]) is power_capped_seconds([]) is None


@pytest.mark.parametrize("gpus", [[], ["GPU-known", "MIG-unknown"]])
def test_gpus_unknown_to_the_driver_are_not_read(monkeypatch, gpus):
    monkeypatch.setattr(gpu_counters, "gpu_handle", lambda gpu: None if "MIG" in gpu else gpu)
    assert GpuCounters(gpus).read() == []
