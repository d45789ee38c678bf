"""The records of Part B."""

from collections.abc import Iterable
from operator import itemgetter
from pathlib import Path
from typing import Annotated, Literal, NotRequired

from annotated_types import Len
from typing_extensions import TypedDict

from scaling.core.records.fields import (
    Amount,
    Images,
    Options,
    Pair,
    Percent,
    Positive,
    Repeats,
    Row,
    Seconds,
    Whereabouts,
    Whole,
    closed,
)
from scaling.core.records.kind import Kind
from scaling.core.records.layers import Entrance, Exactness, Histogram, Layer

Document = Row


class Accuracy(TypedDict):
    """An accuracy, and how it differs from the float network's; see `core.paired_accuracy`."""

    accuracy_percent: Percent
    difference_points: float
    standard_error_points: Amount
    agreement_percent: Percent
    gained: Whole
    lost: Whole
    test_images: Positive


class Float(TypedDict):
    """The float network's accuracy."""

    accuracy_percent: Percent


class Classes(TypedDict):
    """Classes of all test images, as `core.paired_accuracy` encodes them."""

    labels: str
    float32: str
    variant: str


@closed
class VariantRecord(Accuracy):
    """One variant of a seed's tutorial CNN, `quantization.json`; see `quantization.variant`."""

    seed: Whole
    variant: str
    scheme: Options
    device: str
    dataset: Images
    float32: Float
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
    environment: Whereabouts


class Stage(TypedDict):
    """A stage of quantization, with the accuracy of the network there."""

    stage: str
    accuracy_percent: Percent
    difference_points: float
    agreement_percent: Percent
    test_images: Positive


class ResNetStage(Accuracy):
    """A stage of ResNet-18, by kind of weight scales; only integers have bytes and bounds."""

    stage: str
    float32_bytes: Positive
    weight_scales: NotRequired[Literal["tensor", "channel"]]
    packed_bytes: NotRequired[Positive]
    accumulator_bound: NotRequired[Whole]
    exactness: NotRequired[Exactness]


class ResNetLayer(TypedDict):
    """A layer of an integer ResNet-18."""

    weight_scales: Literal["tensor", "channel"]
    layer: str
    products_bound: Whole
    accumulator_bound: Whole
    float32_exact: bool
    packed_bytes: Positive


class GpuSpeed(TypedDict):
    """Seconds of a layer's matrix product on a GPU, or of the whole network, without its sizes."""

    layer: str
    patches: NotRequired[Positive]
    inner: NotRequired[Positive]
    outputs: NotRequired[Positive]
    int8_seconds: Seconds
    bfloat16_seconds: Seconds


@closed
class StagesRecord(TypedDict):
    """All stages of a seed's ResNet-18, `resnet18.json`; see `quantization.resnet_stages`.

    `ranges` are the lowest and the highest value of each layer on the calibration images, null
    where they were not kept.
    """

    seed: Whole
    device: str
    dataset: Images
    model_width: Positive
    calibration_images: Whole
    stages: Annotated[list[ResNetStage], Len(1)]
    layers: list[ResNetLayer]
    ranges: dict[str, Pair] | None
    gpu_speed: list[GpuSpeed]
    environment: Whereabouts


class OldLayer(TypedDict):
    """A layer of a tutorial CNN of which stages alone were kept."""

    layer: str
    weight_scale: Amount
    weight_range: Pair
    input_scale: Amount
    accumulator_scale: Amount
    output_scale: Amount
    output_range: Pair
    products_bound: Whole
    accumulator_bound: Whole
    simulated_in: str


class OldEntrance(TypedDict):
    """How the images of such a network are quantized."""

    scale: Amount
    range: Pair


@closed
class OldStagesRecord(TypedDict):
    """The stages of a seed's tutorial CNN, `stages.json`, of a study without variants."""

    seed: Whole
    device: str
    dataset: Images
    calibration_images: Whole
    test_images: Positive
    stages: Annotated[list[Stage], Len(1)]
    input: OldEntrance
    layers: list[OldLayer]
    histograms: list[Histogram]
    environment: Whereabouts


class Network(Accuracy):
    """A network of a backend or of ours; `seconds` a call in each round, by images of a batch."""

    agreement_ours_percent: Percent
    file_bytes: Positive
    seconds: NotRequired[dict[str, Repeats]]


class Peer(TypedDict):
    """A backend with its networks, none where it is not installed or failed (`note`)."""

    peer: str
    status: Literal["measured", "not installed", "failed"]
    versions: dict[str, str | None]
    networks: dict[str, Network]
    note: str | None
    options: NotRequired[str]


@closed
class PeersRecord(TypedDict):
    """Other quantizers beside ours, `peers.json`."""

    seed: Whole
    dataset: Images
    calibration_images: Whole
    test_images: Positive
    threads: Positive
    ours: dict[str, Network]
    peers: list[Peer]
    environment: Whereabouts


class ExportedNetwork(Network):
    """A network as an ONNX file, beside the one that it was made from."""

    differing_classes: Whole
    logits: NotRequired[Whole]
    largest_steps: NotRequired[Whole]
    differing_logits: NotRequired[Whole]


class ExportedNetworks(TypedDict):
    """The networks that are exported."""

    float32: ExportedNetwork
    int8: ExportedNetwork
    uint8: ExportedNetwork


@closed
class ExportRecord(TypedDict):
    """A seed's networks as ONNX files, `export.json`."""

    seed: Whole
    model: str
    dataset: Images
    calibration_images: Whole
    all_threads: Positive
    instructions: str
    versions: dict[str, str | None]
    networks: ExportedNetworks
    environment: Whereabouts


VARIANT = Kind[Row]("quantize_evaluate.py, of the tutorial CNN", VariantRecord)
STAGED = Kind[Row]("quantize_evaluate.py, of a ResNet-18", StagesRecord)
OLD_STAGES = Kind[Row]("the stages of a tutorial CNN", OldStagesRecord)
BACKENDS = Kind[Row]("quantize_peers.py", PeersRecord)
EXPORT = Kind[Row]("quantize_export.py", ExportRecord)


def read(kind: Kind[Row], paths: Iterable[Path]) -> list[Document]:
    """Read records by seed, those of a seed as given; `stages.json` are of a kind of their own."""
    kinds = ((OLD_STAGES if path.name == "stages.json" else kind, path) for path in paths)
    return sorted((one.read(path) for one, path in kinds), key=itemgetter("seed"))
