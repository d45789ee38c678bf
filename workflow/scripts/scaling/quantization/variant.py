"""Makes one variant of the trained tutorial CNN (calibrated, quantized) and measures it."""

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import torch
from torch import nn

from scaling.config.scheme import Scheme
from scaling.core import paired_accuracy
from scaling.core.errors import UserError
from scaling.data.batches import Images
from scaling.models.tutorial_cnn import load_weights
from scaling.quantization.calibration import (
    IMAGES,
    Calibration,
    Range,
    calibrate,
    count_magnitudes,
    layers,
    observer_points,
)
from scaling.quantization.commands import Evaluation
from scaling.quantization.layer_statistics import (
    Noise,
    NoiseMeter,
    clipped_shares,
    distributions,
    scale_row,
    weight_row,
)
from scaling.quantization.network import BitExactness, QuantizedImages, QuantizedLayer, quantize
from scaling.quantization.rounding import WORD_BYTES, LayerInputs, RoundedLayer

MOMENT_IMAGES = 10_000
"""Calibration images whose inputs GPTQ and a corrected bias look at: for hundreds of inputs of a
layer some ten thousand rows, of which a regression makes little noise its own."""


@dataclass(frozen=True, kw_only=True)
class VariantEvaluation(Evaluation):
    """Quantize the tutorial CNN one way."""

    variant: str
    """What to call it."""
    scheme: dict[str, Any] = field(default_factory=dict)
    """Its options where they differ from int8 weights, activations and logits with one scale for
    each tensor, and int32 biases: {"weight_bits": 4, "rounding": "gptq"}."""
    histograms: bool = False
    """Whether to count how the weights and activations are distributed, too."""

    def evaluate(self, device: torch.device, chosen: Images, test: Images) -> dict[str, Any]:
        scheme = Scheme.of(self.scheme, "the scheme")
        if self.histograms and not scheme.has_histograms:
            raise UserError(
                f"--histograms: {self.variant} has no int8 activations, logits and weights with "
                "one scale for each tensor; choose a variant that has"
            )
        network = load_weights(self.weights).to(device)
        variant = make(network, scheme, chosen, test, self.seed)
        record: dict[str, Any] = {"variant": self.variant, "scheme": scheme.model_dump()}
        record |= measure(network, variant, chosen, test)
        if self.histograms:
            record["histograms"] = distributions(network, variant.network, test.batches())
        return record

    def sentences(self, record: dict[str, Any]) -> list[str]:
        exactness = record["exactness"]
        checked = (
            "no integer pipeline, as activations are floats"
            if exactness is None
            else f"{exactness['differing']} of {exactness['logits']} logits differ from those "
            "computed in integers"
        )
        smaller = record["float32_bytes"] / record["packed_bytes"]
        return [
            f"{self.variant}: accuracy {record['accuracy_percent']:.2f} %, "
            f"{record['difference_points']:+.2f} ± {record['standard_error_points']:.2f} points "
            f"to float32, agreement {record['agreement_percent']:.2f} %, {smaller:.2f} times "
            f"smaller; {checked}"
        ]


@dataclass(frozen=True)
class Variant:
    """A quantized copy of a float network, its rounded layers, and what calibrated it, if anything.

    That is how many `images`, and which.
    """

    scheme: Scheme
    network: nn.Sequential
    rounded: dict[str, RoundedLayer]
    calibration: Calibration | None = None
    images: Images | None = None


def make(
    network: nn.Sequential, scheme: Scheme, chosen: Images, test: Images, seed: int
) -> Variant:
    """Quantize `network` as `scheme` says, with the `chosen` training images.

    Or with those that the mistake of `scheme` takes instead.
    """
    inputs, calibration, images = LayerInputs(), None, None
    if scheme.needs_moments:
        inputs = LayerInputs(chosen.sample(min(MOMENT_IMAGES, len(chosen)), seed).batches())
    if scheme.activation_bits is not None:
        images = {"one_image": chosen.sample(1, seed), "test_data": test}.get(
            str(scheme.mistake), chosen
        )
        points = observer_points(network, after="relu")
        calibration = calibrate(network, images.batches(), points)
        if scheme.activation_range != "max_abs":
            count_magnitudes(network, images.batches(), calibration)
    made, rounded = quantize(network, scheme, calibration, inputs)
    return Variant(scheme, made, rounded, calibration, images)


@torch.no_grad()
def measure(
    network: nn.Sequential, variant: Variant, chosen: Images, test: Images
) -> dict[str, Any]:
    """Measure accuracy against float32, bit-exactness, bytes and every layer, for the record.

    Of equal logits the first wins; integer logits do tie now and then. `exactness` is None where
    only weights are quantized: there is no integer pipeline then. `training_checksum` is that of
    the `chosen` training images, which should have calibrated.
    """
    quantized = variant.network
    meter, exactness = NoiseMeter(network, quantized), BitExactness()
    picked = []
    for batch in test.batches():
        floats, simulated = meter.measure(batch)
        picked.append([each.argmax(dim=1).cpu().numpy() for each in (floats, simulated)])
        if variant.calibration is not None:
            exactness.compare(quantized, batch, simulated)
    reference, classes = (np.concatenate(each) for each in zip(*picked, strict=True))
    named = {"labels": test.labels, "float32": reference, "variant": classes}
    rows = _layer_rows(network, variant, meter)
    found: dict[str, Any] = {
        "float32": {"accuracy_percent": 100 * int((reference == test.labels).sum()) / len(test)},
        **paired_accuracy.paired(test.labels, reference, classes),
        "classes": {name: paired_accuracy.encode(each) for name, each in named.items()},
        "calibration_images": len(variant.images) if variant.images else 0,
        "calibration_checksum": variant.images.checksum() if variant.images else None,
        "training_checksum": chosen.checksum(),
        "packed_bytes": sum(row["packed_bytes"] for row in rows),
        "float32_bytes": sum(row["float32_bytes"] for row in rows),
        "exactness": None,
        "input": None,
        "layers": rows,
    }
    if variant.calibration is not None:
        shares = clipped_shares(network, quantized, chosen.batches())
        for row in rows:
            row["clipped_share_calibration"] = shares[row["layer"]]
        found["exactness"] = asdict(exactness)
        found["packed_bytes"] += WORD_BYTES
        found["input"] = {
            "clipped_share_calibration": shares[IMAGES],
            **_image_row(quantized, variant.calibration.ranges[IMAGES], meter.images),
        }
    return found


def _layer_rows(
    network: nn.Sequential, variant: Variant, meter: NoiseMeter
) -> list[dict[str, Any]]:
    rows = []
    for name, layer in layers(network).items():
        row = weight_row(name, layer, variant.rounded[name], variant.scheme.weight_bits)
        module = variant.network.get_submodule(name)
        if isinstance(module, QuantizedLayer) and variant.calibration is not None:
            row |= scale_row(module, variant.calibration)
        rows.append(row | meter.layers[name].row())
    return rows


def _image_row(quantized: nn.Sequential, seen: Range, noise: Noise) -> dict[str, Any]:
    entrance = quantized.get_submodule("quantize")
    assert isinstance(entrance, QuantizedImages)
    return {
        "scale": entrance.scale,
        "range": [seen.minimum, seen.maximum],
        "steps": [entrance.levels.low, entrance.levels.high],
        "clipped_share_test": noise.clipped_share,
        "sqnr_db": noise.sqnr_db,
    }
