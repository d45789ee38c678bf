"""The records of Part B (quantization)."""

import math
from collections.abc import Iterable, Iterator
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired

from annotated_types import Len
from pydantic import Discriminator, Tag
from typing_extensions import TypedDict

from scaling.core import paired_accuracy
from scaling.core.records.dataset import Images
from scaling.core.records.fields import (
    Amount,
    Options,
    Pair,
    Percent,
    Positive,
    Record,
    Repeats,
    Row,
    Whole,
)
from scaling.core.records.kind import Kind
from scaling.core.records.layers import (
    Entrance,
    GpuSpeed,
    Histogram,
    Layer,
    ResNetLayer,
)

Document = Row
VARIANT_PATTERN = "variant~{variant}/quantization.json"
"""The path of a variant's record below the folder of its seed."""

Exactness = Annotated[dict[Literal["logits", "differing"], Whole], Len(2, 2)]
"""The number of logits also computed in integers, and how many of them differ."""
Classes = Annotated[dict[Literal["labels", "float32", "variant"], str], Len(3, 3)]
"""Classes of all test images, as `core.paired_accuracy` encodes them."""
Versions = dict[str, str | None]


class FloatAccuracy(TypedDict):
    """The float network's accuracy."""

    accuracy_percent: Percent


class Accuracy(FloatAccuracy):
    """An accuracy, its difference to the float network's, and that difference's significance.

    See `core.paired_accuracy`.
    """

    difference_points: float
    agreement_percent: Percent
    test_images: Positive
    standard_error_points: Amount
    gained: Whole
    lost: Whole


class OfSeed(Record):
    """The seed of the quantized network, and the images used."""

    seed: Whole
    dataset: Images


class VariantOfSeed(OfSeed):
    """The seed and the variant of a tutorial CNN."""

    variant: str
    scheme: Options
    device: str


class RefusedRecord(VariantOfSeed):
    """A variant that cannot be built: `refused` is the reason."""

    refused: str


class VariantRecord(Accuracy, VariantOfSeed):
    """A variant that was built and evaluated; see `quantization.variant`."""

    float32: FloatAccuracy
    classes: Classes
    calibration_images: Whole
    calibration_checksum: str | None
    training_checksum: str
    packed_bytes: Positive
    float32_bytes: Positive
    exactness: Exactness | None
    input: Entrance | None
    layers: Annotated[list[Layer], Len(1)]
    histograms: NotRequired[list[Histogram]]


def _form(record: Any) -> str:
    return "refused" if "refused" in record else "variant"


TutorialCnn = Annotated[
    Annotated[VariantRecord, Tag("variant")] | Annotated[RefusedRecord, Tag("refused")],
    Discriminator(_form),
]
"""Contents of `quantization.json`: a variant or its refusal."""


class ResNetStage(Accuracy):
    """A stage of ResNet-18 for one kind of weight scales; only integers have bytes and bounds."""

    stage: str
    float32_bytes: Positive
    weight_scales: NotRequired[Literal["tensor", "channel"]]
    packed_bytes: NotRequired[Positive]
    accumulator_bound: NotRequired[Whole]
    exactness: NotRequired[Exactness]


class LeftOut(TypedDict):
    """A network that could not be quantized or exported, and the reason."""

    stage: str
    weight_scales: NotRequired[Literal["tensor", "channel"]]
    reason: str


class StagesRecord(OfSeed):
    """All stages of a seed's ResNet-18, `resnet18.json`; see `quantization.resnet_stages`.

    `ranges` are the minimum and maximum of each layer on the calibration images, null if not kept.
    """

    device: str
    model_width: Positive
    calibration_images: Whole
    stages: Annotated[list[ResNetStage], Len(1)]
    layers: list[ResNetLayer]
    ranges: dict[str, Pair] | None
    gpu_speed: list[GpuSpeed]
    left_out: NotRequired[list[LeftOut]]


class Network(Accuracy):
    """A backend's network or ours; `seconds` per call in each round, by images per batch.

    Without an int8 network of ours there is no agreement with it.
    """

    agreement_ours_percent: Percent | None
    file_bytes: Positive
    seconds: NotRequired[dict[str, Repeats]]


class Peer(TypedDict):
    """A backend with its networks; none if it is not installed or failed (see `note`)."""

    peer: str
    status: Literal["measured", "not installed", "failed"]
    versions: Versions
    networks: dict[str, Network]
    note: str | None
    options: NotRequired[str]


class PeersRecord(OfSeed):
    """Other quantization backends compared with ours, `peers.json`."""

    calibration_images: Whole
    test_images: Positive
    threads: Positive
    ours: dict[str, Network]
    peers: list[Peer]
    left_out: NotRequired[list[LeftOut]]


class ExportedNetwork(Network):
    """A network exported to ONNX, compared with its original."""

    differing_classes: Whole
    logits: NotRequired[Whole]
    largest_steps: NotRequired[Whole]
    differing_logits: NotRequired[Whole]


class ExportRecord(OfSeed):
    """A seed's networks exported to ONNX, `export.json`."""

    model: str
    calibration_images: Whole
    all_threads: Positive
    instructions: str
    versions: Versions
    networks: Annotated[dict[Literal["float32", "int8", "uint8"], ExportedNetwork], Len(1, 3)]
    left_out: NotRequired[list[LeftOut]]


def _contradictions(record: Row) -> Iterator[str]:
    """Yield what is not as a record's own classes, layers and numbers of images make it."""
    layers = record.get("layers", [])
    for one in _within(record):
        points = 100 * (one.get("gained", 0) - one.get("lost", 0)) / one.get("test_images", 1)
        if "gained" in one and not math.isclose(one["difference_points"], points):
            yield "a difference is not that of the images gained and lost"
        if "bin_edges" in one and len(one["bin_edges"]) != len(one["counts"]) + 1:
            yield "a histogram has not one edge more than bins"
        if "quantity" in one and one["layer"] not in [layer["layer"] for layer in layers]:
            yield f"a histogram is of layer {one['layer']}, which is not there"
    if "classes" not in record:
        return
    of = {name: paired_accuracy.decode(text) for name, text in record["classes"].items()}
    right = int((of["float32"] == of["labels"]).sum())
    wanted = paired_accuracy.paired(of["labels"], of["float32"], of["variant"]) | {
        "float32": {"accuracy_percent": 100 * right / len(of["labels"])},
        "float32_bytes": sum(layer["float32_bytes"] for layer in layers),
        "packed_bytes": sum(layer["packed_bytes"] for layer in layers) + 4 * bool(record["input"]),
    }
    yield from (
        f"{key} is not as its parts make it" for key in wanted if record[key] != wanted[key]
    )


def _within(part: Any) -> Iterator[Row]:
    """Yield each dictionary in `part`."""
    if isinstance(part, dict):
        yield part
    for inner in part.values() if isinstance(part, dict) else part:
        if isinstance(inner, dict | list):
            yield from _within(inner)


VARIANT = Kind[Row]("quantize_evaluate.py, of the tutorial CNN", TutorialCnn, _contradictions)
STAGED = Kind[Row]("quantize_evaluate.py, of a ResNet-18", StagesRecord, _contradictions)
BACKENDS = Kind[Row]("quantize_peers.py", PeersRecord, _contradictions)
EXPORT = Kind[Row]("quantize_export.py", ExportRecord, _contradictions)


def read(kind: Kind[Row], paths: Iterable[Path]) -> list[Document]:
    """Return the records at `paths`, sorted by seed, without refused variants."""
    found = [record for record in map(kind.read, paths) if "refused" not in record]
    return sorted(found, key=itemgetter("seed"))
