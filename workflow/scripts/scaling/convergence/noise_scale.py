"""Estimate the gradient noise scale, above which larger batches save few updates."""

from typing import NamedTuple

import torch
from scipy.special import stdtrit
from torch import Tensor

from scaling.core.statistics import CONFIDENCE


class NoiseScale(NamedTuple):
    """tr(Σ) / |G|² in images, and its confidence interval; infinite where |G|² may be 0."""

    images: float
    low: float
    high: float


def noise_scale(gradients: Tensor, batch: int) -> NoiseScale:
    """Estimate it from the `gradients` [n, parameters] of n ≥ 3 batches of size `batch`.

    McCandlish et al. 2018 (arXiv:1812.06162, appendix A.1) with batch sizes b and n·b, whose
    gradient is the mean: the ratio of unbiased estimates of |G|² and tr(Σ). The interval is the
    reciprocal of the jackknife's (Tukey 1958) for |G|²/tr(Σ), which stays finite.
    """
    n = len(gradients)
    mean = gradients.mean(0)
    squares = torch.stack([one.square().sum() for one in gradients]).double()
    products = torch.stack([(one * mean).sum() for one in gradients]).double()
    square = mean.square().sum().double()
    # Jackknife: |mean without one batch|² follows from dot products.
    left_out = (n**2 * square - 2 * n * products + squares) / (n - 1) ** 2
    inverse = _inverse(squares.mean(), square, n, batch)
    others = _inverse((squares.sum() - squares) / (n - 1), left_out, n - 1, batch)
    error = ((n - 1) / n * (others - others.mean()).square().sum()).sqrt()
    off = float(stdtrit(n - 1, (1 + CONFIDENCE) / 2)) * error
    images, low, high = (
        float(1 / one) if one > 0 else torch.inf for one in (inverse, inverse + off, inverse - off)
    )
    return NoiseScale(images, low, high)


def _inverse(small: Tensor, large: Tensor, n: int, batch: int) -> Tensor:
    """Return |G|²/tr(Σ) from the mean |gradient|² of the n small batches and of their mean."""
    signal = (n * large - small) / (n - 1)
    noise = (small - large) * batch / (1 - 1 / n)
    return signal / noise
