"""Options of measurements: keys of the configuration, options of scripts, parameters of records.

The sections of the configuration that a script is told are the base of its command.
"""

from pathlib import Path
from typing import Annotated, Any, Literal

from annotated_types import Ge, Le, MinLen, MultipleOf
from pydantic import AfterValidator, ConfigDict, Field, JsonValue
from tyro.conf import arg

from scaling.core.section import (
    AboveZero,
    Count,
    Distinct,
    Few,
    Fraction,
    NotNegative,
    Positive,
    Section,
    Some,
)


class Options(Section):
    """The base of a script's options."""

    model_config = ConfigDict(frozen=True, protected_namespaces=())


class DataOptions(Options):
    """Options that select the images."""

    dataset: Path
    """images.npz, made by dataset_prepare.py."""
    manifest: Path
    """Its manifest.json, with the dataset's description."""


class Model(Options):
    """The section `model`; of a script the options --model, --model-width, --model-options."""

    name: Annotated[str, MinLen(1), arg(name="model")] = "resnet18-cifar"
    """`resnet18-cifar`, a classification model of torchvision by its name (`resnet50`, `vit_b_16`),
    or a function of yours that takes the number of classes and returns the network:
    `path/to/file.py:function` or `module:function`. May be left out."""
    width: Annotated[Few, arg(name="model-width")] = 64
    """For `resnet18-cifar`: channels of its first stage. 64 is the model of the literature with
    11,173,962 parameters."""
    options: Annotated[dict[str, JsonValue], arg(name="model-options")] = Field(default={})
    """For the others: arguments of the function, as `{width_per_group: 128}`."""


class Sgd(Options):
    """How every training of the lab's model updates it, and augments images."""

    learning_rate: AboveZero = 0.1
    """Of SGD."""
    momentum: Fraction = 0.9
    """Of SGD."""
    weight_decay: NotNegative = 5e-4
    """Of SGD. Write `5.0e-4`: YAML reads `5e-4` as text."""
    crop_padding: Annotated[int, Ge(0), Le(16)] = 4
    """Pixels of padding around an image before a random crop of its size."""
    horizontal_flip: bool = True
    """Mirrors half of the images. Right for photographs, wrong for digits."""

    @property
    def sgd(self) -> dict[str, Any]:
        """Return the arguments of torch.optim.SGD."""
        return {
            "lr": self.learning_rate,
            "momentum": self.momentum,
            "weight_decay": self.weight_decay,
        }


class Training(Sgd):
    """How the cells of the grid are trained and timed."""

    micro_batches: Positive = 1
    """Gradient accumulation: each GPU trains its batch in so many parts before the one update, so
    that a larger batch fits into memory. May be left out."""
    warmup_epochs: Positive = 1
    """Epochs at the start that are recorded and never averaged."""
    measured_epochs: Annotated[int, Ge(3)] = 3
    """Epochs after them, at least 3; the figure of a cell is their median, over all seeds. The
    accuracy of all cells is that after these and the warm-up's."""
    warmup_seconds: NotNegative = 0.0
    """Warm-up goes on until so many seconds have passed. May be left out, like the next two."""
    measured_seconds: NotNegative = 0.0
    """Measuring goes on until so many seconds have passed, and then until the cell has settled: the
    last third of its epochs is within 2 % of the first third, or within their noise."""
    max_measured_seconds: NotNegative = 0.0
    """What has not settled after so many seconds is left so, and the report says so. 0: none is
    waited for."""
    instrumented_iterations: Count = 50
    """Extra epochs of at most so many iterations measure communication (without synchronisation,
    and traced) and how long nothing runs on a GPU. 0 means none."""


class Limits(Options):
    """What each process of a measurement may use, and how long it may take."""

    cpu_threads: Few = 1
    """Threads of each training process."""
    time_limit_seconds: AboveZero = 3600.0
    """A run that takes longer is stopped and recorded as `timeout`; one that waits longer for GPUs
    fails and names who holds them."""
    collective_timeout_seconds: AboveZero = 300.0
    """A rank that waits longer than this for the others, inside a CUDA graph too, has hung: the run
    fails and names the ranks."""


