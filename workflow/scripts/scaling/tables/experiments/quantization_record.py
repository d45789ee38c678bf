"""The record of one quantized variant of one seed's network, as the tables and figures read it."""

from pathlib import Path
from typing import Any

from scaling.core import files
from scaling.core.errors import UserError

PARTS = {"seed", "variant", "scheme", "dataset", "float32", "classes", "exactness", "layers"}
STAGES_PARTS = {"seed", "dataset", "stages", "layers", "histograms"}
"""Of the record that a seed had before it had one for each variant: stored studies may have it."""


def read_document(path: Path) -> dict[str, Any]:
    """What `quantize_evaluate.py` wrote to `path`; anything else is a UserError that names it.

    Besides `PARTS` it has an `environment` as `scaling.process_environment` describes it, absent
    from records made before it was kept, as all those of studies/quantization-cifar10 and
    studies/h200x2 were.
    """
    document = files.read_json(path)
    if not (
        isinstance(document, dict) and (document.keys() >= PARTS or document.keys() >= STAGES_PARTS)
    ):
        raise UserError(f"{path} was not written by quantize_evaluate.py; give a file that was")
    return document


def check_together(documents: list[dict[str, Any]]) -> None:
    """Raise UserError unless the documents can stand in one table.

    That is: no variant twice for one seed, one dataset, and one accuracy in float32 for a seed.
    """
    names = [(document["seed"], document.get("variant", "stages")) for document in documents]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        seed, variant = twice[0]
        raise UserError(f"two of the --records are of seed {seed}, {variant}; give each once")
    datasets = {document["dataset"]["checksum"]: document["dataset"] for document in documents}
    if len(datasets) > 1:
        shown = " and ".join(f"{key[:12]} ({entry['source']})" for key, entry in datasets.items())
        raise UserError(
            f"the --records were made on different datasets, {shown}; "
            "evaluate all seeds and variants on the same images"
        )
    for seed in {seed for seed, _ in names}:
        accuracies = {
            document["float32"]["accuracy_percent"]
            for document in documents
            if document["seed"] == seed and "float32" in document
        }
        if len(accuracies) > 1:
            raise UserError(
                f"the --records of seed {seed} are of different networks, whose accuracies in "
                f"float32 are {', '.join(f'{value:.2f} %' for value in sorted(accuracies))}; "
                "evaluate all variants of a seed on the same weights and device"
            )
