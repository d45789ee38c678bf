"""The gradient noise scale of gradients whose noise is known."""

import math

import pytest
import torch

from scaling.convergence.noise_scale import noise_scale

PARAMETERS, BATCHES, SIZE = 400, 64, 32


def gradients(signal, spread, seed):
    """Gradients around one of this length, with this deviation of each image's elements."""
    torch.manual_seed(seed)
    mean = torch.full((PARAMETERS,), signal / math.sqrt(PARAMETERS))
    return mean + spread / math.sqrt(SIZE) * torch.randn(BATCHES, PARAMETERS)


def test_its_interval_has_the_true_ratio_in_about_19_of_20_samples():
    """|G|² = 4 and tr(Σ) = 400 · 0.25 = 100: 25 images."""
    found = [noise_scale(gradients(2.0, 0.5, seed), SIZE) for seed in range(100)]
    assert sum(noise.images for noise in found) / 100 == pytest.approx(25, rel=0.02)
    covered = sum(noise.low <= 25 <= noise.high for noise in found)
    assert 90 <= covered <= 99


def test_without_a_signal_it_is_infinite_or_may_be():
    assert all(noise_scale(gradients(0.0, 1.0, seed), SIZE).high == math.inf for seed in range(3))
