"""The ranges a network's activations take on calibration images, seen through forward hooks."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor, nn

from scaling.quantization.ranges import Magnitudes, mse_reach, percentile_reach

IMAGES = "images"
"""What stands in the place of a layer's name for the network's input."""


@dataclass
class Range:
    """The smallest and the largest value seen so far."""

    minimum: float = float("inf")
    maximum: float = float("-inf")

    def see(self, values: Tensor) -> None:
        """Widen the range to hold all of `values`."""
        low, high = torch.aminmax(values)
        self.minimum = min(self.minimum, low.item())
        self.maximum = max(self.maximum, high.item())

    @property
    def max_abs(self) -> float:
        """The largest magnitude, max|x|."""
        return max(abs(self.minimum), abs(self.maximum))


@dataclass
class Calibration:
    """The ranges of the images (normalised) and, by layer name, of what each layer passes on.

    That is its output after its ReLU, if it has one: the values before, which may reach further
    below zero, become zero and need no room in the integers that the next layer receives.
    `magnitudes` count these values as the next layer receives them, the images' under `IMAGES`;
    empty where nobody asked.
    """

    images: Range = field(default_factory=Range)
    outputs: dict[str, Range] = field(default_factory=dict)
    magnitudes: dict[str, Magnitudes] = field(default_factory=dict)

    def range_of(self, name: str) -> Range:
        """The range of the layer `name`, or of `IMAGES`."""
        return self.images if name == IMAGES else self.outputs[name]

    def reach(
        self, name: str, method: Literal["max_abs", "percentile", "mse"], last_step: int
    ) -> float:
        """The magnitude that the last of `last_step` steps stands for, as `ranges` defines it."""
        if method == "max_abs":
            return self.range_of(name).max_abs
        seen = self.magnitudes[name]
        if method == "percentile":
            return percentile_reach(seen)
        return mse_reach(seen.middles, seen.counts, seen.max_abs, last_step)


def layers(network: nn.Sequential) -> dict[str, nn.Conv2d | nn.Linear]:
    """The layers with weights, by name, in the order of the computation."""
    return {
        name: module
        for name, module in network.named_children()
        if isinstance(module, nn.Conv2d | nn.Linear)
    }


def outlets(network: nn.Sequential) -> dict[str, str]:
    """Where to see what each layer passes on: layer name to the name of its ReLU, else its own."""
    found: dict[str, str] = {}
    for name, module in network.named_children():
        if isinstance(module, nn.Conv2d | nn.Linear):
            layer = name
            found[layer] = name
        elif isinstance(module, nn.ReLU):
            found[layer] = name
    return found


def deliveries(network: nn.Sequential) -> dict[str, str]:
    """Where to see what the next layer receives: layer name to the last module before that one.

    Behind the pooling, which keeps the larger values, an outlet's extremes are the same, not its
    distribution.
    """
    found: dict[str, str] = {}
    for name, module in network.named_children():
        if isinstance(module, nn.Conv2d | nn.Linear):
            layer = name
        found[layer] = name
    return found


@contextmanager
def watching(network: nn.Module, see: Callable[[str, Tensor], None]) -> Iterator[None]:
    """Within the block, call see(name, output) for each direct child of `network` that computes."""

    def watch(name: str) -> Callable[[nn.Module, tuple[Tensor, ...], Tensor], None]:
        return lambda _module, _inputs, output: see(name, output)

    with ExitStack() as hooks:
        for name, module in network.named_children():
            hooks.callback(module.register_forward_hook(watch(name)).remove)
        yield


@torch.no_grad()
def see_passed(
    network: nn.Sequential,
    batches: Iterable[Tensor],
    see: Callable[[str, Tensor], None],
    places: Callable[[nn.Sequential], dict[str, str]] = outlets,
) -> None:
    """Run `network` over all `batches`; see(name, values) for the images and for each layer.

    Values are what the layer called `name` passes on after its ReLU, or at another of its `places`.
    """
    watched = {place: layer for layer, place in places(network).items()}

    def look(name: str, output: Tensor) -> None:
        if name in watched:
            see(watched[name], output)

    with watching(network, look):
        for batch in batches:
            see(IMAGES, batch)
            network(batch)


def calibrate(network: nn.Sequential, batches: Iterable[Tensor]) -> Calibration:
    """Run the float `network` over all `batches` [n, 3, 32, 32] and keep every range."""
    found = Calibration(outputs={layer: Range() for layer in layers(network)})
    see_passed(network, batches, lambda name, values: found.range_of(name).see(values))
    return found


def count_magnitudes(
    network: nn.Sequential, batches: Iterable[Tensor], calibration: Calibration
) -> None:
    """Run over the same `batches` again and fill `calibration.magnitudes`: of `deliveries`."""
    calibration.magnitudes = {
        name: Magnitudes.up_to(calibration.range_of(name).max_abs)
        for name in (IMAGES, *calibration.outputs)
    }
    see_passed(
        network, batches, lambda name, seen: calibration.magnitudes[name].see(seen), deliveries
    )
