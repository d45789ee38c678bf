"""Tables of int8 quantization: each variant's accuracy, its layers, what each mistake costs."""

from collections.abc import Iterable
from typing import Any

import pandas as pd

from scaling.config.scheme import STAGES, Scheme
from scaling.core.paired_accuracy import MeanDifference, decode, mean_difference
from scaling.core.records.quantization import Document
from scaling.tables import schema
from scaling.tables.experiments.quantization_diagnostics import revealed_by

WORST = {"sqnr_after_relu_db": min, "clipped_share_calibration": max}
"""How to reduce a quantity over layers; the table of layers has each one."""


def variants(documents: list[Document]) -> pd.DataFrame:
    """Return a row per seed and variant, after a row float32 per seed; in the given order.

    `mean_standard_error_points` is of the variant's mean difference over `mean_seeds`.
    """
    rows: list[dict[str, Any]] = []
    for seed in sorted({document["seed"] for document in documents}):
        own = [document for document in documents if document["seed"] == seed]
        rows.append(_float32(own[0]))
        for document in own:
            same = [one for one in documents if one["variant"] == document["variant"]]
            error = _mean_difference(same, same, "float32").standard_error_points
            means = {"mean_seeds": len(same), "mean_standard_error_points": error}
            rows.append(_variant(document, own) | means)
    return schema.frame("quantization", rows)


def refused(documents: Iterable[Document]) -> pd.DataFrame:
    """Return a row per seed and network of any record that could not be made, and why."""
    rows = []
    for document in documents:
        of_cnn = {"variant", "ours"} & set(document) or document.get("model") == "tutorial-cnn"
        about = {"seed": document["seed"], "network": "tutorial CNN" if of_cnn else "ResNet-18"}
        if "refused" in document:
            rows.append(about | {"stage": document["variant"], "reason": document["refused"]})
        rows += [about | one for one in document.get("left_out", [])]
    return schema.frame("quantization_refused", rows)


def _float32(document: Document) -> dict[str, Any]:
    return {
        **{key: document[key] for key in ("seed", "test_images", "float32_bytes")},
        **document["float32"],
        "stage": STAGES[0],
        "difference_points": 0.0,
        "agreement_percent": 100.0,
        "packed_bytes": document["float32_bytes"],
        "compression": 1.0,
    }


def _variant(document: Document, others: list[Document]) -> dict[str, Any]:
    scheme = _scheme(document)
    row: dict[str, Any] = {**document["environment"], **document, **scheme.model_dump()}
    row |= {"stage": document["variant"], "mistake": scheme.mistake}
    for column, worst in WORST.items():
        found = [entry.get(column) for entry in document["layers"]]
        row[column] = worst([value for value in found if value is not None], default=None)
    row["compression"] = document["float32_bytes"] / document["packed_bytes"]
    if exactness := document["exactness"]:
        row |= {"logits_compared": exactness["logits"], "logits_differing": exactness["differing"]}
    for sound in _sound(document, others)[:1]:
        row["revealed_by"] = "; ".join(revealed_by(document, sound))
    return row


def layers(documents: list[Document]) -> pd.DataFrame:
    """Return a row per seed, variant and layer, the input images first; in the given order.

    The images are a layer whose output is the first layer's input. Records without variants have
    no such rows.
    """
    rows = []
    for document in sorted(documents, key=lambda document: document["seed"]):
        found = list(document["layers"])
        if images := document["input"]:
            top = images["scale"] * max(map(abs, images["range"]))
            output = {"output_scale": images["scale"], "output_range": images["range"]}
            noise = {"sqnr_after_relu_db": images["sqnr_db"]}
            found.insert(0, {"layer": "images", "top_step": top, **output, **noise, **images})
        for layer in found:
            row = {"seed": document["seed"], "stage": document["variant"], **layer}
            for name in ("weight", "output"):
                ends = layer.get(f"{name}_range") or (None, None)
                row[f"{name}_minimum"], row[f"{name}_maximum"] = ends
            rows.append(row)
    return schema.frame("quantization_layers", rows)


def histograms(documents: list[Document]) -> pd.DataFrame:
    """Return a row for each non-empty bin, for the first seed of the variant to draw.

    `values` are the layer's as `float` or as `int8`, both in float units; a quantization step is 1
    / `scale`; `lowest` and `highest` are the range of integers.
    """
    kept = sorted((one for one in documents if one.get("histograms")), key=lambda one: one["seed"])
    rows = []
    for document in kept[:1]:
        layers = {layer["layer"]: layer for layer in document["layers"]}
        own = {"seed": document["seed"], "stage": document["variant"]}
        for entry in document["histograms"]:
            layer = layers[entry["layer"]]
            lowest, highest = layer.get("output_steps") or (-128, 127)
            if entry["quantity"] == "weights":
                highest = 2 ** (layer.get("weight_bits", 8) - 1) - 1
                lowest = -highest
            place = {**own, **entry, "lowest": lowest, "highest": highest}
            for values in ("float", "int8"):
                edges, counts = entry[values]["bin_edges"], entry[values]["counts"]
                rows += [
                    place | {"values": values, "bin_low": low, "bin_high": high, "count": count}
                    for low, high, count in zip(edges, edges[1:], counts, strict=False)
                    if count
                ]
    return schema.frame("quantization_histograms", rows)


def paired(documents: list[Document]) -> pd.DataFrame:
    """Compare each mistaken variant with the correct one of the same options, image by image.

    Over all seeds that both have.
    """
    by_seed = {(one["variant"], one["seed"]): one for one in documents}
    pairs: dict[tuple[str, str], list[tuple[Document, Document]]] = {}
    for (_, seed), wrong in by_seed.items():
        same_seed = [one for (_, other), one in by_seed.items() if other == seed]
        for sound in _sound(wrong, same_seed):
            pairs.setdefault((wrong["variant"], sound["variant"]), []).append((wrong, sound))
    rows = []
    for names, found in pairs.items():
        ours, theirs = map(list, zip(*found, strict=True))
        figures = _mean_difference(ours, theirs)
        rows.append([*names, len(found), ours[0]["test_images"], *figures])
    return schema.frame("quantization_paired", rows)


def _sound(document: Document, others: list[Document]) -> list[Document]:
    """Return the correct ones among other documents with the options of a mistaken one."""
    scheme = _scheme(document)
    return [one for one in others if _scheme(one) == scheme.sound] if scheme.mistakes else []


def _scheme(document: Document) -> Scheme:
    return Scheme.of(document["scheme"], "the scheme")


def _mean_difference(
    ours: list[Document], theirs: list[Document], by: str = "variant"
) -> MeanDifference:
    """Return the mean difference of variants, seed by seed, to others or to their float32."""
    labels = decode(ours[0]["classes"]["labels"])
    reference = [decode(one["classes"][by]) for one in theirs]
    return mean_difference(labels, reference, [decode(one["classes"]["variant"]) for one in ours])
