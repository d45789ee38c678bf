"""Options of measurements, which the configuration and the scripts share."""

from pathlib import Path
from typing import Annotated, Any, Literal

from annotated_types import Ge, Le, MinLen, MultipleOf
from pydantic import ConfigDict, Field, JsonValue

from scaling.core import section as types


class Options(types.Section):
    """Base class of the options of a script."""

    model_config = ConfigDict(frozen=True, protected_namespaces=())


class DataOptions(Options):
    """Paths of the two files of a dataset."""

    dataset: Path
    """Path of images.npz, which dataset_prepare.py writes."""
    manifest: Path
    """Path of manifest.json, which describes the dataset."""


class Dataset(types.Section):
    source: str
    """`cifar10` (downloaded), `images` (your files), `digits` (1,797 handwritten digits,
    installed with scikit-learn), `synthetic` (generated, for timing)."""
    path: str | None = None
    """For `cifar10`: a folder with `cifar-10-batches-py`, or `cifar-10-python.tar.gz`; null:
    download it. For `images`: a folder or tar of `train/<class>/*` and `test/<class>/*`. If it has
    moved, first run `snakemake --cores 1 resources/dataset/images/images.npz` with your
    `--configfile`: if its name and images are the same, no measurement repeats."""
    mirror_url: str | None = None
    """For `cifar10`: another URL of `cifar-10-python.tar.gz`."""
    download_attempts: types.Positive = 3
    """For `cifar10`: maximum number of attempts to download."""
    train_images: Annotated[types.Positive, Ge(10)] = 50_000
    """For `synthetic`: number of training images."""
    test_images: Annotated[types.Positive, Ge(10)] = 10_000
    """For `synthetic`: number of test images."""
    seed: types.Count = 0
    """For `synthetic`: seed of the images."""
    image_size: Annotated[int, Ge(8), Le(1024)] = 32
    """Height and width in pixels. Images of another size are resized bilinearly."""


class Model(Options):
    """Options of the section `model`."""

    name: Annotated[str, MinLen(1)] = "resnet18-cifar"
    """One of these: `resnet18-cifar`; the name of a classifier in torchvision, such as `resnet50`;
    your function of the number of classes, as `path/to/file.py:function` or `module:function`."""
    width: types.Few = 64
    """For `resnet18-cifar`: channels of its first stage. 64 channels give 11,173,962 parameters."""
    options: dict[str, JsonValue] = Field(default={})
    """Keyword arguments of any model but `resnet18-cifar`, such as `{width_per_group: 128}`."""


class Sgd(Options):
    """SGD and image augmentation for the model of section `model`."""

    learning_rate: types.AboveZero = 0.1
    """Learning rate of SGD."""
    momentum: types.Fraction = 0.9
    """Momentum of SGD."""
    weight_decay: types.NotNegative = 5e-4
    """Weight decay of SGD. Write `5.0e-4`: YAML reads `5e-4` as text."""
    crop_padding: Annotated[int, Ge(0), Le(16)] = 4
    """Pixels of padding around an image before a random crop of its size."""
    horizontal_flip: bool = True
    """Mirrors each image with probability 0.5. Use it for photographs, not for digits."""

    @property
    def sgd(self) -> dict[str, Any]:
        """Return the arguments of torch.optim.SGD."""
        return {"lr": self.learning_rate, **self.model_dump(include={"momentum", "weight_decay"})}


class Training(Sgd):
    """How runs of the grid are trained and timed."""

    micro_batches: types.Positive = 1
    """Gradient accumulation: number of parts into which a GPU splits its batch in each update."""
    warmup_epochs: types.Positive = 1
    """Epochs before the measured ones. They are recorded, but not averaged."""
    measured_epochs: Annotated[int, Ge(3)] = 4
    """Epochs after the warm-up. The median of their durations is the run's epoch time. Warm-up and
    measured epochs should add up to 5 or more: the lab asks for the metrics of the fifth epoch."""
    warmup_seconds: types.NotNegative = 0.0
    """Minimum duration of the warm-up in seconds."""
    measured_seconds: types.NotNegative = 0.0
    """Minimum total seconds of the measured epochs. If `max_measured_seconds` is set, a run goes on
    until epochs are steady. They are steady if the medians of the first and last third differ by
    at most 2 %. A larger difference is allowed if consecutive epochs differ by as much."""
    max_measured_seconds: types.NotNegative = 0.0
    """Maximum total seconds of the measured epochs while a run waits for steady epochs (see
    `measured_seconds`). The report names runs that end unsteady. 0: do not wait."""
    instrumented_iterations: types.Count = 50
    """Maximum steps of the extra epochs that measure communication and GPU idle time. 0: none."""


