"""What quantization does to each layer: scales, ranges, clipping and noise, weights to logits.

Noise is SQNR = 10 · log10(Σ x² / Σ (x - x̂)²) in dB, x the float32 value and x̂ the one quantized.
For weights and for activations it is the noise of their own rounding and clipping: float values
taken to integers and back. `propagated` compares what the quantized network passes on with what
the float network does: with all noise that the layers before have added.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from scaling.quantization.calibration import (
    IMAGES,
    Calibration,
    layers,
    outlets,
    see_passed,
    watching,
)
from scaling.quantization.integers import FLOAT32_EXACT, Steps, weight_steps
from scaling.quantization.network import QuantizedImages, QuantizedLayer
from scaling.quantization.packed_weights import layer_bytes
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

    def quantize(self, values: Tensor, scale: float | Tensor, steps: Steps) -> None:
        """Add `values` and count those beyond `steps`, quantized at `scale` and back."""
        unbounded = (values * scale).round_()
        held = steps.hold(unbounded)
        self.values += values.numel()
        self.clipped += int((held != unbounded).sum())
        self.compare(values, held.div_(scale))

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


@dataclass
class LayerNoise:
    """The noise on one layer's outputs over a set of images."""

    before_relu: Noise = field(default_factory=Noise)
    passed: Noise = field(default_factory=Noise)
    propagated: Noise = field(default_factory=Noise)


class NoiseMeter:
    """Watches a float network and its quantized copy on the same batches, layer by layer."""

    def __init__(self, network: nn.Sequential, quantized: nn.Sequential) -> None:
        self.network = network
        self.quantized = quantized
        self.images = Noise()
        self.layers = {name: LayerNoise() for name in layers(network)}
        self._outlets = outlets(network)

    @torch.no_grad()
    def see(self, batch: Tensor) -> tuple[Tensor, Tensor]:
        """Run both networks on `batch`, add what they pass on; the float and quantized logits."""
        floats: dict[str, Tensor] = {}
        others: dict[str, Tensor] = {}
        with (
            watching(self.network, floats.__setitem__),
            watching(self.quantized, others.__setitem__),
        ):
            logits = self.network(batch), self.quantized(batch)
        entrance = getattr(self.quantized, "quantize", None)
        if isinstance(entrance, QuantizedImages):
            self.images.quantize(batch, entrance.scale, entrance.steps)
        for name, outlet in self._outlets.items():
            found, layer = self.layers[name], self.quantized.get_submodule(name)
            scale = 1.0
            if isinstance(layer, QuantizedLayer):
                scale = layer.passed_scale
                if layer.steps is not None:
                    # Unsigned steps are none for values before ReLU.
                    if layer.steps.low < 0:
                        found.before_relu.quantize(floats[name], scale, layer.steps)
                    found.passed.quantize(floats[outlet], scale, layer.steps)
            found.propagated.compare(floats[outlet], others[outlet].float() / scale)
        return logits


def clipped_shares(
    network: nn.Sequential, quantized: nn.Sequential, batches: Iterable[Tensor]
) -> dict[str, float | None]:
    """The share of float values on `batches` that each layer (and `IMAGES`) would clip."""
    counts = {name: [0, 0] for name in (IMAGES, *layers(network))}

    def see(name: str, values: Tensor) -> None:
        module = quantized.get_submodule("quantize" if name == IMAGES else name)
        if isinstance(module, QuantizedImages):
            scale, steps = module.scale, module.steps
        elif isinstance(module, QuantizedLayer) and module.steps is not None:
            scale, steps = module.passed_scale, module.steps
        else:
            return
        low, high = (steps.low - 0.5) / scale, (steps.high + 0.5) / scale
        smallest, largest = torch.aminmax(values)
        if smallest < low or largest > high:
            counts[name][0] += int(((values < low) | (values > high)).sum())
        counts[name][1] += values.numel()

    see_passed(network, batches, see)
    return {name: clipped / seen if seen else None for name, (clipped, seen) in counts.items()}


def weight_row(
    name: str, layer: nn.Conv2d | nn.Linear, rounded: RoundedLayer, bits: int
) -> dict[str, Any]:
    """The weights of one layer: bits, scales, range, clipped share, SQNR and bytes."""
    weight, scales = layer.weight.detach().flatten(1), rounded.scales.unsqueeze(1)
    steps = weight_steps(bits)
    clipping, rounding = Noise(), Noise()
    clipping.quantize(weight, scales, steps)
    rounding.compare(weight, rounded.weight.flatten(1) / scales)
    return {
        "layer": name,
        "weight_bits": bits,
        "weight_scale": scales.min().item(),
        "weight_scale_max": scales.max().item(),
        "weight_range": [weight.min().item(), weight.max().item()],
        "weight_clipped_share": clipping.clipped_share,
        "weight_sqnr_db": rounding.sqnr_db,
        "packed_bytes": layer_bytes(rounded.weight, bits, len(set(rounded.scales.tolist()))),
        "float32_bytes": 4 * (weight.numel() + len(weight)),
    }


def scale_row(layer: QuantizedLayer, name: str, calibration: Calibration) -> dict[str, Any]:
    """The scales and bounds of one integer layer.

    Scales are in steps per unit, except `output_scale`, the factor on the accumulator's steps; with
    a scale for each channel they are the first channel's. `output_range` is of the float values on
    the calibration images after ReLU, `top_step` = S · o · max the step on which the largest of
    them lands: the last one, unless ranges are clipped. `bias_error_steps` is the largest
    |bias - b · S|: up to a half for an int32 bias.
    """
    found = calibration.outputs[name]
    factor = None if layer.requantization is None else layer.requantization.factor[0].item()
    exact = layer.rounded.bias * layer.accumulator_scale
    return {
        "input_scale": layer.scales.input,
        "accumulator_scale": layer.accumulator_scale[0].item(),
        "bias_error_steps": (layer.bias - exact).abs().max().item(),
        "output_scale": factor,
        "output_steps": None if layer.steps is None else [layer.steps.low, layer.steps.high],
        "output_range": [found.minimum, found.maximum],
        "top_step": None if factor is None else layer.passed_scale * found.max_abs,
        "products_bound": layer.products_bound,
        "accumulator_bound": layer.accumulator_bound,
        "float32_exact": layer.accumulator_bound <= FLOAT32_EXACT,
    }


def noise_row(noise: LayerNoise) -> dict[str, Any]:
    """The noise on one layer's outputs on the test images."""
    return {
        "clipped_share_test": noise.passed.clipped_share,
        "clipped_share_before_relu": noise.before_relu.clipped_share,
        "sqnr_before_relu_db": noise.before_relu.sqnr_db,
        "sqnr_after_relu_db": noise.passed.sqnr_db,
        "propagated_sqnr_db": noise.propagated.sqnr_db,
    }
