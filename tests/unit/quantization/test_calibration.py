import pytest
import torch

from scaling.quantization.calibration import Range, mse_threshold
from scaling.quantization.layer_statistics import Noise


def seen(values):
    found = Range()
    for part in values.chunk(3):
        found.widen(part)
    for part in values.chunk(3):
        found.count(part)
    return found


def test_every_value_is_counted_by_its_magnitude_over_all_batches():
    found = seen(torch.tensor([-4.0, 0.0, 2.0, 4.0, -1.0]))
    assert found.counts.sum() == 5
    assert [int(place) for place in found.counts.nonzero()] == [0, 1024, 2048, 4095]


def test_the_percentile_leaves_one_value_in_ten_thousand_out():
    values = torch.cat([torch.linspace(0, 1, 99_995), torch.full((5,), 100.0)])
    assert seen(values).threshold("percentile", 127) == pytest.approx(1, abs=2 * 100 / 4096)


def test_the_percentile_is_the_upper_edge_of_its_bin():
    # Bins of width 1; the value is in the one from 10 to 11.
    values = torch.cat([torch.full((99_995,), 10.5), torch.full((5,), 4096.0)])
    assert seen(values).threshold("percentile", 127) == 11


def test_the_threshold_by_mse_is_the_best_of_all_tried():
    values = torch.randn(20_000, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    magnitudes, largest = values.abs(), values.abs().max().item()

    def error(threshold, qmax):
        steps = torch.round(values * qmax / threshold).clamp(-qmax, qmax)
        return float((steps * threshold / qmax - values).square().mean())

    for qmax in (1, 7, 127):
        found = mse_threshold(magnitudes, torch.ones(()), largest, qmax)
        tried = [largest * percent / 100 for percent in range(1, 101)]
        assert error(found, qmax) == pytest.approx(min(error(one, qmax) for one in tried))
    # Few steps pay for the many small values with the few large ones: 4 bits clip a normal
    # distribution at 2.8 standard deviations.
    assert 2.3 < mse_threshold(magnitudes, torch.ones(()), largest, 7) < 3.0 < largest
    # Of equal errors the largest threshold wins.
    both = torch.tensor([0.0, 1.0], dtype=torch.float64)
    assert mse_threshold(both, torch.ones(()), 1.0, 1) == 1.0


def test_a_hundred_times_the_power_of_the_error_is_20_db():
    assert Noise(signal=100.0, error=1.0).sqnr_db == 20
