"""Make quantized variants of the trained tutorial CNN, and measure them layer by layer."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from pydantic import Field
from torch import Tensor, nn

from scaling.config.scheme import Scheme
from scaling.core import paired_accuracy
from scaling.core.environment import Device
from scaling.core.training_options import DataOptions
from scaling.data.batches import Images, predict
from scaling.quantization import network as int8


class VariantEvaluation(DataOptions):
    """Options of an evaluation of quantized copies of the tutorial CNN."""

    weights: Path
    """Path of the weights that quantize.py wrote for this seed."""
    seed: int
    """Seed of the choice of calibration images."""
    calibration_images: int
    """Number of training images for calibration; 0: all."""
    output: Path
    """Folder for the records to write."""
    device: Device = "auto"
    """Device to compute on; `auto` means CUDA if a GPU is visible."""
    variants: dict[str, dict[str, Any]] = Field(default={})
    """Options (`Scheme`) of each variant by name: {"w4": {"weight_bits": 4}}."""


@torch.no_grad()
def measure(
    network: nn.Sequential, scheme: Scheme, chosen: Images, test: Images, seed: int
) -> dict[str, Any]:
    """Return the record of a quantized copy of `network`: accuracy, size in bytes, and layers.

    The ranges of outputs are those on the training images `chosen`. Deliberate error `one_image`
    uses a single image, `test_data` uses `test`. Only the default scheme has histograms.
    """
    is_integer = scheme.activation_bits is not None
    images = test if "test_data" in scheme.mistakes else chosen
    images = images.sample(1, seed) if "one_image" in scheme.mistakes else images
    calibration = int8.calibrate(network, images.batches()) if is_integer else {}
    quantized = int8.quantize(network, scheme, calibration)
    classes = {
        "labels": test.labels,
        "float32": predict(network, test),
        "variant": predict(quantized, test),
    }
    rows = [_weights(name, layer, scheme) for name, layer in int8.layers(network).items()]
    record: dict[str, Any] = {
        "float32": {"accuracy_percent": 100 * float((classes["float32"] == test.labels).mean())},
        **paired_accuracy.paired(*classes.values()),
        "classes": {name: paired_accuracy.encode(each) for name, each in classes.items()},
        "calibration_images": len(images) if is_integer else 0,
        "calibration_checksum": images.checksum() if is_integer else None,
        "training_checksum": chosen.checksum(),
        # With the scale of the images.
        "packed_bytes": sum(row["packed_bytes"] for row in rows) + int8.WORD_BYTES * is_integer,
        "float32_bytes": sum(row["float32_bytes"] for row in rows),
        "input": None,
        "layers": rows,
    }
    if is_integer:
        for row in rows:
            layer, floats = (one.get_submodule(row["layer"]) for one in (quantized, network))
            row |= _scales(layer, floats, [*calibration[row["layer"]]])
        scale = quantized.get_submodule("quantize").scale
        record["input"] = {"scale": scale, "range": [*calibration[int8.IMAGES]]}
        if scheme == Scheme():
            record["histograms"] = distributions(network, quantized, test.batches())
    return record


def _weights(name: str, layer: int8.Layer, scheme: Scheme) -> dict[str, Any]:
    weight, (rounded, scales) = layer.weight, int8.round_weights(name, layer, scheme)
    return {
        "layer": name,
        "weight_bits": scheme.weight_bits,
        "weight_scale": scales.min().item(),
        "weight_range": [weight.min().item(), weight.max().item()],
        "packed_bytes": int8.packed_bytes(rounded, scales, scheme.weight_bits),
        "float32_bytes": 4 * (weight.numel() + len(weight)),
    }


def _scales(layer: Any, floats: Any, ends: list[float]) -> dict[str, Any]:
    """Return scales and levels of an integer layer (of scales per channel, the first channel's).

    `floats` is the float layer, `ends` its lowest and highest output. The result has, among others:
    - `input_scale`, `accumulator_scale`: levels per unit of inputs and of sums;
    - `output_scale`: factor from sums to outputs; None for float outputs;
    - `top_step`: level of the largest |output|; None for float outputs;
    - `largest_bias`, `bias_steps`: the bias of largest magnitude, and its level;
    - `bias_error_steps`: max |quantized bias - `accumulator_scale` · bias|.
    """
    bias, factor = floats.bias.double().view_as(layer.bias), layer.factor
    at = bias.abs().flatten().argmax()
    return {
        "output_range": ends,
        "input_scale": layer.input_scale,
        "accumulator_scale": layer.accumulator_scale[0].item(),
        "largest_bias": bias[at].item(),
        "bias_steps": layer.bias[at].item(),
        "bias_error_steps": (layer.bias - bias * layer.accumulator_scale).abs().max().item(),
        "output_scale": None if factor is None else factor[0].item(),
        "top_step": None if factor is None else layer.passed_scale * max(map(abs, ends)),
        "accumulator_bound": layer.accumulator_bound,
    }


@torch.no_grad()
def distributions(
    network: nn.Sequential, quantized: nn.Sequential, batches: Iterable[Tensor]
) -> list[dict[str, Any]]:
    """Return histograms of the weights of each layer, and of its outputs before and after ReLU.

    `quantized` is the integer copy of `network`. Each bin is one level wide, with the level in its
    middle. `scale` is in levels per unit; `bin_edges` are float values (level / `scale`).
    """
    counters: dict[tuple[str, str, float], dict[str, Counter[int]]] = {}

    def count(layer: str, quantity: str, scale: float, floats: Tensor, integers: Tensor) -> None:
        of = counters.setdefault((layer, quantity, scale), {"float": Counter(), "int8": Counter()})
        for counter, steps in zip(of.values(), (floats.double() * scale, integers), strict=True):
            levels, times = steps.round().long().unique(return_counts=True)
            counter.update(dict(zip(levels.tolist(), times.tolist(), strict=True)))

    layers, points = int8.layers(quantized), int8.observer_points(network)
    places = [(name, "before_relu", name) for name in layers]
    places += [(name, "after_relu", at) for name, at in points.items() if at != name]
    for name, layer in int8.layers(network).items():
        scale = layers[name].scales.flatten()[0].item()
        count(name, "weights", scale, layer.weight, layers[name].products.weight)
    for batch in batches:
        floats, integers = int8.outputs(network, batch), int8.outputs(quantized, batch)
        for name, quantity, at in places:
            count(name, quantity, layers[name].passed_scale, floats[at], integers[at])
    return [
        {"layer": layer, "quantity": quantity, "scale": scale}
        | {name: _histogram(counts, scale) for name, counts in of.items()}
        for (layer, quantity, scale), of in counters.items()
    ]


def _histogram(counts: Counter[int], scale: float) -> dict[str, Any]:
    bins = range(min(counts), max(counts) + 1)
    edges = [(level - 0.5) / scale for level in (*bins, bins.stop)]
    return {"bin_edges": edges, "counts": [counts[level] for level in bins]}