class Limits(Options):
    """Threads and time limits of a measurement's processes."""

    cpu_threads: types.Few = 1
    """Threads of each training process."""
    time_limit_seconds: types.AboveZero = 3600.0
    """Seconds until a run is recorded as `timeout`; waiting for GPUs may take another hour. A
    changed limit repeats all runs."""
    collective_timeout_seconds: types.AboveZero = 300.0
    """If a rank waits longer (s) for other ranks, the run fails and names the ranks that hang."""


class LargeBatches(Options):
    """Settings shared by all techniques that are tried with large batches."""

    reference_batch: Annotated[int, Ge(2)] = 128
    """Batch size on one GPU for the base learning rate. Larger batches are compared with it."""
    gpus: types.Positive = 4
    """Number of simulated GPUs, whose batches are micro-batches on one GPU with separate batch-norm
    statistics. Global batches below `gpus` · `reference_batch` are not split."""
    epochs: types.Positive = 5
    """Epochs of every run: all techniques are compared after the same number of images."""
    seeds: types.Some[types.Count] = Field(default=[0, 1, 2])
    """Seeds of runs at the learning rate that a sweep chose. The sweep uses the first seed only."""
    factors: types.Some[types.AboveZero] = Field(default=[1.0])
    """Factors by which a sweep multiplies a technique's scaled learning rate. The sweep chooses the
    factor with the lowest validation loss; without a validation set, the lowest training loss.
    If several techniques are plain SGD, the one with the most factors is the reference."""
    more_factors: types.Count = 0
    """Maximum number of factors that a sweep adds, if `factors` has several. If the smallest factor
    has the lowest loss, its half is added; if the largest has it, its double. Otherwise, the
    geometric mean of the best factor and a neighbour is added if they differ by more than 2×."""
    held_out_images: types.Count = 0
    """Training images held out as the validation set. 0: none; training loss chooses rates."""
    train_images: types.Positive | None = None
    """Number of training images to use, from the start of the dataset; null: all."""


class Synchronization(Options):
    seeds: Annotated[types.Distinct[types.Count], MinLen(3)] = Field(default=[0, 1, 2])
    """Seeds of the synchronization experiments (image orders, messages, buffers), 3 or more. Each
    seed has one training with `set_epoch` and one without."""
    epochs: Annotated[int, Ge(2)] = 5
    """Epochs of each training in the synchronization experiments, 2 or more."""
    batch_size: types.Positive = 256
    """Samples per GPU and step in the synchronization experiments."""
    train_images: types.Positive | None = None
    """Number of training images to use, from the start of the dataset; null: all."""
    loader_workers: types.Count = 2
    """DataLoader processes of each training process in the synchronization experiments."""


class NetworkTraining(Options):
    """Training of the tutorial CNN that is quantized."""

    epochs: types.Positive
    """Epochs of the tutorial CNN's training."""
    batch_size: types.Positive
    """Batch size of the tutorial CNN's training."""
    learning_rate: types.AboveZero
    """Learning rate of SGD in the tutorial CNN's training."""
    momentum: types.Fraction
    """Momentum of SGD in the tutorial CNN's training."""
    biases: Literal["all", "last", "none"] = "all"
    """Layers of the tutorial CNN that have a bias: `all`, the `last`, or `none` as in the lab."""


class Interconnect(Options):
    message_bytes: types.Some[Annotated[int, Ge(4), MultipleOf(4)]]
    """Bytes of messages of the all-reduce sweep, besides those of gradients and DDP buckets."""
    warmup: types.Positive = 5
    """Untimed repeats of each message size."""
    repeats: Annotated[int, Ge(3)] = 20
    """Timed repeats of each message size. The result is their median."""
    iterations: Annotated[int, Ge(1), Le(20)] = 10
    """Number of all-reduces that one repeat times together, as in nccl-tests."""


class Peaks(Options):
    matrix_sizes: types.Some[types.Positive]
    """Side lengths of square matrices to multiply. The fastest gives the peak of a precision."""
    copy_bytes: types.Positive
    """Bytes of each timed copy, within a device and between GPUs."""
    repeats: Annotated[int, Ge(3)] = 10
    """Timed repeats of each operation. The result is their median."""
    sustained_seconds: types.NotNegative = 0.0
    """Minimum seconds of work before the fastest size is timed again, for the sustained peak. If
    rates are unsteady, work goes on for up to three times as long. 0: no sustained peak."""
