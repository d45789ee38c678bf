"""Measures what quantization does to each layer: scales, clipping, noise, distributions.

Noise is SQNR = 10 · log10(Σ x² / Σ (x - x̂)²) in dB, x the float32 value and x̂ the one quantized:
that of the layer's own rounding and clipping, float values taken to integers and back.
"""

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from scaling.config.scheme import Scheme
from scaling.quantization.calibration import IMAGES, Layer, Range, observer_points, outputs
from scaling.quantization.integers import Levels, RoundedLayer
from scaling.quantization.network import QuantizedLayer, quantized_layers


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
        known = self.signal > 0 and self.error > 0
        return 10 * math.log10(self.signal / self.error) if known else None

    @property
    def clipped_share(self) -> float | None:
        """None where nothing was counted."""
        return self.clipped / self.values if self.values else None


def noise(
    network: nn.Sequential, quantized: nn.Sequential, batches: Iterable[Tensor]
) -> dict[str, Noise]:
    """Quantize the images, and what each layer of the float `network` passes on, as its copy does.

    A layer that gives floats counts nothing.
    """
    entrance, points = quantized.get_submodule("quantize"), observer_points(network)
    found = {name: Noise() for name in (IMAGES, *points)}
    takes: dict[str, Any] = {IMAGES: (entrance.scale, entrance.levels)}
    for name, layer in quantized_layers(quantized).items():
        takes |= {name: (layer.passed_scale, layer.levels)} if layer.levels else {}
    for batch in batches:
        passed = outputs(network, batch, points)
        for name, scale_and_levels in takes.items():
            found[name].quantize(passed[name], *scale_and_levels)
    return found


def weight_row(name: str, layer: Layer, scheme: Scheme) -> dict[str, Any]:
    """Describe the weights of one layer: bits, smallest scale, range, SQNR and bytes."""
    rounded, bits = RoundedLayer.of(name, layer, scheme), scheme.weight_bits
    weight, noise = layer.weight.detach().flatten(1), Noise()
    noise.compare(weight, rounded.weight.flatten(1) / rounded.scales.unsqueeze(1))
    return {
        "layer": name,
        "weight_bits": bits,
        "weight_scale": rounded.scales.min().item(),
        "weight_range": [weight.min().item(), weight.max().item()],
        "weight_sqnr_db": noise.sqnr_db,
        "packed_bytes": rounded.packed_bytes(bits),
        "float32_bytes": 4 * (weight.numel() + len(weight)),
    }


def scale_row(layer: QuantizedLayer, seen: Range) -> dict[str, Any]:
    """Describe the scales and bounds of one integer layer.

    Scales are in levels per unit, except `output_scale`, the factor on the accumulator; with a
    scale for each channel they are the first channel's. `top_step` = S · o · max is the level on
    which the largest value `seen` lands: the last one. `largest_bias` becomes `bias_steps`;
    `bias_error_steps` is the largest |bias - b · S|.
    """
    factor = None if layer.requantization is None else layer.requantization.factor[0].item()
    exact = layer.rounded.bias * layer.accumulator_scale
    largest = layer.rounded.bias.abs().argmax()
    return {
        "input_scale": layer.input_scale,
        "accumulator_scale": layer.accumulator_scale[0].item(),
        "largest_bias": layer.rounded.bias[largest].item(),
        "bias_steps": layer.bias[largest].item(),
        "bias_error_steps": (layer.bias - exact).abs().max().item(),
        "output_scale": factor,
        "output_steps": None if layer.levels is None else [layer.levels.low, layer.levels.high],
        "output_range": [seen.minimum, seen.maximum],
        "top_step": None if factor is None else layer.passed_scale * seen.max_abs,
        "accumulator_bound": layer.accumulator_bound,
    }


@torch.no_grad()
def distributions(
    network: nn.Sequential, quantized: nn.Sequential, batches: Iterable[Tensor]
) -> list[dict[str, Any]]:
    """Count every layer's weights, and its outputs on `batches` before and after ReLU, if any.

    `quantized` is the integer copy of `network`. Bins are one level wide and centred on it, so a
    float and the level it is rounded to share a bin. `scale` is in levels per unit, `bin_edges`
    (k + 1) in the unit of the floats, with `counts` between them.
    """
    found: dict[tuple[str, str], tuple[float, Counter[int], Counter[int]]] = {}

    def count(layer: str, quantity: str, scale: float, floats: Tensor, integers: Tensor) -> None:
        counts = found.setdefault((layer, quantity), (scale, Counter(), Counter()))[1:]
        for counter, steps in zip(counts, (floats.double() * scale, integers), strict=True):
            levels, times = steps.round().long().unique(return_counts=True)
            counter.update(dict(zip(levels.tolist(), times.tolist(), strict=True)))

    made = quantized_layers(quantized)
    for name, layer in made.items():
        weights = network.get_parameter(f"{name}.weight"), layer.rounded.weight
        count(name, "weights", layer.rounded.scales[0].item(), *weights)
    modules = {name: name for name, _ in network.named_children()}
    for batch in batches:
        floats, integers = (outputs(each, batch, modules) for each in (network, quantized))
        for name, point in observer_points(network).items():
            for quantity, at in {"before_relu": name, "after_relu": point}.items():
                if quantity == "before_relu" or at != name:
                    count(name, quantity, made[name].passed_scale, floats[at], integers[at])
    return [
        {"layer": layer, "quantity": quantity, "scale": scale}
        | {"float": _histogram(floats, scale), "int8": _histogram(integers, scale)}
        for (layer, quantity), (scale, floats, integers) in found.items()
    ]


def _histogram(counts: Counter[int], scale: float) -> dict[str, Any]:
    bins = range(min(counts), max(counts) + 1)
    edges = [(level - 0.5) / scale for level in (*bins, bins.stop)]
    return {"bin_edges": edges, "counts": [counts[level] for level in bins]}
