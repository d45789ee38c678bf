"""The tables of quantization: a row for each variant, and a row for each of its layers."""

from typing import Any

import pandas as pd

from scaling.config.scheme import STAGES, Scheme
from scaling.quantization.diagnostics import revealed_by
from scaling.tables.experiments.quantization_paired import against_float32
from scaling.tables.experiments.quantization_record import check_together

Document = dict[str, Any]

ACCURACY = ["accuracy_percent", "difference_points", "agreement_percent", "test_images"]
PAIRED = ["standard_error_points", "gained", "lost"]
MEAN = ["mean_seeds", "mean_standard_error_points"]
"""Over how many seeds the variant's mean difference is, and that mean's error; on each of them."""
CHECKSUMS = ["calibration_checksum", "training_checksum"]
SIZES = ["packed_bytes", "float32_bytes", "compression"]
OPTIONS = list(Scheme.model_fields)
WORST = {
    "weight_sqnr_db": min,
    "sqnr_before_relu_db": min,
    "sqnr_after_relu_db": min,
    "propagated_sqnr_db": min,
    "clipped_share_calibration": max,
    "clipped_share_test": max,
    "accumulator_bound": max,
}
"""Of all layers; each layer's own is in the other table."""
COLUMNS = [
    *("seed", "stage", *ACCURACY, *PAIRED, *SIZES, *OPTIONS, "calibration_images", *WORST),
    *("logits_compared", "logits_differing", "revealed_by", *MEAN, *CHECKSUMS),
]
LAYER_COLUMNS = [
    *("seed", "stage", "layer", "weight_bits", "weight_scale", "weight_scale_max"),
    *("weight_minimum", "weight_maximum", "weight_clipped_share", "weight_sqnr_db"),
    *("input_scale", "accumulator_scale", "bias_error_steps", "output_scale"),
    *("step_minimum", "step_maximum", "output_minimum", "output_maximum", "top_step"),
    *("clipped_share_calibration", "clipped_share_test", "clipped_share_before_relu"),
    *("sqnr_before_relu_db", "sqnr_after_relu_db", "propagated_sqnr_db"),
    *("products_bound", "accumulator_bound", "float32_exact", "packed_bytes", "float32_bytes"),
]
_WHOLE = [
    *(
        "test_images",
        "mean_seeds",
        "gained",
        "lost",
        "packed_bytes",
        "float32_bytes",
        "weight_bits",
    ),
    *("activation_bits", "calibration_images", "accumulator_bound", "logits_compared"),
    *("logits_differing", "step_minimum", "step_maximum", "products_bound"),
]


def variants(documents: list[Document]) -> pd.DataFrame:
    """One row per seed and variant, after a row float32 for each seed; by seed, then as given.

    `documents` are what `read_document` gave; one from before there were variants gives the rows of
    its stages, with the columns of that time. Raises UserError when they do not belong together.
    """
    check_together(documents)
    rows: list[dict[str, Any]] = []
    means = _means([document for document in documents if "variant" in document])
    for seed in sorted({document["seed"] for document in documents}):
        own = [document for document in documents if document["seed"] == seed]
        older = [{"seed": seed, **row} for entry in own for row in entry.get("stages", [])]
        newer = [document for document in own if "variant" in document]
        if newer:
            rows.append(_float32(newer[0]))
        rows += older + [
            _variant(document, newer) | means[document["variant"]] for document in newer
        ]
    return _frame(rows, COLUMNS)


def _means(documents: list[Document]) -> dict[str, dict[str, Any]]:
    """The columns `MEAN` of each variant."""
    by_name: dict[str, list[Document]] = {}
    for document in documents:
        by_name.setdefault(document["variant"], []).append(document)
    return {
        name: dict(zip(MEAN, [len(own), against_float32(own).standard_error_points], strict=True))
        for name, own in by_name.items()
    }


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
    exactness = document["exactness"] or {}
    row = {key: document[key] for key in [*ACCURACY, *PAIRED, *SIZES[:2], "calibration_images"]}
    row |= {key: document[key] for key in CHECKSUMS} | document["scheme"]
    for column, worst in WORST.items():
        found = [entry.get(column) for entry in document["layers"]]
        row[column] = worst([value for value in found if value is not None], default=None)
    return row | {
        "seed": document["seed"],
        "stage": document["variant"],
        "compression": document["float32_bytes"] / document["packed_bytes"],
        "logits_compared": exactness.get("logits"),
        "logits_differing": exactness.get("differing"),
        "revealed_by": _revealed(document, others),
    }


def _revealed(document: Document, others: list[Document]) -> str | None:
    """The diagnostics that reveal the document's mistake; None without a sound one beside it."""
    if document["scheme"]["mistake"] is None or document["exactness"] is None:
        return None
    wanted = document["scheme"] | {"mistake": None}
    sound = [other for other in others if other["scheme"] == wanted]
    return "; ".join(revealed_by(document, sound[0])) if sound else None


def layers(documents: list[Document]) -> pd.DataFrame:
    """The ledger: one row per seed, variant and layer, the images first; by seed, then as given.

    Documents from before there were variants have no such rows.
    """
    newer = [document for document in documents if "variant" in document]
    rows = [
        {"seed": document["seed"], "stage": document["variant"], **row}
        for document in sorted(newer, key=lambda document: document["seed"])
        for row in _layers(document)
    ]
    return _frame(rows, LAYER_COLUMNS)


def _layers(document: Document) -> list[dict[str, Any]]:
    images = document["input"]
    first = [] if images is None else [_images(images)]
    return first + [_spread(row) for row in document["layers"]]


def _images(images: dict[str, Any]) -> dict[str, Any]:
    """The network's input as a row: what it passes on is the first layer's input."""
    return _spread(
        {
            "layer": "images",
            "output_scale": images["scale"],
            "output_range": images["range"],
            "output_steps": images["steps"],
            "top_step": images["scale"] * max(map(abs, images["range"])),
            "clipped_share_calibration": images["clipped_share_calibration"],
            "clipped_share_test": images["clipped_share_test"],
            "sqnr_after_relu_db": images["sqnr_db"],
        }
    )


def _spread(row: dict[str, Any]) -> dict[str, Any]:
    """`row` with each [minimum, maximum] as two columns."""
    flat = dict(row)
    for pair, name in (
        ("weight_range", "weight"),
        ("output_range", "output"),
        ("output_steps", "step"),
    ):
        low, high = flat.pop(pair, None) or (None, None)
        flat |= {f"{name}_minimum": low, f"{name}_maximum": high}
    return flat


def _frame(rows: list[dict[str, Any]], columns: list[str]) -> pd.DataFrame:
    table = pd.DataFrame(rows, columns=columns)
    return table.astype({column: "Int64" for column in _WHOLE if column in columns})
