"""The keys of the experiments beside the grid: large batches, what ranks share, quantization."""

from typing import Annotated, Literal

from annotated_types import Ge, Gt, Le
from pydantic import AfterValidator, Field, StringConstraints

from scaling.config.bit_widths import BitWidths
from scaling.config.key_types import (
    AboveZero,
    Count,
    Distinct,
    Fraction,
    Positive,
    Precision,
    Some,
)
from scaling.config.scheme import Scheme
from scaling.config.technique import Technique
from scaling.core.section import Section
from scaling.registry.update_rule import UpdateRule


class Remedy(Technique):
    name: Annotated[str, StringConstraints(pattern="^[A-Za-z][A-Za-z0-9_]*$", max_length=100)]
    """Of the remedy, in tables, figures and paths."""


class Convergence(Section):
    global_batches: Some[Annotated[int, Ge(2)]]
    """Images of one update, over all GPUs, at which each remedy for large batches is tried."""
    reference_batch: Annotated[int, Ge(2)]
    """The batch on one GPU that all are compared with. Scaling rules count from it."""
    gpus: Positive
    """How many GPUs share a global batch of at least so many reference batches; smaller ones are on
    one. They are emulated on one GPU, with the same result: every rank's batch is normalised by
    itself."""
    epochs: Positive
    """Of every run, so that remedies are compared after as many images."""
    max_epochs: Positive
    """The most epochs of a remedy with `equal_updates`."""
    seeds: Some[Count]
    """Of the learning rate that a remedy's sweep chose. The sweep itself has the first of them."""
    factors: Some[AboveZero]
    """The sweep: multiples of the learning rate that a remedy's rule gives. The one with the lowest
    loss on images held out, or without any in training, is chosen; the test set has no say. A
    remedy with a sweep is judged against plain SGD (`scaling` alone) with the widest sweep; a best
    rate at an end of its sweep, beyond which a better one may be, blocks the verdict that this
    could overturn."""
    more_factors: Count = 0
    """How many factors a sweep may add: beyond the end at which its best one lies, then beside it,
    until it is inside and its neighbours are a factor of 2 away. May be left out, like the next
    three."""
    held_out_images: Count = 0
    """Training images that a sweep does not train on: they judge its rates, and techniques beside
    one another. All images are trained on with the rate chosen. 0: the training loss judges."""
    precise_batch_norm: bool = False
    """Test figures of all remedies are by batch norms' statistics computed anew from training
    images; those by running statistics stand beside them."""
    accuracies: Distinct[Annotated[float, Gt(0), Le(1)]] = Field(default=[0.7, 0.8, 0.85, 0.89])
    """Test accuracies for which the study tells the images needed at each global batch."""
    precision: Precision
    """Of convolutions and matrix products: `float32`, `tf32` or `bf16`."""
    train_images: Positive | None
    """How many training images are used, the first ones; null means all."""
    accuracy_margin: Fraction
    """A gap to the reference counts as closed when the interval of the difference in test accuracy
    excludes a loss of this (0.02: two points). Time to accuracy is the time to the reference's test
    accuracy minus this."""
    remedies: list[Remedy]
    """A list of remedies: a `name` and the options below, without which it is plain SGD. An empty
    list leaves the experiment out."""


class TimeToAccuracy(Section):
    """Trainings by recipe `tuned`, strategy ddp, to their end; the section may be left out."""

    accuracy: Annotated[float, Gt(0), Le(1)] = 0.89
    """The test accuracy that trainings are for: their seconds and joules are told with how many
    reached it. 0.89 is for CIFAR-10 of lossy images; of the original 0.94 can be asked for."""
    gpus: Distinct[Positive] = Field(default_factory=list)
    """Numbers of GPUs; `[]` leaves the trainings out."""
    global_batch: Positive = 1024
    """Images of one update, shared by the GPUs, so that all train alike."""
    epochs: Annotated[int, Ge(2)] = 10
    """Of each training, chosen beforehand."""
    seeds: Some[Count] = Field(default=[0, 1, 2, 3, 4])
    """A training each; 5 or more for an interval worth the name."""
    learning_rate: AboveZero = 0.1
    """The peak of SGD's."""
    update: UpdateRule = Field(default_factory=UpdateRule)


def _none_or_three(seeds: list[int]) -> list[int]:
    if len(seeds) in (1, 2):
        raise ValueError("it should have at least 3 seeds, or none")
    return seeds


class Synchronization(Section):
    seeds: Annotated[Distinct[Count], AfterValidator(_none_or_three)]
    """The experiments on image orders, messages and buffers, on the largest number of GPUs on one
    machine: one training with and one without `set_epoch` for each. At least 3; `[]` leaves the
    experiments out."""
    epochs: Annotated[int, Ge(2)]
    """Of each of these trainings, 2 or more. What buffers cost is timed apart from them, on batches
    in memory."""
    batch_size: Positive
    """Samples per GPU and step in all of these experiments."""
    train_images: Positive | None
    """How many training images they use, the first ones; null means all."""
    loader_workers: Count
    """DataLoader processes of each of their training processes."""


class Variant(Scheme):
    name: Annotated[str, StringConstraints(pattern=r"^\w[\w.+-]*$", max_length=100)]
    """Of the variant, in tables, figures and paths."""
    seeds: Some[Count] = Field(default_factory=list)
    """The report shows the variant for these seeds only. It is measured for every seed."""


class Quantization(Section):
    seeds: Distinct[Count]
    """One tutorial CNN is trained and quantized for each, the first one written as ONNX files too.
    With `[]` (and no `peers`, no `resnet18`) the study has no Part B."""
    epochs: Positive
    """Training epochs of the tutorial CNN."""
    batch_size: Positive
    """Of its training."""
    learning_rate: AboveZero
    """Of its SGD."""
    momentum: Fraction
    """Of its SGD."""
    biases: Literal["all", "last", "none"] = "all"
    """The layers of the tutorial CNN with a bias: `all`, or as in the lab's notebook `none`, and
    for its question on biases the `last` alone."""
    calibration_images: Count
    """Training images that set the activation scales; 0 means all."""
    variants: list[Variant]
    """Quantized copies of each seed's network, in one job: all of a network are measured again
    where one is new or changes. One whose sums could leave an int32 is refused in its record and
    its job's log, and no table has it. Options not given are those of plain int8. The report's
    stages are `weights`, `weights+activations` and `weights+activations+bias`."""
    bit_widths: BitWidths = Field(default_factory=BitWidths)
    histograms: str
    """The variant whose weights and activations are drawn: one with int8 logits and a scale for
    each tensor."""
    peers: Distinct[Literal["onnxruntime", "torchao"]]
    """Other quantizers to measure beside ours on the same weights and images, on the CPU with
    `machine.cpu_threads`: `onnxruntime`, `torchao`. One that is not installed
    (`requirements-peers.txt`) is noted and left out; `[]` measures none."""
    resnet18: bool
    """`true` trains a ResNet-18 of `model.width` for each seed too (recipe `tuned`, where the grid
    has it, else its first; one GPU, the epochs of `training`, the smallest of `grid.batch_sizes`)
    and takes it through the stages. Without a GPU that takes all cores, on Slurm one:
    `--set-threads quantize_evaluate_resnet=16`."""
