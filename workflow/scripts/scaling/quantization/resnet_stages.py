"""Takes a trained ResNet-18 through the stages of quantization, and measures what each costs."""

from dataclasses import asdict, dataclass
from typing import Any, Literal

import torch
from torch import nn

from scaling.config.scheme import STAGES, Scheme
from scaling.core import files
from scaling.core.paired_accuracy import paired
from scaling.data.batches import Images
from scaling.models.resnet import ResNet18
from scaling.models.tutorial_cnn import load_into
from scaling.quantization.calibration import calibrate
from scaling.quantization.commands import Evaluation
from scaling.quantization.network import BitExactness, QuantizedLayer
from scaling.quantization.resnet import (
    fold,
    folded_layers,
    observer_points,
    with_integers,
    with_quantized_weights,
)
from scaling.quantization.training import predict

KINDS: tuple[Literal["tensor", "channel"], ...] = ("tensor", "channel")


@dataclass(frozen=True, kw_only=True)
class StagesEvaluation(Evaluation):
    """Take a ResNet-18 through all stages of int8 quantization."""

    model_width: int
    """Channels of its first stage."""

    def evaluate(self, device: torch.device, chosen: Images, test: Images) -> dict[str, Any]:
        network = ResNet18(self.model_width, len(files.read_json(self.manifest)["classes"]))
        name = f"a ResNet-18 of width {self.model_width}"
        load_into(network, self.weights, name, f"quantize_train.py --model {self.model}")
        about = {"model_width": self.model_width, "calibration_images": len(chosen)}
        return {**about, **measure_stages(network.to(device).eval(), chosen, test)}


def stage_schemes(weight_scales: Literal["tensor", "channel"]) -> dict[str, Scheme]:
    """Return the scheme of every stage but float32."""
    _, weights, activations, bias = STAGES
    return {
        weights: Scheme(weight_scales=weight_scales, activation_bits=None),
        activations: Scheme(weight_scales=weight_scales, bias="float"),
        bias: Scheme(weight_scales=weight_scales),
    }


@torch.no_grad()
def measure_stages(network: ResNet18, chosen: Images, test: Images) -> dict[str, Any]:
    """Measure the `stages` on the `test` images, calibrated on the `chosen` ones; and `layers`.

    float32 is `network` as it was trained, with its batch norms.
    """
    folded = fold(network)
    calibration = calibrate(folded, chosen.batches(), observer_points(folded))
    reference = predict(network, test)
    sizes = [each.weight.numel() + len(each.weight) for each in folded_layers(folded).values()]
    size = {"float32_bytes": 4 * sum(sizes)}
    rows: list[dict[str, Any]] = [
        {"stage": STAGES[0], **size, **paired(test.labels, reference, reference)}
    ]
    layers = []
    for kind in KINDS:
        for stage, scheme in stage_schemes(kind).items():
            row = {"stage": stage, "weight_scales": kind, **size}
            made: nn.Module
            if scheme.activation_bits is None:
                made = with_quantized_weights(folded, scheme)
            else:
                made = quantized = with_integers(folded, calibration, scheme)
                found = layer_rows(quantized)
                row["packed_bytes"] = sum(each["packed_bytes"] for each in found)
                row["accumulator_bound"] = max(each["accumulator_bound"] for each in found)
                if scheme.bias == "int32":
                    exactness = BitExactness()
                    for batch in test.batches():
                        exactness.compare(quantized, batch, quantized(batch))
                    row["exactness"] = asdict(exactness)
                    layers += [{"weight_scales": kind, **each} for each in found]
            rows.append(row | paired(test.labels, reference, predict(made, test)))
    return {"stages": rows, "layers": layers}


def layer_rows(quantized: nn.Sequential) -> list[dict[str, Any]]:
    """Describe the bounds and bytes of each layer."""
    layers = [module for module in quantized.modules() if isinstance(module, QuantizedLayer)]
    return [
        {"layer": one.name, **one.bounds(), "packed_bytes": one.rounded.packed_bytes(8)}
        for one in layers
    ]
