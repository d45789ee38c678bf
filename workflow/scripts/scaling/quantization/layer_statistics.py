"""Measures what quantization does to each layer: scales, clipping, noise, distributions.

Noise is SQNR = 10 · log10(Σ x² / Σ (x - x̂)²) in dB, x the float32 value and x̂ the one quantized.
For weights and for activations it is the noise of their own rounding and clipping: float values
taken to integers and back. `propagated` compares what the quantized network passes on with what
the float network does: with all noise that the layers before have added.
"""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from scaling.quantization.calibration import (
    IMAGES,
    Layer,
    Range,
    observe_network,
    observer_points,
    observing,
)
from scaling.quantization.integers import Levels, weight_levels
from scaling.quantization.network import QuantizedImages, QuantizedLayer
from scaling.quantization.rounding import RoundedLayer


@dataclass
class Noise:
    """Sums of squares of values and of their errors; how many values, and how many were clipped."""

    signal: float = 0.0
    error: float = 0.0
    values: int = 0
    clipped: int = 0

    def compare(self, values: Tensor, quantized: Tensor) -> None:
        """Add `values` and what stands for them, any shape."""
        self.signal += values.square().sum().item()
        self.error += (values - quantized).square_().sum().item()

    def quantize(self, values: Tensor, scale: float | Tensor, levels: Levels) -> None:
        """Add `values`, quantized at `scale` and back, and count those beyond `levels`."""
        unbounded = (values * scale).round_()
        clamped = levels.clamp(unbounded)
        self.values += values.numel()
        self.clipped += int((clamped != unbounded).sum())
        self.compare(values, clamped.div_(scale))

    @property
    def sqnr_db(self) -> float | None:
        """None without a value other than zero, or without any error."""
        if not (self.signal > 0 and self.error > 0):
            return None
        return 10 * math.log10(self.signal / self.error)

    @property
    def clipped_share(self) -> float | None:
        """None where nothing was counted."""
        return self.clipped / self.values if self.values else None


class NoiseMeter:
    """Observes a float network and its quantized copy on the same batches, layer by layer."""

    def __init__(self, network: nn.Sequential, quantized: nn.Sequential) -> None:
        self.network, self.quantized = network, quantized
        self.images = Noise()
        self._points = observer_points(network, after="relu")
        self._layers = {name: (Noise(), Noise(), Noise()) for name in self._points}

    @torch.no_grad()
    def measure(self, batch: Tensor) -> tuple[Tensor, Tensor]:
        """Run both networks on `batch` and add what they pass on; returns both logits."""
        floats: dict[str, Tensor] = {}
        others: dict[str, Tensor] = {}
        every = {name: name for name, _ in self.network.named_children()}
        with (
            observing(self.network, every, floats.__setitem__),
            observing(self.quantized, every, others.__setitem__),
        ):
            logits = self.network(batch), self.quantized(batch)
        entrance = getattr(self.quantized, "quantize", None)
        if isinstance(entrance, QuantizedImages):
            self.images.quantize(batch, entrance.scale, entrance.levels)
        for name, point in self._points.items():
            before_relu, passed, propagated = self._layers[name]
            layer = self.quantized.get_submodule(name)
            scale = 1.0
            if isinstance(layer, QuantizedLayer):
                scale = layer.passed_scale
                if layer.levels is not None:
                    # Unsigned levels are none for values before ReLU.
                    if layer.levels.low < 0:
                        before_relu.quantize(floats[name], scale, layer.levels)
                    passed.quantize(floats[point], scale, layer.levels)
            propagated.compare(floats[point], others[point].float() / scale)
        return logits

    def row(self, name: str) -> dict[str, Any]:
        """Return the figures of a layer's outputs for the record."""
        before_relu, passed, propagated = self._layers[name]
        return {
            "clipped_share_test": passed.clipped_share,
            "clipped_share_before_relu": before_relu.clipped_share,
            "sqnr_before_relu_db": before_relu.sqnr_db,
            "sqnr_after_relu_db": passed.sqnr_db,
            "propagated_sqnr_db": propagated.sqnr_db,
        }


def clipped_shares(
    network: nn.Sequential, quantized: nn.Sequential, batches: Iterable[Tensor]
) -> dict[str, float | None]:
    """Measure the share of float values on `batches` that each layer (and `IMAGES`) would clip."""
    points = observer_points(network, after="relu")
    counts = {name: Noise() for name in (IMAGES, *points)}

    def count(name: str, values: Tensor) -> None:
        module = quantized.get_submodule("quantize" if name == IMAGES else name)
        assert isinstance(module, QuantizedImages | QuantizedLayer)
        if module.levels is not None:
            scale = module.scale if isinstance(module, QuantizedImages) else module.passed_scale
            counts[name].quantize(values, scale, module.levels)

    observe_network(network, batches, points, count)
    return {name: noise.clipped_share for name, noise in counts.items()}


