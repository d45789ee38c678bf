"""The records of Part B."""

from collections.abc import Iterable
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired

from annotated_types import Len
from pydantic import Discriminator, Tag
from typing_extensions import TypedDict

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
    EntranceScale,
    GpuSpeed,
    Histogram,
    Layer,
    OldLayer,
    ResNetLayer,
)

Document = Row
VARIANT_PATTERN = "variant~{variant}/quantization.json"
"""Where the record of a variant lies, from the folder of its seed."""

Exactness = Annotated[dict[Literal["logits", "differing"], Whole], Len(2, 2)]
"""How many logits were computed in integers too, and how many of them differ."""
Classes = Annotated[dict[Literal["labels", "float32", "variant"], str], Len(3, 3)]
"""Classes of all test images, as `core.paired_accuracy` encodes them."""
Versions = dict[str, str | None]


class FloatAccuracy(TypedDict):
    """The float network's accuracy."""

    accuracy_percent: Percent


class StageAccuracy(FloatAccuracy):
    """An accuracy, and how it differs from the float network's; see `core.paired_accuracy`."""

    difference_points: float
    agreement_percent: Percent
    test_images: Positive


class Accuracy(StageAccuracy):
    """The same, and how sure the difference is."""

    standard_error_points: Amount
    gained: Whole
    lost: Whole


class OfSeed(Record):
    """Whose network was quantized, and the images that it was made with."""

    seed: Whole
    dataset: Images


class VariantOfSeed(OfSeed):
    """Which variant of a seed's tutorial CNN it is."""

    variant: str
    scheme: Options
    device: str


class RefusedRecord(VariantOfSeed):
    """A variant that cannot be made: `refused` says why."""

    refused: str


class VariantRecord(Accuracy, VariantOfSeed):
    """A variant that was made; see `quantization.variant`."""

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


class Stage(StageAccuracy):
    """A stage of quantization, with the accuracy of the network there."""

    stage: str


class OldStagesRecord(OfSeed):
    """The stages of a seed's tutorial CNN, `stages.json`, of a study without variants."""

    device: str
    calibration_images: Whole
    test_images: Positive
    stages: Annotated[list[Stage], Len(1)]
    input: EntranceScale
    layers: list[OldLayer]
    histograms: list[Histogram]


def _form(record: Any) -> str:
    return next((name for name in ("refused", "stages") if name in record), "variant")


TutorialCnn = Annotated[
    Annotated[VariantRecord, Tag("variant")]
    | Annotated[RefusedRecord, Tag("refused")]
    | Annotated[OldStagesRecord, Tag("stages")],
    Discriminator(_form),
]
"""What `quantization.json` is of: a variant, or why there is none; older studies have stages."""


class ResNetStage(Accuracy, Stage):
    """A stage of ResNet-18, by kind of weight scales; only integers have bytes and bounds."""

    float32_bytes: Positive
    weight_scales: NotRequired[Literal["tensor", "channel"]]
    packed_bytes: NotRequired[Positive]
    accumulator_bound: NotRequired[Whole]
    exactness: NotRequired[Exactness]


class StagesRecord(OfSeed):
    """All stages of a seed's ResNet-18, `resnet18.json`; see `quantization.resnet_stages`.

    `ranges` are the lowest and the highest value of each layer on the calibration images, null
    where they were not kept.
    """

    device: str
    model_width: Positive
    calibration_images: Whole
    stages: Annotated[list[ResNetStage], Len(1)]
    layers: list[ResNetLayer]
    ranges: dict[str, Pair] | None
    gpu_speed: list[GpuSpeed]


class Network(Accuracy):
    """A network of a backend or of ours; `seconds` a call in each round, by images of a batch."""

    agreement_ours_percent: Percent
    file_bytes: Positive
    seconds: NotRequired[dict[str, Repeats]]


class Peer(TypedDict):
    """A backend with its networks, none where it is not installed or failed (`note`)."""

    peer: str
    status: Literal["measured", "not installed", "failed"]
    versions: Versions
    networks: dict[str, Network]
    note: str | None
    options: NotRequired[str]


class PeersRecord(OfSeed):
    """Other quantizers beside ours, `peers.json`."""

    calibration_images: Whole
    test_images: Positive
    threads: Positive
    ours: dict[str, Network]
    peers: list[Peer]


class ExportedNetwork(Network):
    """A network as an ONNX file, beside the one that it was made from."""

    differing_classes: Whole
    logits: NotRequired[Whole]
    largest_steps: NotRequired[Whole]
    differing_logits: NotRequired[Whole]


class ExportRecord(OfSeed):
    """A seed's networks as ONNX files, `export.json`."""

    model: str
    calibration_images: Whole
    all_threads: Positive
    instructions: str
    versions: Versions
    networks: Annotated[dict[Literal["float32", "int8", "uint8"], ExportedNetwork], Len(3, 3)]


VARIANT = Kind[Row]("quantize_evaluate.py, of the tutorial CNN", TutorialCnn)
STAGED = Kind[Row]("quantize_evaluate.py, of a ResNet-18", StagesRecord)
BACKENDS = Kind[Row]("quantize_peers.py", PeersRecord)
EXPORT = Kind[Row]("quantize_export.py", ExportRecord)


def read(kind: Kind[Row], paths: Iterable[Path]) -> list[Document]:
    """Return records by seed, those of a seed as given, without variants that were refused."""
    found = [record for record in map(kind.read, paths) if "refused" not in record]
    return sorted(found, key=itemgetter("seed"))
