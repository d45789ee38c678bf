"""Tables of int8 quantization: variants, layers, mistakes, ResNet-18; losses over seeds."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import pandas as pd

from scaling.config.scheme import STAGES, Scheme
from scaling.core import numbers as fmt
from scaling.core.paired_accuracy import MeanDifference, decode, mean_difference
from scaling.core.records.quantization import Document
from scaling.tables import schema

STANDARD_ERRORS = 2.0
"""Half the width of a 95 % interval; a mean difference of up to so many counts as noise."""
DIAGNOSTICS: dict[str, tuple[str, Callable[[float, float], bool]]] = {
    # A layer has at least twice the noise.
    "SQNR": ("sqnr_after_relu_db", lambda wrong, right: wrong < right - 3.0),
    # Training images are clipped although the levels should cover them.
    "clipped share": ("clipped_share_calibration", lambda wrong, right: wrong > right),
    # The largest value is further from the last level than rounding allows.
    "S·o·max": ("top_step", lambda wrong, right: abs(wrong / right - 1) > 1e-5),
    # A quantized bias is more than half a level from b · S.
    "bias": ("bias_error_steps", lambda wrong, _: wrong > 0.5 + 1e-6),
}
"""What tells a mistake in any layer: a field, and a test of its mistaken and its correct value."""


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
            rows.append(_variant(document) | means)
    return schema.frame("quantization", rows)


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


def _variant(document: Document) -> dict[str, Any]:
    scheme = _scheme(document)
    row: dict[str, Any] = {**document["environment"], **document, **scheme.model_dump()}
    row |= {"stage": document["variant"], "mistake": scheme.mistake}
    row["compression"] = document["float32_bytes"] / document["packed_bytes"]
    if exactness := document["exactness"]:
        row |= {"logits_compared": exactness["logits"], "logits_differing": exactness["differing"]}
    return row


def layers(documents: list[Document]) -> pd.DataFrame:
    """Return a row per seed, variant and layer; the images are the first, if integers."""
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

    `values` are the layer's as `float` or as `int8`, both in float units; a step is 1 / `scale`;
    `lowest` and `highest` are the range of integers.
    """
    kept = sorted((one for one in documents if one.get("histograms")), key=lambda one: one["seed"])
    rows = []
    for document in kept[:1]:
        layers = {layer["layer"]: layer for layer in document["layers"]}
        own = {"seed": document["seed"], "stage": document["variant"]}
        for entry in document["histograms"]:
            layer = layers[entry["layer"]]
            largest = 2 ** (layer["weight_bits"] - 1) - 1
            weights = entry["quantity"] == "weights"
            lowest, highest = (-largest, largest) if weights else layer["output_steps"]
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
    """Return a row for each mistaken variant, compared image by image with a correct one.

    That has the same options; over all seeds that both have. `revealed_by` names what tells them
    apart for any seed.
    """
    by_name: dict[str, dict[int, Document]] = {}
    for document in documents:
        by_name.setdefault(document["variant"], {})[document["seed"]] = document
    schemes = {name: _scheme(next(iter(found.values()))) for name, found in by_name.items()}
    rows = []
    for name, wrong in by_name.items():
        if not (scheme := schemes[name]).mistakes:
            continue
        accuracies = [document["accuracy_percent"] for document in wrong.values()]
        row = {"stage": name, "mistake": scheme.mistake, "seeds": len(wrong)}
        row["accuracy_percent"] = sum(accuracies) / len(wrong)
        reference = next((other for other in by_name if schemes[other] == scheme.sound), None)
        right = by_name[reference] if reference else {}
        if both := sorted(wrong.keys() & right.keys()):
            pairs = [wrong[seed] for seed in both], [right[seed] for seed in both]
            figures = _mean_difference(*pairs)
            row |= {"reference_stage": reference, "seeds": len(both)}
            row |= {"difference_points": figures.points, **figures._asdict()}
            row["test_images"] = pairs[0][0]["test_images"]
            row["revealed_by"] = ", ".join(revealed_by(*pairs)) or "nothing"
        rows.append(row)
    return schema.frame("quantization_paired", rows)


