"""The records of Part B (quantization)."""

import math
from collections.abc import Iterator
from typing import Annotated, Literal, NotRequired

from annotated_types import Len
from typing_extensions import TypedDict

from scaling.core.paired_accuracy import decode, paired
from scaling.core.records.kind import (
    Amount,
    Fraction,
    Images,
    Kind,
    Number,
    Pair,
    Percent,
    Positive,
    Record,
    Row,
    Whole,
    opened,
)

VARIANT_PATTERN = "variant~{variant}/quantization.json"
"""The path of a variant's record below the folder of its seed."""

Exactness = Annotated[dict[Literal["logits", "differing"], Whole], Len(2, 2)]
"""The number of logits also computed in integers, and how many of them differ."""
Classes = Annotated[dict[Literal["labels", "float32", "variant"], str], Len(3, 3)]
"""Classes of all test images, as `core.paired_accuracy` encodes them."""
Counts = Annotated[dict[Literal["bin_edges", "counts"], list[Number]], Len(2, 2)]
"""A histogram: the number of values between consecutive edges, in float units."""


class Accuracy(TypedDict):
    """An accuracy, its difference to the float network's, and its noise: `core.paired_accuracy`."""

    accuracy_percent: Percent
    difference_points: Number
    agreement_percent: Percent
    test_images: Positive
    standard_error_points: Amount
    gained: Whole
    lost: Whole


class OfSeed(Record):
    """The seed of the quantized network, and what measured it."""

    seed: Whole
    dataset: Images
    device: str
    calibration_images: Whole


@opened
class Options(TypedDict):
    """The options of a variant: `config.scheme`."""

    mistakes: list[str]


@opened
class Entrance(TypedDict):
    """How the input images are quantized: `scale` in levels per unit; clipping, noise in dB."""

    scale: Amount
    range: Pair


@opened
class Layer(TypedDict):
    """A layer of a quantized network, with more figures: see `quantization.variant`.

    Those of activations are absent where only weights are quantized.
    """

    layer: str
    weight_bits: Positive
    weight_range: Pair
    packed_bytes: Positive
    float32_bytes: Positive
    output_range: NotRequired[Pair]
    # What tells a mistake.
    bias_error_steps: NotRequired[Amount]
    top_step: NotRequired[Amount | None]
    clipped_share_calibration: NotRequired[Fraction | None]
    sqnr_after_relu_db: NotRequired[Number | None]


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
    float32: dict[Literal["accuracy_percent"], Percent]
    classes: Classes
    calibration_checksum: str | None
    training_checksum: str
    packed_bytes: Positive
    float32_bytes: Positive
    exactness: Exactness | None
    input: Entrance | None
    layers: Annotated[list[Layer], Len(1)]
    histograms: NotRequired[list[Histogram]]


def _contradictions(record: Row) -> Iterator[str]:
    """Yield what is not as a record's own classes and layers make it."""
    classes = record["classes"]
    wanted = paired(*(decode(classes[of]) for of in ("labels", "float32", "variant")))
    for key in ("float32_bytes", "packed_bytes"):
        wanted[key] = sum(layer[key] for layer in record["layers"])
    wanted["packed_bytes"] += 4 * bool(record["input"])  # The scale of the images.
    found = record | {"float32": record["float32"]["accuracy_percent"]}
    wanted["float32"] = wanted["accuracy_percent"] - wanted["difference_points"]
    yield from (
        f"{key} is not as its parts make it"
        for key in wanted
        if not math.isclose(found[key], wanted[key], abs_tol=1e-9)
    )


VARIANT = Kind("quantize_evaluate.py", VariantRecord, _contradictions)
