"""One variant of a trained network: calibrated, quantized, and all that is measured of it."""

from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn

from scaling.config.scheme import Scheme
from scaling.data.batches import Images
from scaling.quantization import predicted_classes
from scaling.quantization.calibration import (
    IMAGES,
    Calibration,
    Range,
    calibrate,
    count_magnitudes,
    layers,
)
from scaling.quantization.compare import paired
from scaling.quantization.integer_inference import Exactness
from scaling.quantization.layer_inputs import LayerInputs
from scaling.quantization.ledger import (
    Noise,
    NoiseMeter,
    clipped_shares,
    noise_row,
    scale_row,
    weight_row,
)
from scaling.quantization.network import (
    QuantizedImages,
    QuantizedLayer,
    with_integers,
    with_quantized_weights,
)
from scaling.quantization.packed_weights import WORD_BYTES
from scaling.quantization.rounding import RoundedLayer

MOMENT_IMAGES = 10_000
"""Calibration images whose inputs GPTQ and a corrected bias look at: for hundreds of inputs of a
layer some ten thousand rows, of which a regression makes little noise its own."""


@dataclass(frozen=True)
class Variant:
    """A quantized copy of a float network, its rounded layers, and what calibrated it.

    That is how many images, and which: their checksum, None where there are none.
    """

    scheme: Scheme
    network: nn.Sequential
    rounded: dict[str, RoundedLayer]
    calibration: Calibration | None = None
    calibration_images: int = 0
    calibration_checksum: str | None = None


def calibration_set(scheme: Scheme, chosen: Images, test: Images, seed: int) -> Images:
    """The images that calibrate: the `chosen` training images, unless `scheme` is mistaken there"""
    if scheme.mistake == "one_image":
        return chosen.sample(1, seed)
    return test if scheme.mistake == "test_data" else chosen


def layer_inputs(scheme: Scheme, chosen: Images, seed: int) -> LayerInputs | None:
    """Some of the `chosen` images, where `scheme` asks what each layer receives."""
    if not scheme.needs_moments:
        return None
    return LayerInputs(chosen.sample(min(MOMENT_IMAGES, len(chosen)), seed).batches())


def make(
    network: nn.Sequential, scheme: Scheme, chosen: Images, test: Images, seed: int
) -> Variant:
    """Quantize `network` as `scheme` says, with the `chosen` training images."""
    inputs = layer_inputs(scheme, chosen, seed)
    if scheme.activation_bits is None:
        copied, rounded = with_quantized_weights(network, scheme, inputs)
        return Variant(scheme, copied, rounded)
    images = calibration_set(scheme, chosen, test, seed)
    calibration = calibrate(network, images.batches())
    if scheme.activation_range != "max_abs":
        count_magnitudes(network, images.batches(), calibration)
    quantized = with_integers(network, calibration, scheme, inputs)
    rounded = {
        name: module.rounded
        for name, module in quantized.named_children()
        if isinstance(module, QuantizedLayer)
    }
    return Variant(scheme, quantized, rounded, calibration, len(images), images.checksum())


@torch.no_grad()
def measure(
    network: nn.Sequential, variant: Variant, chosen: Images, test: Images
) -> dict[str, Any]:
    """Accuracy beside float32, exactness, bytes and the ledger: the record without who and where.

    Of equal logits the first wins; integer logits do tie now and then. `exactness` is None where
    only weights are quantized: there is no integer pipeline then. `training_checksum` is that of
    the `chosen` training images, which should have calibrated.
    """
    quantized, labels = variant.network, torch.from_numpy(test.labels)
    meter, exactness = NoiseMeter(network, quantized), Exactness()
    picked: list[tuple[Tensor, Tensor]] = []
    for batch in test.batches():
        floats, simulated = meter.see(batch)
        picked.append((floats.argmax(dim=1).cpu(), simulated.argmax(dim=1).cpu()))
        if variant.calibration is not None:
            exactness.compare(quantized, quantized.get_submodule("quantize")(batch), simulated)
    reference, classes = (torch.cat(each) for each in zip(*picked, strict=True))
    rows = _layer_rows(network, variant, meter)
    found: dict[str, Any] = {
        "float32": {"accuracy_percent": 100 * int((reference == labels).sum()) / len(test)},
        **paired(labels, reference, classes),
        "classes": {
            name: predicted_classes.encode(each.numpy())
            for name, each in {
                "labels": labels,
                "float32": reference,
                "variant": classes,
            }.items()
        },
        "calibration_images": variant.calibration_images,
        "calibration_checksum": variant.calibration_checksum,
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
            **_image_row(quantized, variant.calibration.images, meter.images),
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
            row |= scale_row(module, name, variant.calibration)
        rows.append(row | noise_row(meter.layers[name]))
    return rows


def _image_row(quantized: nn.Sequential, seen: Range, noise: Noise) -> dict[str, Any]:
    entrance = quantized.get_submodule("quantize")
    assert isinstance(entrance, QuantizedImages)
    return {
        "scale": entrance.scale,
        "range": [seen.minimum, seen.maximum],
        "steps": [entrance.steps.low, entrance.steps.high],
        "clipped_share_test": noise.clipped_share,
        "sqnr_db": noise.sqnr_db,
    }
