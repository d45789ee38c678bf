"""One trained network through the four stages of quantization, and what each costs."""

from pathlib import Path
from typing import Any, TypedDict

import pandas as pd
import torch
from torch import nn

from scaling import files
from scaling.calibration import Calibration, Range
from scaling.errors import UserError
from scaling.quantized_inference import (
    QuantizedImages,
    QuantizedLayer,
    with_int8_weights,
    with_integers,
)
from scaling.tutorial_training import Images, predict


class StageResult(TypedDict):
    """A stage on the whole test set.

    `difference_points` is its accuracy minus float32's, in percentage points; `agreement_percent`
    the share of images that it and float32 put in the same class.
    """

    stage: str
    accuracy_percent: float
    difference_points: float
    agreement_percent: float
    test_images: int


def stages(network: nn.Sequential, calibration: Calibration) -> dict[str, nn.Sequential]:
    """The network of every stage, by the stage's name, all from the weights of `network`."""
    return {
        "float32": network,
        "weights": with_int8_weights(network),
        "weights+activations": with_integers(network, calibration, integer_bias=False),
        "weights+activations+bias": with_integers(network, calibration, integer_bias=True),
    }


def compare(networks: dict[str, nn.Sequential], test: Images) -> list[StageResult]:
    """Every stage's accuracy on `test`, and its difference to the stage float32."""
    labels = torch.from_numpy(test.labels)
    predictions = {stage: predict(network, test) for stage, network in networks.items()}
    right = {stage: int((picked == labels).sum()) for stage, picked in predictions.items()}
    return [
        StageResult(
            stage=stage,
            accuracy_percent=100 * right[stage] / len(test),
            difference_points=100 * (right[stage] - right["float32"]) / len(test),
            agreement_percent=100 * int((picked == predictions["float32"]).sum()) / len(test),
            test_images=len(test),
        )
        for stage, picked in predictions.items()
    ]


def ledger(
    network: nn.Sequential, quantized: nn.Sequential, calibration: Calibration
) -> dict[str, Any]:
    """Scales and ranges: `input` of the images, `layers` one entry per layer of `quantized`.

    Scales are in steps per unit, except `output_scale`, the factor on the accumulator's steps.
    Ranges are [minimum, maximum] of the float values; outputs are those on the calibration images,
    after ReLU. The bounds are in the accumulator's steps.
    """
    images = quantized.get_submodule("quantize")
    assert isinstance(images, QuantizedImages)
    rows = []
    for name, layer in quantized.named_children():
        if not isinstance(layer, QuantizedLayer):
            continue
        weights = Range()
        weights.see(network.get_parameter(f"{name}.weight").detach())
        rows.append(
            {
                "layer": name,
                "weight_scale": layer.weight_scale,
                "weight_range": _pair(weights),
                "input_scale": layer.input_scale,
                "accumulator_scale": layer.accumulator_scale,
                "output_scale": layer.output_scale,
                "output_range": _pair(calibration.outputs[name]),
                "products_bound": layer.products_bound,
                "accumulator_bound": layer.accumulator_bound,
                "simulated_in": str(layer.dtype).removeprefix("torch."),
            }
        )
    return {"input": {"scale": images.scale, "range": _pair(calibration.images)}, "layers": rows}


def _pair(values: Range) -> list[float]:
    return [values.minimum, values.maximum]


def read_document(path: Path) -> dict[str, Any]:
    """What `quantize_evaluate.py` wrote to `path`; anything else is a UserError that names it."""
    document = files.read_json(path)
    parts = {"seed", "dataset", "stages", "layers", "histograms"}
    if not (isinstance(document, dict) and parts <= document.keys()):
        raise UserError(f"{path} was not written by quantize_evaluate.py; give a file that was")
    return document


def table(documents: list[dict[str, Any]]) -> pd.DataFrame:
    """One row per seed and stage, by seed, from the documents that `read_document` gave.

    Raises UserError when two documents have one seed, or were made on different datasets.
    """
    seeds = [document["seed"] for document in documents]
    twice = [seed for seed in seeds if seeds.count(seed) > 1]
    if twice:
        raise UserError(f"two of the --stages files are of seed {twice[0]}; give each seed once")
    datasets = {document["dataset"]["checksum"]: document["dataset"] for document in documents}
    if len(datasets) > 1:
        names = " and ".join(f"{key[:12]} ({entry['source']})" for key, entry in datasets.items())
        raise UserError(
            f"the --stages files were made on different datasets, {names}; "
            "evaluate all seeds on the same images"
        )
    ordered = sorted(documents, key=lambda document: document["seed"])
    rows = [{"seed": entry["seed"], **row} for entry in ordered for row in entry["stages"]]
    return pd.DataFrame(rows, columns=["seed", *StageResult.__annotations__])
