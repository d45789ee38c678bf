"""Options of measurements: keys of the configuration, options of scripts, parameters of records."""

from pathlib import Path
from typing import Annotated, Any, Literal

from annotated_types import Ge, Le, MinLen, MultipleOf
from pydantic import ConfigDict, Field, JsonValue

from scaling.core import section as types


class Options(types.Section):
    """The base of a script's options."""

    model_config = ConfigDict(frozen=True, protected_namespaces=())


class DataOptions(Options):
    """Options that select the images."""

    dataset: Path
    """images.npz, made by dataset_prepare.py."""
    manifest: Path
    """Its manifest.json, with the dataset's description."""


class Dataset(types.Section):
    source: str
    """`cifar10` (downloaded), `images` (yours), `digits` (1,797 handwritten digits, at hand),
    `synthetic` (generated, for timing)."""
    path: str | None = None
    """For `cifar10`: a folder with `cifar-10-batches-py`, or `cifar-10-python.tar.gz`; null
    downloads. For `images`: a folder or tar of `train/<class>/*` and `test/<class>/*`."""
    mirror_url: str | None = None
    """For `cifar10`: another address of `cifar-10-python.tar.gz`."""
    download_attempts: types.Positive = 3
    """For `cifar10`: how often the download is tried."""
    train_images: Annotated[types.Positive, Ge(10)] = 50_000
    """For `synthetic`: number of training images."""
    test_images: Annotated[types.Positive, Ge(10)] = 10_000
    """For `synthetic`: number of test images."""
    seed: types.Count = 0
    """For `synthetic`: seed of the images."""
    image_size: Annotated[int, Ge(8), Le(1024)] = 32
    """Pixels of an image's sides. Others are resized, bilinearly."""


class Model(Options):
    """The section `model`."""

    name: Annotated[str, MinLen(1)] = "resnet18-cifar"
    """`resnet18-cifar`, a classification model of torchvision (`resnet50`, `vit_b_16`), or your
    function of the number of classes: `path/to/file.py:function` or `module:function`."""
    width: types.Few = 64
    """For `resnet18-cifar`: channels of its first stage. 64 has 11,173,962 parameters."""
    options: dict[str, JsonValue] = Field(default={})
    """For the others: arguments of the function, as `{width_per_group: 128}`."""


class Sgd(Options):
    """How every training of the lab's model updates it, and augments images."""

    learning_rate: types.AboveZero = 0.1
    """Of SGD."""
    momentum: types.Fraction = 0.9
    """Of SGD."""
    weight_decay: types.NotNegative = 5e-4
    """Of SGD. Write `5.0e-4`: YAML reads `5e-4` as text."""
    crop_padding: Annotated[int, Ge(0), Le(16)] = 4
    """Pixels of padding around an image before a random crop of its size."""
    horizontal_flip: bool = True
    """Mirrors half of the images. Right for photographs, wrong for digits."""

    @property
    def sgd(self) -> dict[str, Any]:
        """Return the arguments of torch.optim.SGD."""
        return {"lr": self.learning_rate, **self.model_dump(include={"momentum", "weight_decay"})}


class Training(Sgd):
    """How runs of the grid are trained and timed."""

    micro_batches: types.Positive = 1
    """Gradient accumulation: number of parts in which a GPU trains its batch before the update."""
    warmup_epochs: types.Positive = 1
    """Epochs at the start that are recorded and never averaged."""
    measured_epochs: Annotated[int, Ge(3)] = 4
    """Epochs after the warm-up; their median is the run's time. At least 5 with the warm-up, as the
    lab asks for training loss and accuracy after the fifth."""
    warmup_seconds: types.NotNegative = 0.0
    """Minimum seconds of the warm-up."""
    measured_seconds: types.NotNegative = 0.0
    """Minimum seconds of the measured epochs. Then a run continues until the last third of them is
    within 2 % of the first third, or within their noise."""
    max_measured_seconds: types.NotNegative = 0.0
    """Maximum seconds of the measured epochs; the report names unsettled runs. 0: do not wait."""
    instrumented_iterations: types.Count = 50
    """Maximum iterations of the extra epochs that measure communication and idle GPUs. 0: none."""


