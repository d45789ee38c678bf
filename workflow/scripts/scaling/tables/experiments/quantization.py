"""Tables of quantization: variants, pairs of variants, and layers."""

from collections.abc import Iterable, Iterator
from typing import Any

import pandas as pd

from scaling.config.scheme import STAGES, Scheme
from scaling.core.paired_accuracy import Classes, decode, mean_difference
from scaling.core.records.quantization import Document
from scaling.tables import schema
from scaling.tables.experiments.quantization_diagnostics import revealed_by

WORST = {
    "weight_sqnr_db": min,
    "sqnr_after_relu_db": min,
    "propagated_sqnr_db": min,
    "clipped_share_calibration": max,
    "clipped_share_test": max,
    "accumulator_bound": max,
}
"""How to reduce a quantity over layers; the table of layers has each one."""


def variants(documents: list[Document]) -> pd.DataFrame:
    """Return a row per seed and variant, after a row float32 per seed; in the given order.

    `mean_standard_error_points` is of the variant's mean difference over `mean_seeds`. A record
    without variants gives the rows of its stages.
    """
    by_name = _by_variant(documents)
    rows: list[dict[str, Any]] = []
    for seed in sorted({document["seed"] for document in documents}):
        own = [document for document in documents if document["seed"] == seed]
        older = [{"seed": seed, **row} for entry in own for row in entry.get("stages", [])]
        newer = [document for document in own if "variant" in document]
        rows += [*map(_float32, newer[:1]), *older]
        for document in newer:
            same = list(by_name[document["variant"]].values())
            found = mean_difference(_labels(same), _picked(same, "float32"), _picked(same))
            row = _variant(document, newer) | {"mean_seeds": len(same)}
            rows.append(row | {"mean_standard_error_points": found.standard_error_points})
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


def _by_variant(documents: list[Document]) -> dict[str, dict[int, Document]]:
    """Map each variant to its documents by seed; those without variants are left out."""
    found: dict[str, dict[int, Document]] = {}
    for document in documents:
        if "variant" in document:
            found.setdefault(document["variant"], {})[document["seed"]] = document
    return found


def _float32(document: Document) -> dict[str, Any]:
    return {
        "seed": document["seed"],
        "stage": STAGES[0],
        **document["float32"],
        "difference_points": 0.0,
        "agreement_percent": 100.0,
        "test_images": document["test_images"],
        "packed_bytes": document["float32_bytes"],
        "float32_bytes": document["float32_bytes"],
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
    if scheme.mistakes:
        for sound in [other for other in others if _scheme(other) == scheme.sound][:1]:
            row["revealed_by"] = "; ".join(revealed_by(document, sound))
    return row


def layers(documents: list[Document]) -> pd.DataFrame:
    """Return a row per seed, variant and layer, the input images first; in the given order.

    Records without variants have no such rows.
    """
    rows = []
    for document in sorted(documents, key=lambda document: document["seed"]):
        if "variant" in document:
            own = {"seed": document["seed"], "stage": document["variant"]}
            images = [_images(document["input"])] if document["input"] else []
            rows += [own | _spread(row) for row in [*images, *document["layers"]]]
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
        # Records without variants are int8.
        own = {"seed": document["seed"], "stage": document.get("variant", STAGES[-1])}
        for entry in document["histograms"]:
            lowest, highest = _levels(layers[entry["layer"]], entry["quantity"])
            place = {key: entry[key] for key in ("layer", "quantity", "scale")}
            place |= own | {"lowest": lowest, "highest": highest}
            for values in ("float", "int8"):
                edges, counts = entry[values]["bin_edges"], entry[values]["counts"]
                rows += [
                    place | {"values": values, "bin_low": low, "bin_high": high, "count": count}
                    for low, high, count in zip(edges, edges[1:], counts, strict=False)
                    if count
                ]
    return schema.frame("quantization_histograms", rows)


def _levels(layer: dict[str, Any], quantity: str) -> tuple[int, int]:
    """Return the lowest and the highest integer that a layer's values can have."""
    if quantity == "weights":
        highest = 2 ** (layer.get("weight_bits", 8) - 1) - 1
        return -highest, highest
    lowest, highest = layer.get("output_steps") or (-128, 127)
    return lowest, highest


def _images(images: dict[str, Any]) -> dict[str, Any]:
    """Return the network's input as a layer whose output is the first layer's input."""
    return {
        "layer": "images",
        "output_scale": images["scale"],
        "output_range": images["range"],
        "output_steps": images["steps"],
        "top_step": images["scale"] * max(map(abs, images["range"])),
        "clipped_share_calibration": images["clipped_share_calibration"],
        "clipped_share_test": images["clipped_share_test"],
        "sqnr_after_relu_db": images["sqnr_db"],
    }


def _spread(row: dict[str, Any]) -> dict[str, Any]:
    """Split each [minimum, maximum] of `row` into two columns."""
    flat = dict(row)
    names = {"weight_range": "weight", "output_range": "output", "output_steps": "step"}
    for pair, name in names.items():
        flat[f"{name}_minimum"], flat[f"{name}_maximum"] = flat.pop(pair, None) or (None, None)
    return flat


def paired(documents: list[Document]) -> pd.DataFrame:
    """Compare variants of the same networks image by image, over all seeds that both have.

    Each stage is compared with the one before, each mistaken variant with the correct one of the
    same options. Records without variants give no row.
    """
    by_stage = _by_variant(documents)
    rows = []
    for stage, reference in _pairs(by_stage):
        seeds = sorted(by_stage[stage].keys() & by_stage[reference].keys())
        if seeds:
            ours, theirs = ([by_stage[name][seed] for seed in seeds] for name in (stage, reference))
            found = mean_difference(_labels(ours), _picked(theirs), _picked(ours))
            rows.append([stage, reference, len(seeds), ours[0]["test_images"], *found])
    return schema.frame("quantization_paired", rows)


def _pairs(by_stage: dict[str, dict[int, Document]]) -> Iterator[tuple[str, str]]:
    stages = [name for name in STAGES if name in by_stage]
    yield from zip(stages[1:], stages, strict=False)
    schemes = {name: _scheme(next(iter(found.values()))) for name, found in by_stage.items()}
    for name, scheme in schemes.items():
        if scheme.mistakes:
            yield from ((name, other) for other, found in schemes.items() if found == scheme.sound)


def _scheme(document: Document) -> Scheme:
    return Scheme.of(document["scheme"], "the scheme")


def _labels(documents: list[Document]) -> Classes:
    return decode(documents[0]["classes"]["labels"])


def _picked(documents: list[Document], by: str = "variant") -> list[Classes]:
    return [decode(document["classes"][by]) for document in documents]
