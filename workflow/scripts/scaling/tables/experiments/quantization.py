"""The tables of quantization: rows for each variant, for pairs of variants, and for each layer."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pandas as pd

from scaling.config.scheme import STAGES
from scaling.core.errors import UserError
from scaling.core.paired_accuracy import Classes, decode, mean_difference
from scaling.core.quantization_records import Document
from scaling.tables import schema
from scaling.tables.experiments.quantization_diagnostics import revealed_by

ACCURACY = ["accuracy_percent", "difference_points", "agreement_percent", "test_images"]
PAIRED = ["standard_error_points", "gained", "lost"]
MEAN = ["mean_seeds", "mean_standard_error_points"]
"""Over how many seeds the variant's mean difference is, and that mean's error; on each of them."""
CHECKSUMS = ["calibration_checksum", "training_checksum"]
SIZES = ["packed_bytes", "float32_bytes"]
WORST = {
    "weight_sqnr_db": min,
    "sqnr_before_relu_db": min,
    "sqnr_after_relu_db": min,
    "propagated_sqnr_db": min,
    "clipped_share_calibration": max,
    "clipped_share_test": max,
    "accumulator_bound": max,
}
"""How the figure of the worst layer is found; each layer's own is in the table of layers."""


def check_together(documents: list[Document]) -> None:
    """Raise UserError unless the documents are of one dataset, and of one network for a seed."""
    datasets = {document["dataset"]["checksum"]: document["dataset"] for document in documents}
    if len(datasets) > 1:
        shown = " and ".join(f"{key[:12]} ({entry['source']})" for key, entry in datasets.items())
        raise UserError(
            f"the --records were made on different datasets, {shown}; "
            "evaluate all seeds and variants on the same images"
        )
    found: dict[int, set[float]] = defaultdict(set)
    for document in documents:
        if "float32" in document:
            found[document["seed"]].add(document["float32"]["accuracy_percent"])
    for seed, accuracies in found.items():
        if len(accuracies) > 1:
            raise UserError(
                f"the --records of seed {seed} are of different networks, whose accuracies in "
                f"float32 are {', '.join(f'{value:.2f} %' for value in sorted(accuracies))}; "
                "evaluate all variants of a seed on the same weights and device"
            )


def variants(documents: list[Document]) -> pd.DataFrame:
    """Make a row per seed and variant, after a row float32 for each seed; by seed, then as given.

    A document from before there were variants gives the rows of its stages, with the columns of
    that time. Raises UserError when they do not belong together.
    """
    check_together(documents)
    rows: list[dict[str, Any]] = []
    by_name = _by_variant(documents)
    for seed in sorted({document["seed"] for document in documents}):
        own = [document for document in documents if document["seed"] == seed]
        older = [{"seed": seed, **row} for entry in own for row in entry.get("stages", [])]
        newer = [document for document in own if "variant" in document]
        rows += [*map(_float32, newer[:1]), *older]
        for document in newer:
            of_seeds = list(by_name[document["variant"]].values())
            references = _picked(of_seeds, "float32")
            found = mean_difference(_labels(of_seeds), references, _picked(of_seeds))
            means = zip(MEAN, [len(of_seeds), found.standard_error_points], strict=True)
            rows.append(_variant(document, newer) | dict(means))
    return schema.frame("quantization", rows)


def _by_variant(documents: list[Document]) -> dict[str, dict[int, Document]]:
    """Map each variant to its documents by seed; those from before variants have none."""
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
    exactness = document["exactness"] or {}
    row = {key: document[key] for key in [*ACCURACY, *PAIRED, *SIZES, "calibration_images"]}
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
    """Name the diagnostics that reveal the document's mistake; None without a correct one."""
    if document["scheme"]["mistake"] is None or document["exactness"] is None:
        return None
    wanted = document["scheme"] | {"mistake": None}
    sound = [other for other in others if other["scheme"] == wanted]
    return "; ".join(revealed_by(document, sound[0])) if sound else None


def layers(documents: list[Document]) -> pd.DataFrame:
    """Make a row per seed, variant and layer, the images first; by seed, then as given.

    What the images pass on is the first layer's input. Documents from before there were variants
    have no such rows.
    """
    rows = []
    for document in sorted(documents, key=lambda document: document["seed"]):
        if "variant" in document:
            images = document["input"]
            named = [] if images is None else [_images(images)]
            label = {"seed": document["seed"], "stage": document["variant"]}
            rows += [label | _spread(row) for row in named + document["layers"]]
    return schema.frame("quantization_layers", rows)


def _images(images: dict[str, Any]) -> dict[str, Any]:
    """Name what is known of the network's input as for a layer."""
    shares = {key: value for key, value in images.items() if key.startswith("clipped_share")}
    return shares | {
        "layer": "images",
        "output_scale": images["scale"],
        "output_range": images["range"],
        "output_steps": images["steps"],
        "top_step": images["scale"] * max(map(abs, images["range"])),
        "sqnr_after_relu_db": images["sqnr_db"],
    }


def _spread(row: dict[str, Any]) -> dict[str, Any]:
    """Split each [minimum, maximum] of `row` into two columns."""
    flat = dict(row)
    for pair, name in {
        "weight_range": "weight",
        "output_range": "output",
        "output_steps": "step",
    }.items():
        low, high = flat.pop(pair, None) or (None, None)
        flat |= {f"{name}_minimum": low, f"{name}_maximum": high}
    return flat


def paired(documents: list[Document]) -> pd.DataFrame:
    """Compare variants of the same networks image by image, over all seeds that both have.

    Each stage with the one before, each mistake with the correct variant of the same options.
    Documents from before there were variants give no row.
    """
    by_stage = _by_variant(documents)
    rows = []
    for stage, reference in _pairs(by_stage):
        seeds = sorted(by_stage[stage].keys() & by_stage[reference].keys())
        if seeds:
            ours, theirs = ([by_stage[name][seed] for seed in seeds] for name in (stage, reference))
            found = mean_difference(_labels(ours), _picked(theirs), _picked(ours))
            images = ours[0]["test_images"]
            rows.append([stage, reference, len(seeds), images, *found])
    return schema.frame("quantization_paired", rows)


def _pairs(by_stage: dict[str, dict[int, Document]]) -> Iterator[tuple[str, str]]:
    stages = [name for name in STAGES if name in by_stage]
    yield from zip(stages[1:], stages, strict=False)
    schemes = {name: next(iter(found.values()))["scheme"] for name, found in by_stage.items()}
    for name, scheme in schemes.items():
        if scheme["mistake"] is not None:
            sound = scheme | {"mistake": None}
            yield from ((name, other) for other, found in schemes.items() if found == sound)


def _labels(documents: list[Document]) -> Classes:
    return decode(documents[0]["classes"]["labels"])


def _picked(documents: list[Document], by: str = "variant") -> list[Classes]:
    return [decode(document["classes"][by]) for document in documents]
