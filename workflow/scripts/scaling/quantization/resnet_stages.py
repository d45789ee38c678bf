"""The trained ResNet-18 through the stages of quantization, and what each costs."""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import pandas as pd
import torch
from torch import nn

from scaling.config.scheme import STAGES, Scheme
from scaling.core import files
from scaling.core.errors import UserError
from scaling.data.batches import Images
from scaling.models.resnet import ResNet18
from scaling.quantization.compare import PairedAccuracy, paired
from scaling.quantization.folded_resnet import fold, folded_layers, ranges
from scaling.quantization.integer_inference import Exactness
from scaling.quantization.integers import FLOAT32_EXACT
from scaling.quantization.network import QuantizedLayer
from scaling.quantization.packed_weights import layer_bytes
from scaling.quantization.resnet import QuantizedResNet, with_integers, with_quantized_weights
from scaling.quantization.training import predict

COLUMNS = [
    *("seed", "stage", "weight_scales", *PairedAccuracy.__annotations__),
    *("float32_bytes", "packed_bytes", "logits", "differing_logits", "accumulator_bound"),
]
"""A row per seed, stage and kind of weight scales; float32 has none.

Differences are to float32. `logits` were computed in integers too, `differing_logits` of them came
out otherwise than simulated; `accumulator_bound` is the worst of all layers.
"""
WHOLE = ["packed_bytes", "logits", "differing_logits", "accumulator_bound"]


def stage_schemes(weight_scales: Literal["tensor", "channel"]) -> dict[str, Scheme]:
    """The scheme of every stage but float32."""
    _, weights, activations, bias = STAGES
    return {
        weights: Scheme(weight_scales=weight_scales, activation_bits=None),
        activations: Scheme(weight_scales=weight_scales, bias="float"),
        bias: Scheme(weight_scales=weight_scales),
    }


@torch.no_grad()
def evaluate(network: ResNet18, chosen: Images, test: Images) -> dict[str, Any]:
    """The `stages` on the `test` images, calibrated on the `chosen` ones, and their `layers`.

    float32 is `network` as it was trained, with its batch norms.
    """
    folded = fold(network)
    seen = ranges(folded, chosen.batches())
    labels, reference = torch.from_numpy(test.labels), predict(network, test)
    size = 4 * sum(
        each.weight.numel() + len(each.weight) for each in folded_layers(folded).values()
    )
    about = {"float32_bytes": size}
    rows: list[dict[str, Any]] = [
        {"stage": STAGES[0], **about, **paired(labels, reference, reference)}
    ]
    layers = []
    kinds: tuple[Literal["tensor", "channel"], ...] = ("tensor", "channel")
    for kind in kinds:
        for stage, scheme in stage_schemes(kind).items():
            row = {"stage": stage, "weight_scales": kind, **about}
            if scheme.activation_bits is None:
                made: nn.Module = with_quantized_weights(folded, scheme)
            else:
                made = quantized = with_integers(folded, seen, scheme)
                found = list(layer_rows(quantized))
                row["packed_bytes"] = sum(each["packed_bytes"] for each in found)
                row["accumulator_bound"] = max(each["accumulator_bound"] for each in found)
                if scheme.bias == "int32":
                    row["exactness"] = asdict(exactness(quantized, test))
                    layers += [{"weight_scales": kind, **each} for each in found]
            rows.append(row | paired(labels, reference, predict(made, test)))
    return {"stages": rows, "layers": layers}


def exactness(quantized: QuantizedResNet, test: Images) -> Exactness:
    """Every logit of the `test` images by the simulation and by integers alone."""
    found = Exactness()
    for batch in test.batches():
        found.count(quantized.in_integers(batch), quantized(batch))
    return found


def layer_rows(quantized: QuantizedResNet) -> Iterator[dict[str, Any]]:
    """Bounds and bytes of each layer."""
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


def read_document(path: Path) -> dict[str, Any]:
    """What `quantize_resnet.py` wrote to `path`; anything else is a UserError that names it.

    Its `environment` is as `scaling.process_environment` describes it, absent from records made
    before it was kept.
    """
    document = files.read_json(path)
    if not (isinstance(document, dict) and {"seed", "stages", "layers"} <= document.keys()):
        raise UserError(f"{path} was not written by quantize_resnet.py; give a file that was")
    return document


def table(documents: list[dict[str, Any]]) -> pd.DataFrame:
    """The rows of `COLUMNS`, by seed, from the documents that `read_document` gave."""
    rows = [
        {
            "seed": document["seed"],
            **row,
            "logits": row.get("exactness", {}).get("logits"),
            "differing_logits": row.get("exactness", {}).get("differing"),
        }
        for document in sorted(documents, key=lambda document: document["seed"])
        for row in document["stages"]
    ]
    # A stage without a figure would turn whole numbers into floats.
    return pd.DataFrame(rows, columns=COLUMNS).astype(dict.fromkeys(WHOLE, "Int64"))
