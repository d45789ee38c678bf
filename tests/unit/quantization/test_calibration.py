import pytest
import torch

from scaling.quantization.calibration import Range
from scaling.quantization.layer_statistics import Noise


def seen(values):
    found = Range()
    for see in (found.widen, found.count):
        for part in values.chunk(3):
            see(part)
    return found


def test_every_value_is_counted_by_its_magnitude_over_all_batches():
    found = seen(torch.tensor([-4.0, 0.0, 2.0, 4.0, -1.0]))
    assert found.counts.sum() == 5
    assert [int(place) for place in found.counts.nonzero()] == [0, 1024, 2048, 4095]


def test_the_threshold_of_the_least_error_is_the_best_of_all_tried():
    values = torch.randn(20_000, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    found = seen(values)

    def error(threshold, qmax):
        steps = torch.round(values * qmax / threshold).clamp(-qmax, qmax)
        return float((steps * threshold / qmax - values).square().mean())

    for qmax in (1, 7, 127):
        tried = [found.max_abs * percent / 100 for percent in range(1, 101)]
        best = min(error(one, qmax) for one in tried)
        assert error(found.least_error(qmax), qmax) == pytest.approx(best, rel=1e-3)
    # Few steps pay for the many small values with the few large ones: 4 bits clip a normal
    # distribution at 2.8 standard deviations.
    assert 2.3 < found.least_error(7) < 3.0 < found.max_abs
    # Of equal errors the largest threshold wins.
    assert seen(torch.zeros(3)).least_error(1) == 0 and Range(0, 1).least_error(1) == 1


def test_a_hundred_times_the_power_of_the_error_is_20_db():
    assert Noise(signal=100.0, error=1.0).sqnr_db == 20
