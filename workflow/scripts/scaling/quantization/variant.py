"""Makes variants of the trained tutorial CNN (calibrated, quantized) and measures them."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pydantic import Field
from torch import nn

from scaling.config.scheme import STAGES, Scheme
from scaling.core import paired_accuracy
from scaling.core.errors import UserError
from scaling.core.records.quantization import VARIANT_PATTERN
from scaling.data.batches import Images, predict
from scaling.models.tutorial_cnn import load_weights
from scaling.quantization.calibration import IMAGES, calibrate, layers, observer_points
from scaling.quantization.commands import Evaluation
from scaling.quantization.integers import WORD_BYTES
from scaling.quantization.layer_statistics import distributions, noise, scale_row, weight_row
from scaling.quantization.network import exactness, quantize, quantized_layers


class VariantEvaluation(Evaluation):
    """Quantize the tutorial CNN in several ways; `output` is the folder of their records."""

    variants: dict[str, dict[str, Any]] = Field(default={})
    """The options of each by its name, where they differ from int8 weights, activations and logits
    with one scale for each tensor, and int32 biases: {"w4": {"weight_bits": 4}}."""

    def evaluate(
        self, device: torch.device, chosen: Images, test: Images
    ) -> Iterator[tuple[Path, dict[str, Any]]]:
        """Yield a record for each variant; UserError for one that cannot be made."""
        schemes = {name: Scheme.of(own, f"variant {name}") for name, own in self.variants.items()}
        network = load_weights(self.weights).to(device)
        for name, scheme in schemes.items():
            counted = name == STAGES[-1] and scheme.has_histograms
            try:
                found = measure(network, scheme, chosen, test, self.seed, counted=counted)
            except UserError as error:
                raise UserError(f"variant {name} cannot be made: {error}") from error
            about = {"variant": name, "scheme": scheme.model_dump()}
            yield self.output / VARIANT_PATTERN.format(variant=name), about | found


@torch.no_grad()
def measure(
    network: nn.Sequential,
    scheme: Scheme,
    chosen: Images,
    test: Images,
    seed: int,
    *,
    counted: bool = False,
) -> dict[str, Any]:
    """Quantize `network`; measure its accuracy, bit-exactness, bytes and layers, for the record.

    The `chosen` training images calibrate, or those of a mistake of `scheme`; `training_checksum`
    is that of the chosen ones. Of equal logits the first wins. `exactness` is None where only
    weights are quantized. With `counted` the values of all layers are, too.
    """
    is_integer, images, calibration = scheme.activation_bits is not None, None, None
    if is_integer:
        mistaken = {"one_image": chosen.sample(1, seed), "test_data": test}
        images = next((mistaken[one] for one in scheme.mistakes if one in mistaken), chosen)
        calibration = calibrate(network, images.batches(), observer_points(network))
    quantized = quantize(network, scheme, calibration)
    exact, picked = Counter(logits=0, differing=0), []
    for batch in test.batches():
        simulated = quantized(batch)
        picked.append(simulated.argmax(dim=1).cpu().numpy())
        if is_integer:
            # GPUs have no max pooling of int8.
            exact.update(exactness(quantized, batch.cpu(), simulated))
    reference, classes = predict(network, test), np.concatenate(picked)
    told = {"labels": test.labels, "float32": reference, "variant": classes}
    rows = [weight_row(name, layer, scheme) for name, layer in layers(network).items()]
    found: dict[str, Any] = {
        "float32": {"accuracy_percent": 100 * int((reference == test.labels).sum()) / len(test)},
        **paired_accuracy.paired(test.labels, reference, classes),
        "classes": {name: paired_accuracy.encode(each) for name, each in told.items()},
        "calibration_images": len(images) if images else 0,
        "calibration_checksum": images.checksum() if images else None,
        "training_checksum": chosen.checksum(),
        "packed_bytes": sum(row["packed_bytes"] for row in rows) + WORD_BYTES * is_integer,
        "float32_bytes": sum(row["float32_bytes"] for row in rows),
        "exactness": dict(exact) if is_integer else None,
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

        for row, (name, layer) in zip(rows, quantized_layers(quantized).items(), strict=True):
            row |= scale_row(layer, calibration[name]) | shares(name, "sqnr_after_relu_db")
        seen = calibration[IMAGES]
        found["input"] = {
            "scale": quantized.get_submodule("quantize").scale,
            "range": [seen.minimum, seen.maximum],
            **shares(IMAGES, "sqnr_db"),
        }
        if counted:
            found["histograms"] = distributions(network, quantized, test.batches())
    return found
