"""How weights and activations are distributed, as floats and as int8, in one set of bins.

Every bin is one integer step wide and centred on it, so a float and the step it is rounded to
share a bin. Floats that the steps do not reach, and that are clipped, keep bins of their own.
"""

from collections import Counter
from typing import Literal, TypedDict

import torch
from torch import Tensor, nn

from scaling.data.batches import Images
from scaling.quantization.calibration import outlets, watching
from scaling.quantization.network import QuantizedLayer

Quantity = Literal["weights", "before_relu", "after_relu"]


class Histogram(TypedDict):
    """`bin_edges` (k + 1, in the unit of the float values) and how many values lie between them."""

    bin_edges: list[float]
    counts: list[int]


class LayerHistogram(TypedDict):
    """A layer's values of one kind, as floats and as int8; `scale` is in steps per unit."""

    layer: str
    quantity: Quantity
    scale: float
    float: Histogram
    int8: Histogram


class Distribution:
    """Counts the values of one layer and kind, batch by batch."""

    def __init__(self, layer: str, quantity: Quantity, scale: float) -> None:
        self.layer = layer
        self.quantity = quantity
        self.scale = scale
        self.floats: Counter[int] = Counter()
        self.int8: Counter[int] = Counter()

    def see_float(self, values: Tensor) -> None:
        """Count float values of any shape, each at its nearest step."""
        _count(torch.round(values.double() * self.scale), self.floats)

    def see_int8(self, steps: Tensor) -> None:
        """Count integer steps of any shape."""
        _count(steps, self.int8)

    def histograms(self) -> LayerHistogram:
        """What has been counted."""
        return {
            "layer": self.layer,
            "quantity": self.quantity,
            "scale": self.scale,
            "float": _histogram(self.floats, self.scale),
            "int8": _histogram(self.int8, self.scale),
        }


def distributions(
    network: nn.Sequential, quantized: nn.Sequential, images: Images
) -> list[LayerHistogram]:
    """Every layer's weights, and its outputs on `images` before and after ReLU.

    `quantized` is the integer copy of `network`. The last layer has no ReLU and no after_relu.
    """
    weights, outputs = [], {}
    for name, outlet in outlets(network).items():
        layer = quantized.get_submodule(name)
        assert isinstance(layer, QuantizedLayer)
        weights.append(Distribution(name, "weights", layer.rounded.scales[0].item()))
        weights[-1].see_float(network.get_parameter(f"{name}.weight").detach())
        weights[-1].see_int8(layer.weight)
        outputs[name] = Distribution(name, "before_relu", layer.passed_scale)
        if outlet != name:
            outputs[outlet] = Distribution(name, "after_relu", layer.passed_scale)
    _watch_outputs(outputs, network, quantized, images)
    return [found.histograms() for found in (*weights, *outputs.values())]


@torch.no_grad()
def _watch_outputs(
    outputs: dict[str, Distribution],
    network: nn.Sequential,
    quantized: nn.Sequential,
    images: Images,
) -> None:
    def see_float(name: str, values: Tensor) -> None:
        if name in outputs:
            outputs[name].see_float(values)

    def see_int8(name: str, steps: Tensor) -> None:
        if name in outputs:
            outputs[name].see_int8(steps)

    with watching(network, see_float), watching(quantized, see_int8):
        for batch in images.batches():
            network(batch)
            quantized(batch)


def _count(steps: Tensor, counts: Counter[int]) -> None:
    flat = steps.flatten().long()
    first = int(flat.min())
    for offset, count in enumerate(torch.bincount(flat - first).tolist()):
        counts[first + offset] += count


def _histogram(counts: Counter[int], scale: float) -> Histogram:
    steps = range(min(counts), max(counts) + 1)
    return {
        "bin_edges": [(step - 0.5) / scale for step in (*steps, steps.stop)],
        "counts": [counts[step] for step in steps],
    }
