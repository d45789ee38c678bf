"""Makes variants of the trained tutorial CNN (calibrated, quantized) and measures them."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from pydantic import Field
from torch import nn

from scaling.config.scheme import Scheme
from scaling.core import paired_accuracy
from scaling.core.records.quantization import VARIANT_PATTERN
from scaling.data.batches import Images, predict
from scaling.models.tutorial_cnn import load_weights
from scaling.quantization.calibration import (
    IMAGES,
    Calibration,
    calibrate,
    count_magnitudes,
    layers,
    observer_points,
)
from scaling.quantization.commands import Evaluation, attempted
from scaling.quantization.layer_statistics import distributions, noise, scale_row, weight_row
from scaling.quantization.network import exactness, quantize, quantized_layers
from scaling.quantization.rounding import NEAREST, WORD_BYTES, RoundedLayer
from scaling.registry.model import BY_MOMENTS

MOMENT_IMAGES = 10_000
"""Calibration images whose inputs GPTQ looks at: ten thousand rows for hundreds of inputs."""


class VariantEvaluation(Evaluation):
    """Quantize the tutorial CNN in several ways; `output` is the folder of their records."""

    variants: dict[str, dict[str, Any]] = Field(default={})
    """The options of each by its name, where they differ from int8 weights, activations and logits
    with one scale for each tensor, and int32 biases: {"w4": {"weight_bits": 4}}."""
    histograms: str | None = None
    """The variant whose weights and activations are counted, too."""

    def evaluate(
        self, device: torch.device, chosen: Images, test: Images
    ) -> Iterator[tuple[Path, dict[str, Any]]]:
        """Yield a record for each variant; one that cannot be made says why, in `refused`."""
        schemes = {name: Scheme.of(own, f"variant {name}") for name, own in self.variants.items()}
        network = load_weights(self.weights).to(device)
        for name, scheme in schemes.items():
            measured = attempted(partial(self._measured, network, scheme, name, chosen, test))
            found = {"refused": measured} if isinstance(measured, str) else measured
            about = {"variant": name, "scheme": scheme.model_dump()}
            yield self.output / VARIANT_PATTERN.format(variant=name), about | found

    def _measured(
        self, network: nn.Sequential, scheme: Scheme, name: str, chosen: Images, test: Images
    ) -> dict[str, Any]:
        variant = make(network, scheme, chosen, test, self.seed)
        found = measure(network, variant, chosen, test)
        if name == self.histograms:
            found["histograms"] = distributions(network, variant.network, test.batches())
        json.dumps(found, allow_nan=False)
        return found

    def networks(self, chosen: Images, test: Images) -> dict[str, Callable[[], nn.Module]]:
        network, seed = load_weights(self.weights), self.seed

        def made(**options: Any) -> nn.Module:
            return make(network, Scheme(**options), chosen, test, seed).network

        return {"float32": lambda: network, "int8": made, "uint8": partial(made, unsigned=True)}


class Variant(NamedTuple):
    """A quantized copy of a float network, and if anything calibrated it, the ranges and images."""

    scheme: Scheme
    network: nn.Sequential
    rounded: dict[str, RoundedLayer]
    calibration: Calibration | None = None
    images: Images | None = None


def make(
    network: nn.Sequential, scheme: Scheme, chosen: Images, test: Images, seed: int
) -> Variant:
    """Quantize `network` with the `chosen` training images, or those of a mistake of `scheme`."""
    rounder, calibration, images = NEAREST, None, None
    if gptq := scheme.rounding == "gptq":
        seen = chosen.sample(min(MOMENT_IMAGES, len(chosen)), seed)
        rounder = BY_MOMENTS.load()(seen.batches())
    if scheme.activation_bits is not None:
        mistaken = {"one_image": chosen.sample(1, seed), "test_data": test}
        images = next((mistaken[one] for one in scheme.mistakes if one in mistaken), chosen)
        points = observer_points(network, after="relu")
        calibration = calibrate(network, images.batches(), points)
        if gptq:
            count_magnitudes(network, images.batches(), calibration)
    made, rounded = quantize(network, scheme, calibration, rounder)
    return Variant(scheme, made, rounded, calibration, images)


@torch.no_grad()
def measure(
    network: nn.Sequential, variant: Variant, chosen: Images, test: Images
) -> dict[str, Any]:
    """Measure accuracy against float32, bit-exactness, bytes and every layer, for the record.

    Of equal logits the first wins; integer logits do tie now and then. `exactness` is None where
    only weights are quantized. `training_checksum` is that of the `chosen` training images, which
    should have calibrated.
    """
    quantized, calibration, images = variant.network, variant.calibration, variant.images
    exact, picked = Counter(logits=0, differing=0), []
    for batch in test.batches():
        simulated = quantized(batch)
        picked.append(simulated.argmax(dim=1).cpu().numpy())
        if calibration is not None:
            # GPUs have no max pooling of int8.
            exact.update(exactness(quantized, batch.cpu(), simulated))
    reference, classes = predict(network, test), np.concatenate(picked)
    named = {"labels": test.labels, "float32": reference, "variant": classes}
    rows = [
        weight_row(name, layer, variant.rounded[name], variant.scheme.weight_bits)
        for name, layer in layers(network).items()
    ]
    found: dict[str, Any] = {
        "float32": {"accuracy_percent": 100 * int((reference == test.labels).sum()) / len(test)},
        **paired_accuracy.paired(test.labels, reference, classes),
        "classes": {name: paired_accuracy.encode(each) for name, each in named.items()},
        "calibration_images": len(images) if images else 0,
        "calibration_checksum": images.checksum() if images else None,
        "training_checksum": chosen.checksum(),
        "packed_bytes": sum(row["packed_bytes"] for row in rows),
        "float32_bytes": sum(row["float32_bytes"] for row in rows),
        "exactness": None,
        "input": None,
        "layers": rows,
    }
    if calibration is not None:
        tested, calibrating = (noise(network, quantized, each.batches()) for each in (test, chosen))

        def shares(name: str, sqnr: str) -> dict[str, Any]:
            return {
                "clipped_share_calibration": calibrating[name].clipped_share,
                "clipped_share_test": tested[name].clipped_share,
                sqnr: tested[name].sqnr_db,
            }

        for row in rows:
            name = row["layer"]
            row |= scale_row(quantized_layers(quantized)[name], calibration[name])
            row |= shares(name, "sqnr_after_relu_db")
        seen = calibration[IMAGES]
        found["input"] = {
            "scale": quantized.get_submodule("quantize").scale,
            "range": [seen.minimum, seen.maximum],
            **shares(IMAGES, "sqnr_db"),
        }
        found["exactness"] = dict(exact)
        found["packed_bytes"] += WORD_BYTES
    return found
