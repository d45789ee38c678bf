"""The records of Part B: their types, and how they are read.

Each has an `environment` as `scaling.core.environment` describes it, absent from records made
before it was kept, as all those of studies/quantization-cifar10 and studies/h200x2 were.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal, TypedDict

from scaling.core import files
from scaling.core.errors import UserError

Document = dict[str, Any]
Quantity = Literal["weights", "before_relu", "after_relu"]

_VARIANT = {"seed", "variant", "scheme", "dataset", "float32", "classes", "exactness", "layers"}
_VARIANTS_OF_A_SEED = {"seed", "dataset", "stages", "layers", "histograms"}
"""Fields of the one record that a seed had before there were variants: in stored studies."""
_BACKENDS = {"seed", "ours", "peers"}
_RESNET = {"seed", "stages", "layers"}


class Histogram(TypedDict):
    """`bin_edges` (k + 1, in the unit of the float values) and how many values lie between them."""

    bin_edges: list[float]
    counts: list[int]


class LayerHistogram(TypedDict):
    """A layer's values of one kind, as floats and as int8; `scale` is in levels per unit."""

    layer: str
    quantity: Quantity
    scale: float
    float: Histogram
    int8: Histogram


def read_variants(paths: Iterable[Path]) -> list[Document]:
    """Read what `quantize_evaluate.py` wrote of the tutorial CNN; UserError names another file."""
    return [_read(path, "quantize_evaluate.py", _VARIANT, _VARIANTS_OF_A_SEED) for path in paths]


def read_backends(paths: Iterable[Path]) -> list[Document]:
    """Read what `quantize_peers.py` wrote, by seed; UserError names another file."""
    return _by_seed([_read(path, "quantize_peers.py", _BACKENDS) for path in paths])


def read_resnets(paths: Iterable[Path]) -> list[Document]:
    """Read what `quantize_evaluate.py` wrote of a ResNet-18, by seed; UserError names another."""
    script = "quantize_evaluate.py --model resnet18-cifar"
    return _by_seed([_read(path, script, _RESNET) for path in paths])


def _by_seed(documents: list[Document]) -> list[Document]:
    return sorted(documents, key=lambda document: document["seed"])


def _read(path: Path, script: str, *fields: set[str]) -> Document:
    document = files.read_json(path)
    if not (isinstance(document, dict) and any(document.keys() >= each for each in fields)):
        raise UserError(f"{path} was not written by {script}; give a file that was")
    return document