class Limits(Options):
    """What each process of a measurement may use, and how long it may take."""

    cpu_threads: types.Few = 1
    """Threads of each training process."""
    time_limit_seconds: types.AboveZero = 3600.0
    """A run that takes longer is recorded as `timeout`. A wait for GPUs may take an hour more."""
    collective_timeout_seconds: types.AboveZero = 300.0
    """A rank that waits longer for the others has hung: the run fails and names the ranks."""


class LargeBatches(Options):
    """What the trainings with large batches depend on, besides their techniques."""

    reference_batch: Annotated[int, Ge(2)] = 128
    """The batch on one GPU that scaling rules and comparisons refer to."""
    gpus: types.Positive = 4
    """How many GPUs share a global batch of at least this many reference batches. One GPU trains
    in their place, each one's batch as a micro-batch, which is normalized separately."""
    epochs: types.Positive = 5
    """Epochs of every run, so that techniques are compared after equally many images."""
    seeds: types.Some[types.Count] = Field(default=[0, 1, 2])
    """Seeds at the learning rate that a sweep chose. The sweep itself uses the first."""
    factors: types.Some[types.AboveZero] = Field(default=[1.0])
    """The learning rate sweep: multiples of the rate that a technique's rule gives. The lowest loss
    on validation images, or without any in training, decides. A technique with a sweep is compared
    with plain SGD with the widest sweep."""
    more_factors: types.Count = 0
    """How many factors a sweep may add: beyond its end while the best is there, then next to the
    best until its neighbours are a factor of 2 away."""
    held_out_images: types.Count = 0
    """Training images held out to choose a rate. 0: the training loss decides."""
    train_images: types.Positive | None = None
    """Train on only the first of the training images; null: all."""


class Synchronization(Options):
    seeds: Annotated[types.Distinct[types.Count], MinLen(3)] = Field(default=[0, 1, 2])
    """The experiments on image orders, messages and buffers: one training with and one without
    `set_epoch` for each. At least 3."""
    epochs: Annotated[int, Ge(2)] = 5
    """Epochs of each of these trainings, 2 or more."""
    batch_size: types.Positive = 256
    """Samples per GPU and step in all of these experiments."""
    train_images: types.Positive | None = None
    """Use only the first of the training images; null means all."""
    loader_workers: types.Count = 2
    """DataLoader processes of each of their training processes."""


class NetworkTraining(Options):
    """Training of the tutorial CNN that is quantized."""

    epochs: types.Positive
    """Training epochs of the tutorial CNN."""
    batch_size: types.Positive
    """Batch size of its training."""
    learning_rate: types.AboveZero
    """Learning rate of its SGD."""
    momentum: types.Fraction
    """Momentum of its SGD."""
    biases: Literal["all", "last", "none"] = "all"
    """The layers of the tutorial CNN with a bias: `all`, the `last`, or as in the lab `none`."""


class Interconnect(Options):
    message_bytes: types.Some[Annotated[int, Ge(4), MultipleOf(4)]]
    """Sizes of the all-reduce sweep; the gradients' and the buckets' are always added."""
    warmup: types.Positive = 5
    """Untimed repeats of each size."""
    repeats: Annotated[int, Ge(3)] = 20
    """Timed repeats of each size; the figure is their median."""
    iterations: Annotated[int, Ge(1), Le(20)] = 10
    """All-reduces timed together in one repeat, as nccl-tests does."""


class Peaks(Options):
    matrix_sizes: types.Some[types.Positive]
    """Sizes of the square matrix products. The largest rate of a precision is its peak."""
    copy_bytes: types.Positive
    """Size of the copies within a device and between GPUs."""
    repeats: Annotated[int, Ge(3)] = 10
    """Timed repeats of each figure, which is their median."""
    sustained_seconds: types.NotNegative = 0.0
    """The best size is read again after so many seconds of work, and up to three times as many
    until the rate has settled: the sustained peak. 0: not."""
