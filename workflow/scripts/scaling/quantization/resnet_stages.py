"""Takes a trained ResNet-18 through the stages of quantization, and measures what each costs."""

from collections.abc import Iterator
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
from scaling.quantization.commands import Evaluation
from scaling.quantization.integer_inference import BitExactness
from scaling.quantization.integers import FLOAT32_EXACT, layer_bytes
from scaling.quantization.network import QuantizedLayer
from scaling.quantization.resnet import (
    QuantizedResNet,
    activation_ranges,
    fold,
    folded_layers,
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

    def sentences(self, record: dict[str, Any]) -> list[str]:
        return [
            f"{row['stage']:24} {row.get('weight_scales', ''):8} "
            f"accuracy {row['accuracy_percent']:6.2f} %  "
            f"difference {row['difference_points']:+6.2f} points  "
            f"agreement {row['agreement_percent']:6.2f} %"
            for row in record["stages"]
        ]


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
    ranges = activation_ranges(folded, chosen.batches())
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
                made = quantized = with_integers(folded, ranges, scheme)
                found = list(layer_rows(quantized))
                row["packed_bytes"] = sum(each["packed_bytes"] for each in found)
                row["accumulator_bound"] = max(each["accumulator_bound"] for each in found)
                if scheme.bias == "int32":
                    row["exactness"] = asdict(bit_exactness(quantized, test))
                    layers += [{"weight_scales": kind, **each} for each in found]
            rows.append(row | paired(test.labels, reference, predict(made, test)))
    return {"stages": rows, "layers": layers}


def bit_exactness(quantized: QuantizedResNet, test: Images) -> BitExactness:
    """Compute every logit of the `test` images by the simulation and by integers alone."""
    found = BitExactness()
    for batch in test.batches():
        found.count(quantized.in_integers(batch), quantized(batch))
    return found


def layer_rows(quantized: QuantizedResNet) -> Iterator[dict[str, Any]]:
    """Describe the bounds and bytes of each layer."""
    for name, layer in quantized.named_modules():
        if isinstance(layer, QuantizedLayer):
            scales = len(set(layer.rounded.scales.tolist()))
            yield {
                "layer": name,
                "products_bound": layer.products_bound,
                "accumulator_bound": layer.accumulator_bound,
                "float32_exact": layer.accumulator_bound <= FLOAT32_EXACT,
                "packed_bytes": layer_bytes(layer.weight, 8, scales),
            }
