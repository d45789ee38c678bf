"""How far a scale reaches: to the largest magnitude, or less far by clipping a few values.

`percentile` clips the largest 0.01 % of magnitudes. `mse` takes the reach with the smallest mean
squared error of rounding and clipping together, out of a hundred up to the largest magnitude: few
bits are worth more on the many small values than on the few large ones (Banner et al. 2019, "Post
Training 4-bit Quantization of Convolutional Networks for Rapid-Deployment").
"""

from dataclasses import dataclass

import torch
from torch import Tensor

PERCENTILE = 99.99
CANDIDATES = 100
BINS = 4096


@dataclass
class Magnitudes:
    """Counts of |x| in 4096 equal bins from 0 to `max_abs`: int64 [4096]."""

    max_abs: float
    counts: Tensor

    @classmethod
    def up_to(cls, max_abs: float) -> "Magnitudes":
        """Nothing seen yet, and nothing larger than `max_abs` to come."""
        return cls(max_abs, torch.zeros(BINS, dtype=torch.int64))

    def see(self, values: Tensor) -> None:
        """Count the values of any shape."""
        if self.max_abs > 0:
            place = (values.abs().flatten() * (BINS / self.max_abs)).long().clamp(max=BINS - 1)
            self.counts += torch.bincount(place, minlength=BINS).cpu()

    @property
    def middles(self) -> Tensor:
        """The middle of each bin, float64 [4096]."""
        return (torch.arange(BINS, dtype=torch.float64) + 0.5) * (self.max_abs / BINS)


def percentile_reach(seen: Magnitudes) -> float:
    """The upper edge of the bin in which the 99.99th percentile of |x| lies."""
    wanted = seen.counts.sum() * (PERCENTILE / 100)
    place = int(torch.searchsorted(seen.counts.cumsum(0).double(), wanted.double()))
    return seen.max_abs * (min(place, BINS - 1) + 1) / BINS


def mse_reach(values: Tensor, counts: Tensor, max_abs: float, last_step: int) -> float:
    """The reach r ≤ max_abs with the smallest mean squared error at scale last_step / r.

    `values` are magnitudes [k], float64, seen `counts` [k] times. Of equal errors the largest
    reach wins.
    """
    reaches = max_abs * torch.arange(CANDIDATES, 0, -1, dtype=torch.float64) / CANDIDATES
    scales = (last_step / reaches).unsqueeze(1)
    errors = torch.round(values * scales).clamp(max=last_step) / scales - values
    return float(reaches[int((errors.square() * counts).sum(dim=1).argmin())])