def weight_row(name: str, layer: Layer, rounded: RoundedLayer, bits: int) -> dict[str, Any]:
    """Describe the weights of one layer: bits, scales, range, clipped share, SQNR and bytes."""
    weight, scales = layer.weight.detach().flatten(1), rounded.scales.unsqueeze(1)
    clipping, rounding = Noise(), Noise()
    clipping.quantize(weight, scales, weight_levels(bits))
    rounding.compare(weight, rounded.weight.flatten(1) / scales)
    return {
        "layer": name,
        "weight_bits": bits,
        "weight_scale": scales.min().item(),
        "weight_scale_max": scales.max().item(),
        "weight_range": [weight.min().item(), weight.max().item()],
        "weight_clipped_share": clipping.clipped_share,
        "weight_sqnr_db": rounding.sqnr_db,
        "packed_bytes": rounded.packed_bytes(bits),
        "float32_bytes": 4 * (weight.numel() + len(weight)),
    }


def scale_row(layer: QuantizedLayer, seen: Range) -> dict[str, Any]:
    """Describe the scales and bounds of one integer layer.

    Scales are in levels per unit, except `output_scale`, the factor on the accumulator; with a
    scale for each channel they are the first channel's. `output_range` is `seen`, of the float
    values on the calibration images after ReLU, `top_step` = S · o · max the level on which the
    largest of them lands: the last one, unless ranges are clipped. `bias_error_steps` is the
    largest |bias - b · S|: up to a half for an int32 bias. `largest_bias` b becomes `bias_steps`.
    """
    accumulator_scale = layer.scales.accumulator
    factor = None if layer.requantization is None else layer.requantization.factor[0].item()
    exact = layer.rounded.bias * accumulator_scale
    largest = layer.rounded.bias.abs().argmax()
    return {
        "input_scale": layer.scales.input,
        "accumulator_scale": accumulator_scale[0].item(),
        "largest_bias": layer.rounded.bias[largest].item(),
        "bias_steps": layer.bias[largest].item(),
        "bias_error_steps": (layer.bias - exact).abs().max().item(),
        "output_scale": factor,
        "output_steps": None if layer.levels is None else [layer.levels.low, layer.levels.high],
        "output_range": [seen.minimum, seen.maximum],
        "top_step": None if factor is None else layer.passed_scale * seen.max_abs,
        **layer.bounds(),
    }


@dataclass
class Distribution:
    """Counts one layer's values of one `quantity`, as floats and as int8, in one set of bins.

    Every bin is one level wide and centred on it, so a float and the level it is rounded to share a
    bin. Floats beyond the levels, which are clipped, keep bins of their own. `scale` is in levels
    per unit.
    """

    layer: str
    quantity: str
    scale: float
    floats: Counter[int] = field(default_factory=Counter)
    int8: Counter[int] = field(default_factory=Counter)

    def count_floats(self, values: Tensor) -> None:
        """Count float values of any shape, each at its nearest level."""
        self.floats += _counted(torch.round(values.double() * self.scale))

    def count_int8(self, integers: Tensor) -> None:
        self.int8 += _counted(integers)

    def histograms(self) -> dict[str, Any]:
        """Give `bin_edges` (k + 1, in the unit of the floats) and `counts` between them of both."""
        found: dict[str, Any] = {key: getattr(self, key) for key in ("layer", "quantity", "scale")}
        for kind, counts in (("float", self.floats), ("int8", self.int8)):
            bins = range(min(counts), max(counts) + 1)
            edges = [(level - 0.5) / self.scale for level in (*bins, bins.stop)]
            found[kind] = {"bin_edges": edges, "counts": [counts[level] for level in bins]}
        return found


def _counted(integers: Tensor) -> Counter[int]:
    levels, times = integers.long().unique(return_counts=True)
    return Counter(dict(zip(levels.tolist(), times.tolist(), strict=True)))


@torch.no_grad()
def distributions(
    network: nn.Sequential, quantized: nn.Sequential, batches: Iterable[Tensor]
) -> list[dict[str, Any]]:
    """Count every layer's weights, and its outputs on `batches` before and after ReLU.

    `quantized` is the integer copy of `network`. The last layer has no ReLU and no after_relu.
    """
    weights: list[Distribution] = []
    outputs: dict[str, Distribution] = {}
    for name, point in observer_points(network, after="relu").items():
        layer = quantized.get_submodule(name)
        assert isinstance(layer, QuantizedLayer)
        weights.append(Distribution(name, "weights", layer.rounded.scales[0].item()))
        weights[-1].count_floats(network.get_parameter(f"{name}.weight"))
        weights[-1].count_int8(layer.rounded.weight)
        outputs[name] = Distribution(name, "before_relu", layer.passed_scale)
        if point != name:
            outputs[point] = Distribution(name, "after_relu", layer.passed_scale)
    every = {name: name for name in outputs}
    with (
        observing(network, every, lambda name, seen: outputs[name].count_floats(seen)),
        observing(quantized, every, lambda name, seen: outputs[name].count_int8(seen)),
    ):
        for batch in batches:
            network(batch)
            quantized(batch)
    return [found.histograms() for found in (*weights, *outputs.values())]
