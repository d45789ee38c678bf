"""Tables of other quantization backends, of ONNX files and of ResNet-18, for all seeds."""

from typing import Any

import numpy as np
import pandas as pd

from scaling.core.records.quantization import Document
from scaling.tables import schema

OURS = "this study"


def backends(documents: list[Document]) -> pd.DataFrame:
    """Return a row per seed, backend and precision, or one without values if not measured.

    Difference and agreement are to PyTorch's float32; `agreement_ours_percent` is with our int8.
    `times_smaller` compares the backend's float32 file with this one. A ratio is the time over the
    same backend's float32 in the same round, as median, minimum and maximum of the rounds: below 1
    is faster.
    """
    rows = []
    for document in documents:
        ours = {
            "peer": OURS,
            "versions": {OURS: document["environment"].get("torch")},
            "status": "measured",
            "networks": document["ours"],
        }
        about = {**document["environment"], **document}
        for backend in [ours, *document["peers"]]:
            name, networks = backend["peer"], backend["networks"]
            own = {**about, **backend, "engine": name, "version": backend["versions"][name]}
            rows += [
                {**own, "precision": precision, **_figures(network, networks["float32"])}
                for precision, network in networks.items()
            ] or [own]
    return schema.frame("quantization_peers", rows)


def exports(documents: list[Document]) -> pd.DataFrame:
    """Return a row per seed, model and network that was exported to ONNX.

    As `backends`; differences are to our integers, `largest_steps` being the largest, in logit
    steps.
    """
    rows = [
        {**document, **document["versions"], **document["environment"]}
        | {"network": name, **_figures(network, document["networks"]["float32"])}
        for document in documents
        for name, network in document["networks"].items()
    ]
    return schema.frame("quantization_export", rows)


def resnet(documents: list[Document]) -> pd.DataFrame:
    """Return a row per seed, stage and kind of weight scales; float32 has no scales.

    Differences are to float32. `logits` were computed in integers too, of which `differing_logits`
    differ from the simulation; `accumulator_bound` is the largest of all layers. `device` is the
    GPU that computed, or the CPU.
    """
    rows = []
    for document in documents:
        made = document["environment"]
        device = "; ".join(made["device_names"]) or made["cpu"]
        for row in document["stages"]:
            exact = row.get("exactness", {})
            logits = {"logits": exact.get("logits"), "differing_logits": exact.get("differing")}
            rows.append({**made, "seed": document["seed"], "device": device, **row, **logits})
    return schema.frame("quantization_resnet", rows)


def gpu(documents: list[Document]) -> pd.DataFrame:
    """Return a row per seed and layer of ResNet-18 as timed on a GPU, and one of the network.

    Seconds are for the matrix product [patches, inner] · [inner, outputs], without im2col.
    """
    rows = [
        {"seed": document["seed"], "gpu": document["environment"]["device_names"][0], **row}
        for document in documents
        for row in document["gpu_speed"]
    ]
    return schema.frame("quantization_gpu", rows)


def _figures(network: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    """Return derived values of `network`, whose backend's float32 is `own`."""
    figures = network | {"times_smaller": own["file_bytes"] / network["file_bytes"]}
    for batch, seconds in network.get("seconds", {}).items():
        ratios, name = np.divide(seconds, own["seconds"][batch]), f"batch_{batch}"
        figures |= {f"{name}_seconds": np.median(seconds), f"{name}_ratio": np.median(ratios)}
        figures |= {f"{name}_ratio_min": ratios.min(), f"{name}_ratio_max": ratios.max()}
    return figures
