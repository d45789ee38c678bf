"""The records of Part B (quantization)."""

import math
from collections.abc import Iterable, Iterator
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired

from annotated_types import Len
from typing_extensions import TypedDict

from scaling.core import paired_accuracy
from scaling.core.records.kind import (
    Amount,
    Fraction,
    Images,
    Kind,
    Options,
    Pair,
    Percent,
    Positive,
    Record,
    Row,
    Whole,
)

Document = Row
VARIANT_PATTERN = "variant~{variant}/quantization.json"
"""The path of a variant's record below the folder of its seed."""

Exactness = Annotated[dict[Literal["logits", "differing"], Whole], Len(2, 2)]
"""The number of logits also computed in integers, and how many of them differ."""
Classes = Annotated[dict[Literal["labels", "float32", "variant"], str], Len(3, 3)]
"""Classes of all test images, as `core.paired_accuracy` encodes them."""


class Accuracy(TypedDict):
    """An accuracy, its difference to the float network's, and its noise: `core.paired_accuracy`."""

    accuracy_percent: Percent
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


class Entrance(TypedDict):
    """How the input images are quantized: `scale` in levels per unit, noise in dB."""

    scale: Amount
    range: Pair
    clipped_share_calibration: Fraction | None
    clipped_share_test: Fraction | None
    sqnr_db: float | None


class Layer(TypedDict):
    """A layer of a quantized network; see `quantization.layer_statistics`.

    Fields of activation scales are absent where only weights are quantized. No code reads
    `weight_clipped_share` and `float32_exact`, which older records have.
    """

    layer: str
    weight_bits: Positive
    weight_scale: Amount
    weight_range: Pair
    weight_clipped_share: NotRequired[Fraction]
    weight_sqnr_db: float | None
    packed_bytes: Positive
    float32_bytes: Positive
    input_scale: NotRequired[Amount]
    accumulator_scale: NotRequired[Amount]
    largest_bias: NotRequired[float]
    bias_steps: NotRequired[float]
    bias_error_steps: NotRequired[Amount]
    output_scale: NotRequired[Amount | None]
    output_steps: NotRequired[list[int] | None]
    output_range: NotRequired[Pair]
    top_step: NotRequired[Amount | None]
    accumulator_bound: NotRequired[Whole]
    float32_exact: NotRequired[bool]
    clipped_share_calibration: NotRequired[Fraction | None]
    clipped_share_test: NotRequired[Fraction | None]
    sqnr_after_relu_db: NotRequired[float | None]


class Counts(TypedDict):
    """A histogram: the number of values between consecutive edges, in float units."""

    bin_edges: list[float]
    counts: list[Whole]


class Histogram(TypedDict):
    """The distribution of one quantity of a layer before and after quantization."""

    layer: str
    quantity: str
    scale: Amount
    float: Counts
    int8: Counts


class VariantRecord(Accuracy, OfSeed):
    """A variant of a tutorial CNN, `quantization.json`; see `quantization.variant`."""

    variant: str
    scheme: Options
    device: str
    float32: dict[Literal["accuracy_percent"], Percent]
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


class ResNetStage(Accuracy):
    """A stage of ResNet-18 for one kind of weight scales; only integers have bytes and bounds."""

    stage: str
    float32_bytes: Positive
    weight_scales: NotRequired[Literal["tensor", "channel"]]
    packed_bytes: NotRequired[Positive]
    accumulator_bound: NotRequired[Whole]
    exactness: NotRequired[Exactness]


class StagesRecord(OfSeed):
    """All stages of a seed's ResNet-18, `resnet18.json`."""

    device: str
    model_width: Positive
    calibration_images: Whole
    stages: Annotated[list[ResNetStage], Len(1)]


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
    if "classes" not in record:  # ResNet-18's.
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


VARIANT = Kind("quantize_evaluate.py, of the tutorial CNN", VariantRecord, _contradictions)
STAGED = Kind("quantize_evaluate.py, of a ResNet-18", StagesRecord, _contradictions)


def read(kind: Kind, paths: Iterable[Path]) -> list[Document]:
    """Return the records at `paths`, sorted by seed."""
    return sorted(map(kind.read, paths), key=itemgetter("seed"))