class LargeBatches(Options):
    """What the trainings with large batches depend on, besides their techniques."""

    reference_batch: Annotated[int, Ge(2)] = 128
    """The batch on one GPU that all are compared with, and that scaling rules refer to."""
    gpus: Positive = 4
    """How many GPUs share a global batch of at least this many reference batches; smaller ones use
    one. One GPU emulates them: each rank's batch is normalized separately."""
    epochs: Positive = 5
    """Epochs of every run, so that techniques are compared after equally many images."""
    max_epochs: Positive = 5
    """Maximum epochs of a technique with `equal_updates`."""
    seeds: Some[Count] = Field(default=[0, 1, 2])
    """Seeds at the learning rate that a sweep chose. The sweep itself uses the first."""
    factors: Some[AboveZero] = Field(default=[1.0])
    """The learning rate sweep: multiples of the rate that a technique's rule gives. The one with
    the lowest loss on held-out images, or without any in training, is chosen. A technique with a
    sweep is compared with plain SGD with the widest sweep; verdicts that a better rate beyond the
    end of a sweep could overturn stay open."""
    more_factors: Count = 0
    """How many factors a sweep may add: beyond its end while the best is there, then next to the
    best until its neighbours are a factor of 2 away. May be left out, like the next three."""
    held_out_images: Count = 0
    """Training images that are held out of a sweep, to choose its rate and to compare techniques.
    0: the training loss decides."""
    precise_batch_norm: bool = False
    """Test accuracies use batch-norm statistics recomputed on training images."""
    train_images: Positive | None = None
    """Train on only the first of the training images; null means all."""


def _none_or_three(seeds: list[int]) -> list[int]:
    if len(seeds) in (1, 2):
        raise ValueError("it should have at least 3 seeds, or none")
    return seeds


class Synchronization(Options):
    seeds: Annotated[Distinct[Count], AfterValidator(_none_or_three)] = Field(default=[0, 1, 2])
    """The experiments on image orders, messages and buffers, on the most GPUs of one machine: one
    training with and one without `set_epoch` for each. At least 3; `[]` leaves them out."""
    epochs: Annotated[int, Ge(2)] = 5
    """Epochs of each of these trainings, 2 or more."""
    batch_size: Positive = 256
    """Samples per GPU and step in all of these experiments."""
    train_images: Positive | None = None
    """Use only the first of the training images; null means all."""
    loader_workers: Count = 2
    """DataLoader processes of each of their training processes."""


class NetworkTraining(Options):
    """How the tutorial CNN is trained that is quantized."""

    epochs: Positive
    """Training epochs of the tutorial CNN."""
    batch_size: Positive
    """Batch size of its training."""
    learning_rate: AboveZero
    """Learning rate of its SGD."""
    momentum: Fraction
    """Momentum of its SGD."""
    biases: Literal["all", "last", "none"] = "all"
    """The layers of the tutorial CNN with a bias: `all`, or as in the lab's notebook `none`, and
    for its question on biases the `last` alone."""


class Interconnect(Options):
    message_bytes: Some[Annotated[int, Ge(4), MultipleOf(4)]]
    """Sizes of the all-reduce sweep. The gradients' size, DDP's buckets and recipe `tuned`'s are
    always added."""
    warmup: Positive = 5
    """Untimed repeats of each size."""
    repeats: Annotated[int, Ge(3)] = 20
    """Timed repeats of each size; the figure is their median."""
    iterations: Annotated[int, Ge(1), Le(20)] = 10
    """All-reduces timed together in one repeat, as nccl-tests does."""


class Peaks(Options):
    matrix_sizes: Some[Positive]
    """Sizes of the square matrix products, in float32, TF32 and bf16 (on a CPU, float32 and bf16).
    The largest rate of a precision is its peak."""
    copy_bytes: Positive
    """Size of the copies within a device and between GPUs; larger than any cache."""
    repeats: Annotated[int, Ge(3)] = 10
    """Timed repeats of each figure, after a warm-up; the figure is their median."""
    sustained_seconds: NotNegative = 0.0
    """The rates above are of a GPU that has rested. The best size is read again after so many
    seconds of work, and up to three times as many until the rate has settled: the sustained peak.
    0: not. May be left out."""
