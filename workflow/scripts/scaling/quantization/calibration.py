"""Observes activations on calibration images, and derives clipping thresholds from them.

A threshold is the magnitude that lands on the last level: `max_abs` is the largest one seen.
`percentile` clips the largest 0.01 % of magnitudes. `mse` takes the threshold with the smallest
mean squared error of rounding and clipping together, out of a hundred up to the largest magnitude:
few bits are worth more on the many small values than on the few large ones (Banner et al. 2019,
"Post Training 4-bit Quantization of Convolutional Networks for Rapid-Deployment").
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

import torch
from torch import Tensor, nn

IMAGES = "images"
"""The name of the network's input among the names of its layers."""
PERCENTILE = 99.99
CANDIDATES = 100
BINS = 4096

Layer = nn.Conv2d | nn.Linear
Observer = Callable[[str, Tensor], None]
Points = Mapping[str, str]
"""The names of the modules whose outputs are observed, by layer."""


@dataclass
class Range:
    """The smallest and the largest value seen so far."""

    minimum: float = float("inf")
    maximum: float = float("-inf")

    def update(self, values: Tensor) -> None:
        """Widen the range to hold all of `values`."""
        low, high = torch.aminmax(values)
        self.minimum = min(self.minimum, low.item())
        self.maximum = max(self.maximum, high.item())

    @property
    def max_abs(self) -> float:
        return max(abs(self.minimum), abs(self.maximum))


@dataclass
class Magnitudes:
    """Counts of |x| in 4096 equal bins from 0 to `max_abs`: int64 [4096]."""

    max_abs: float
    counts: Tensor = field(default_factory=lambda: torch.zeros(BINS, dtype=torch.int64))

    def update(self, values: Tensor) -> None:
        """Count the values of any shape, none larger than `max_abs`."""
        if self.max_abs > 0:
            place = (values.abs().flatten() * (BINS / self.max_abs)).long().clamp(max=BINS - 1)
            self.counts += torch.bincount(place, minlength=BINS).cpu()


def percentile_threshold(seen: Magnitudes) -> float:
    """Return the upper edge of the bin in which the 99.99th percentile of |x| lies."""
    wanted = seen.counts.sum() * (PERCENTILE / 100)
    place = int(torch.searchsorted(seen.counts.cumsum(0).double(), wanted.double()))
    return seen.max_abs * (min(place, BINS - 1) + 1) / BINS


def mse_threshold(values: Tensor, counts: Tensor, max_abs: float, qmax: int) -> float:
    """Find the threshold t ≤ max_abs with the smallest mean squared error at scale qmax / t.

    `values` are magnitudes [k], float64, seen `counts` [k] times. Of equal errors the largest
    threshold wins.
    """
    thresholds = max_abs * torch.arange(CANDIDATES, 0, -1, dtype=torch.float64) / CANDIDATES
    scales = (qmax / thresholds).unsqueeze(1)
    errors = torch.round(values * scales).clamp(max=qmax) / scales - values
    return float(thresholds[int((errors.square() * counts).sum(dim=1).argmin())])


@dataclass
class Calibration:
    """The ranges of the images (normalised) and, by layer name, of what each layer passes on.

    That is its output after its ReLU, if it has one: the values before, which may reach further
    below zero, become zero and need no room in the integers that the next layer receives.
    `magnitudes` count these values as the next layer receives them. The images are under `IMAGES`.
    """

    ranges: dict[str, Range]
    magnitudes: dict[str, Magnitudes] = field(default_factory=dict)

    def threshold(
        self, name: str, method: Literal["max_abs", "percentile", "mse"], qmax: int
    ) -> float:
        """Return the magnitude at `name` that is to land on the level `qmax`."""
        if method == "max_abs":
            return self.ranges[name].max_abs
        seen = self.magnitudes[name]
        if method == "percentile":
            return percentile_threshold(seen)
        middles = (torch.arange(BINS, dtype=torch.float64) + 0.5) * (seen.max_abs / BINS)
        return mse_threshold(middles, seen.counts, seen.max_abs, qmax)


def layers(network: nn.Module) -> dict[str, Layer]:
    """List the layers with weights, by name, in the order of the modules."""
    return {name: module for name, module in network.named_modules() if isinstance(module, Layer)}


def observer_points(network: nn.Sequential, after: Literal["relu", "pool"]) -> Points:
    """Map each layer to the module whose output is observed for it.

    After `relu`: the layer's ReLU, or the layer itself where there is none. After `pool`: the last
    module before the next layer. Pooling keeps the larger values, so behind it the extremes are the
    same, not the distribution.
    """
    found: dict[str, str] = {}
    for name, module in network.named_children():
        if isinstance(module, Layer):
            layer = name
        if after == "pool" or isinstance(module, Layer | nn.ReLU):
            found[layer] = name
    return found


@contextmanager
def observing(network: nn.Module, points: Points, observe: Observer) -> Iterator[None]:
    """Within the block, call observe(name, output) when the module at one of `points` computed."""

    def hook(name: str, _module: nn.Module, _inputs: object, output: Tensor) -> None:
        observe(name, output)

    with ExitStack() as hooks:
        for name, point in points.items():
            module = network.get_submodule(point)
            hooks.callback(module.register_forward_hook(partial(hook, name)).remove)
        yield


@torch.no_grad()
def observe_network(
    network: nn.Module, batches: Iterable[Tensor], points: Points, observe: Observer
) -> None:
    """Run `network` over all `batches`; call observe(name, values) for the images and `points`."""
    with observing(network, points, observe):
        for batch in batches:
            observe(IMAGES, batch)
            network(batch)


def calibrate(network: nn.Module, batches: Iterable[Tensor], points: Points) -> Calibration:
    """Run the float `network` over all `batches` [n, 3, 32, 32] and keep the ranges at `points`."""
    found = Calibration({name: Range() for name in (IMAGES, *points)})
    observe_network(network, batches, points, lambda name, seen: found.ranges[name].update(seen))
    return found


def count_magnitudes(
    network: nn.Sequential, batches: Iterable[Tensor], calibration: Calibration
) -> None:
    """Run over the same `batches` again and fill `calibration.magnitudes`."""
    counted = {name: Magnitudes(seen.max_abs) for name, seen in calibration.ranges.items()}
    calibration.magnitudes = counted
    points = observer_points(network, "pool")
    observe_network(network, batches, points, lambda name, seen: counted[name].update(seen))
