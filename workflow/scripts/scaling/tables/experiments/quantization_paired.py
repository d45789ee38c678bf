"""Variants of the same networks beside each other, image by image, over all seeds both have.

Each stage is set against the one before, each known mistake against the sound variant of the same
options. What a variant costs against float32 is in the table of the variants.
"""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from scaling.config.scheme import STAGES
from scaling.quantization.predicted_classes import Classes, MeanDifference, decode, mean_difference

COLUMNS = ["stage", "reference_stage", "seeds", "test_images", "difference_points"]
COLUMNS += ["standard_error_points"]
"""Accuracy of `stage` minus that of `reference_stage` on the same weights (`mean_difference`)."""

Document = dict[str, Any]


def against_float32(documents: list[Document]) -> MeanDifference:
    """One variant's records, one for each seed, against float32."""
    references = [decode(document["classes"]["float32"]) for document in documents]
    return mean_difference(_labels(documents), references, _picked(documents))


def table(documents: list[Document]) -> pd.DataFrame:
    """A row for each pair of stages, and for each mistake; those before variants give none."""
    by_stage: dict[str, dict[int, Document]] = {}
    for document in documents:
        if "variant" in document:
            by_stage.setdefault(document["variant"], {})[document["seed"]] = document
    rows = []
    for stage, reference in _pairs(by_stage):
        seeds = sorted(by_stage[stage].keys() & by_stage[reference].keys())
        if seeds:
            ours, theirs = ([by_stage[name][seed] for seed in seeds] for name in (stage, reference))
            found = mean_difference(_labels(ours), _picked(theirs), _picked(ours))
            images = ours[0]["test_images"]
            rows.append([stage, reference, len(seeds), images, *found])
    return pd.DataFrame(rows, columns=COLUMNS)


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


def _picked(documents: list[Document]) -> list[Classes]:
    return [decode(document["classes"]["variant"]) for document in documents]
