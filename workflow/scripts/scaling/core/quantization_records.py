"""The records of Part B: their types, and how they are read.

Each has an `environment` as `scaling.core.environment` describes it, absent from records made
before it was kept, as all those of studies/quantization-cifar10 and studies/h200x2 were.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from scaling.core import files
from scaling.core.errors import UserError

Document = dict[str, Any]

_VARIANT = {"seed", "variant", "scheme", "dataset", "float32", "classes", "exactness", "layers"}
_VARIANTS_OF_A_SEED = {"seed", "dataset", "stages", "layers", "histograms"}
"""Fields of the one record that a seed had before there were variants: in stored studies."""


def read_variants(paths: Iterable[Path]) -> list[Document]:
    """Read what `quantize_evaluate.py` wrote of the tutorial CNN; UserError names another file."""
    return _read(paths, "quantize_evaluate.py", _VARIANT, _VARIANTS_OF_A_SEED)


def read_backends(paths: Iterable[Path]) -> list[Document]:
    """Read what `quantize_peers.py` wrote; UserError names another file."""
    return _read(paths, "quantize_peers.py", {"seed", "ours", "peers"})


def read_resnets(paths: Iterable[Path]) -> list[Document]:
    """Read what `quantize_evaluate.py` wrote of a ResNet-18; UserError names another file."""
    script = "quantize_evaluate.py --model resnet18-cifar"
    return _read(paths, script, {"seed", "stages", "layers"})


def _read(paths: Iterable[Path], script: str, *fields: set[str]) -> list[Document]:
    """The documents by seed, those of a seed as given."""
    documents = []
    for path in paths:
        document = files.read_json(path)
        if not (isinstance(document, dict) and any(document.keys() >= each for each in fields)):
            raise UserError(f"{path} was not written by {script}; give a file that was")
        documents.append(document)
    return sorted(documents, key=lambda document: document["seed"])
