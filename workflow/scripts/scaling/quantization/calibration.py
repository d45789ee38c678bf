"""Observes activations on calibration images, and derives clipping thresholds from them.

A threshold is the magnitude that lands on the last level: the largest one seen; or the one with the
smallest mean squared error of rounding and clipping together, as few bits are worth more on the
many small values than on the few large ones (Banner et al. 2019, "Post Training 4-bit Quantization
of Convolutional Networks for Rapid-Deployment").
"""

from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import Tensor, nn

IMAGES = "images"
"""The name of the network's input among the names of its layers."""
CANDIDATES = 100
BINS = 4096

Layer = nn.Conv2d | nn.Linear
Points = Mapping[str, str]
"""The names of the modules whose outputs are observed, by layer."""


@dataclass
class Range:
    """The smallest and the largest value seen, and where they were counted (for a threshold that
    clips) the `counts` of |x| in equal bins up to `max_abs`, int64 [4096]."""

    minimum: float = float("inf")
    maximum: float = float("-inf")
    counts: Tensor = field(default_factory=lambda: torch.zeros(BINS, dtype=torch.int64))

    @property
    def max_abs(self) -> float:
        return max(abs(self.minimum), abs(self.maximum))

    def widen(self, values: Tensor) -> None:
        """Widen the range to hold all of `values`."""
        low, high = torch.aminmax(values)
        self.minimum = min(self.minimum, low.item())
        self.maximum = max(self.maximum, high.item())

    def count(self, values: Tensor) -> None:
        """Count values of any shape, none larger than `max_abs`."""
        if self.max_abs > 0:
            place = (values.abs().flatten() * (BINS / self.max_abs)).long().clamp(max=BINS - 1)
            self.counts += torch.bincount(place, minlength=BINS).cpu()

    def least_error(self, qmax: int) -> float:
        """Return the threshold t ≤ max_abs with the least mean squared error at scale qmax / t.

        Of a hundred candidates; of equal errors the largest threshold wins.
        """
        middles = (torch.arange(BINS, dtype=torch.float64) + 0.5) * (self.max_abs / BINS)
        shares = torch.arange(CANDIDATES, 0, -1, dtype=torch.float64) / CANDIDATES
        scales = (qmax / (self.max_abs * shares)).unsqueeze(1)
        errors = torch.round(middles * scales).clamp(max=qmax) / scales - middles
        best = int((errors.square() * self.counts).sum(dim=1).argmin())
        return self.max_abs * float(shares[best])


Calibration = dict[str, Range]
"""The ranges of the images (normalised), and by name of each layer's output after its ReLU, if any.

What is counted is what the next layer receives, behind the pooling.
"""


def layers(network: nn.Module) -> dict[str, Layer]:
    """List the layers with weights, by name, in the order of the modules."""
    return {name: module for name, module in network.named_modules() if isinstance(module, Layer)}


def observer_points(network: nn.Sequential, after: Literal["relu", "pool"]) -> Points:
    """Map each layer to the module whose output is observed for it.

    After `relu`: the layer's ReLU, or the layer itself where there is none. After `pool`: the last
    module before the next layer, with the same largest value, but another distribution.
    """
    found: dict[str, str] = {}
    for name, module in network.named_children():
        if isinstance(module, Layer):
            layer = name
        if after == "pool" or isinstance(module, Layer | nn.ReLU):
            found[layer] = name
    return found


@torch.no_grad()
def outputs(network: nn.Module, batch: Tensor, points: Points) -> dict[str, Tensor]:
    """Run `network` on `batch`; return what the modules at `points` give, and it as `IMAGES`."""
    found = {IMAGES: batch}
    with ExitStack() as hooks:
        for name, point in points.items():

            def keep(_module: nn.Module, _inputs: Any, output: Tensor, name: str = name) -> None:
                found[name] = output

            hooks.callback(network.get_submodule(point).register_forward_hook(keep).remove)
        network(batch)
    return found


def calibrate(network: nn.Module, batches: Iterable[Tensor], points: Points) -> Calibration:
    """Run the float `network` over all `batches` [n, 3, 32, 32] and keep the ranges at `points`."""
    found = {name: Range() for name in (IMAGES, *points)}
    for batch in batches:
        for name, values in outputs(network, batch, points).items():
            found[name].widen(values)
    return found


def count_magnitudes(
    network: nn.Sequential, batches: Iterable[Tensor], calibration: Calibration
) -> None:
    """Run over the same `batches` again and count what each layer of `calibration` receives."""
    points = observer_points(network, "pool")
    for batch in batches:
        for name, values in outputs(network, batch, points).items():
            calibration[name].count(values)