def revealed_by(mistaken: list[Document], correct: list[Document]) -> list[str]:
    """Return what tells the `mistaken` records from the `correct` ones, seed by seed.

    Accuracy does where it drops by more than two standard errors of the paired mean difference; the
    checksum where other images calibrated than those chosen from the training set.
    """
    found = []
    if _mean_difference(mistaken, correct).errors < -STANDARD_ERRORS:
        found.append("accuracy")
    for name, (field, tells) in DIAGNOSTICS.items():
        values = (
            [layer.get(field) for one in each for layer in (one["input"], *one["layers"])]
            for each in (mistaken, correct)
        )
        if any(tells(*pair) for pair in zip(*values, strict=True) if None not in pair):
            found.append(name)
    if any(one["calibration_checksum"] != one["training_checksum"] for one in mistaken):
        found.append("calibration checksum")
    return found


def _scheme(document: Document) -> Scheme:
    return Scheme.of(document["scheme"], "the scheme")


def _mean_difference(
    ours: list[Document], theirs: list[Document], by: str = "variant"
) -> MeanDifference:
    """Return the mean difference of variants, seed by seed, to others or to their float32."""
    labels = decode(ours[0]["classes"]["labels"])
    reference = [decode(one["classes"][by]) for one in theirs]
    return mean_difference(labels, reference, [decode(one["classes"]["variant"]) for one in ours])


def resnet(documents: list[Document]) -> pd.DataFrame:
    """Return a row per seed, stage and kind of weight scales; float32 has no scales.

    `logits` were computed in integers too, of which `differing_logits` differ from the simulation;
    `device` is the GPU that computed, or the CPU.
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


class Cost(NamedTuple):
    """Means over `seeds`: accuracies in %, differences to float32 in points, with their range.

    `standard_error_points` is of the mean difference (`paired_accuracy.mean_difference`), or where
    the table has that for other seeds √(Σ e²) / seeds, with e each seed's; NaN if one has none.
    """

    seeds: int
    float32_percent: float
    accuracy_percent: float
    accuracy_percent_min: float
    accuracy_percent_max: float
    difference_points: float
    difference_points_min: float
    difference_points_max: float
    standard_error_points: float
    agreement_percent: float

    @property
    def within_noise(self) -> bool | None:
        """Whether the mean difference is within two standard errors; None without one."""
        if math.isnan(self.standard_error_points):
            return None
        return abs(self.difference_points) <= STANDARD_ERRORS * self.standard_error_points


def cost(rows: pd.DataFrame) -> Cost:
    """Return the average over one variant's rows of quantization.csv, one per seed.

    Also takes rows of quantization_resnet.csv, which have no errors of means.
    """
    accuracies, differences = rows["accuracy_percent"], rows["difference_points"]
    if "mean_seeds" in rows and rows["mean_seeds"].astype(float).eq(len(rows)).all():
        error = float(rows["mean_standard_error_points"].iloc[0])
    else:
        errors = rows["standard_error_points"].astype(float)
        error = math.sqrt(float(errors.pow(2).sum(skipna=False))) / len(rows)
    return Cost(
        seeds=len(rows),
        float32_percent=float((accuracies - differences).mean()),
        accuracy_percent=float(accuracies.mean()),
        accuracy_percent_min=float(accuracies.min()),
        accuracy_percent_max=float(accuracies.max()),
        difference_points=float(differences.mean()),
        difference_points_min=float(differences.min()),
        difference_points_max=float(differences.max()),
        standard_error_points=error,
        agreement_percent=float(rows["agreement_percent"].mean()),
    )


def difference(row: Any) -> str:
    """Format a mean difference in points, with its 95 % interval if known: `−0.20 ± 0.10`."""
    if pd.isna(row.difference_points):
        return ""
    error = row.standard_error_points
    known = "" if pd.isna(error) else f" ± {STANDARD_ERRORS * error:.2f}"
    return fmt.points(row.difference_points) + known


def reach(row: Any) -> str:
    """Format the range of differences over seeds, `−0.30 to −0.10`, or `one seed`."""
    ends = (row.difference_points_min, row.difference_points_max)
    return "one seed" if row.seeds == 1 else " to ".join(map(fmt.points, ends))
