"""Observes a float network's activations on calibration images."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_hook

IMAGES = "images"
"""The name of the network's input among the names of its layers."""

Layer = nn.Conv2d | nn.Linear
Points = Mapping[str, str]
"""The names of the modules whose outputs are observed, by layer."""


class Range(NamedTuple):
    """The smallest and the largest value seen."""

    minimum: float
    maximum: float

    @property
    def max_abs(self) -> float:
        return max(abs(self.minimum), abs(self.maximum))


Calibration = dict[str, Range]
"""The ranges of the normalised images, and by name of what each layer passes on."""


def layers(network: nn.Module) -> dict[str, Layer]:
    """List the layers with weights, by name, in the order of the modules."""
    return {name: module for name, module in network.named_modules() if isinstance(module, Layer)}


def observer_points(network: nn.Sequential) -> Points:
    """Map each layer to its ReLU, or to itself where there is none."""
    found: dict[str, str] = {}
    for name, module in network.named_children():
        if isinstance(module, Layer):
            layer = name
        if isinstance(module, Layer | nn.ReLU):
            found[layer] = name
    return found


@torch.no_grad()
def outputs(network: nn.Module, batch: Tensor, points: Points) -> dict[str, Tensor]:
    """Run `network` on `batch`; return what the modules at `points` give, and it as `IMAGES`."""
    found, names = {IMAGES: batch}, {network.get_submodule(at): of for of, at in points.items()}

    def keep(module: nn.Module, _inputs: Any, output: Tensor) -> None:
        if module in names:
            found[names[module]] = output

    with register_module_forward_hook(keep):
        network(batch)
    return found


def calibrate(network: nn.Module, batches: Iterable[Tensor], points: Points) -> Calibration:
    """Run the float `network` over all `batches` [n, 3, 32, 32] and keep the ranges at `points`."""
    found: Calibration = {}
    for batch in batches:
        for name, values in outputs(network, batch, points).items():
            low, high = (end.item() for end in torch.aminmax(values))
            seen = found.get(name, Range(low, high))
            found[name] = Range(min(seen.minimum, low), max(seen.maximum, high))
    return found
