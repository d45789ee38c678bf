"""The ranges a network's activations take on calibration images, seen through forward hooks."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn


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
    """

    images: Range = field(default_factory=Range)
    outputs: dict[str, Range] = field(default_factory=dict)


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
def calibrate(network: nn.Sequential, batches: Iterable[Tensor]) -> Calibration:
    """Run the float `network` over all `batches` [n, 3, 32, 32] and keep every range (max-abs)."""
    found = Calibration(outputs={layer: Range() for layer in layers(network)})
    watched = {outlet: found.outputs[layer] for layer, outlet in outlets(network).items()}

    def see(name: str, output: Tensor) -> None:
        if name in watched:
            watched[name].see(output)

    with watching(network, see):
        for batch in batches:
            found.images.see(batch)
            network(batch)
    return found
