"""Which runs a remedy needs at a global batch: a sweep of the rate, then the chosen rate's seeds.

The rate is chosen by the training loss of the last epoch, never by the test set. Needs no torch.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from scaling.convergence.remedy import Remedy, batch_sizes, rates


@dataclass(frozen=True)
class Study:
    """What all runs have in common.

    `reference_batch` is the batch on one GPU that every other is compared with, and at which every
    scaling rule gives `learning_rate`. Global batches of at least `gpus` times as many images are
    spread over `gpus` GPUs, smaller ones are on one. `max_epochs` bounds runs at equal updates.
    They train on the first `train_images`, None for all.
    """

    reference_batch: int
    gpus: int
    epochs: int
    max_epochs: int
    seeds: tuple[int, ...]
    factors: tuple[float, ...]
    learning_rate: float
    momentum: float
    weight_decay: float
    crop_padding: int
    horizontal_flip: bool
    model_width: int
    precision: str
    train_images: int | None = None

    def gpus_of(self, global_batch: int) -> int:
        """Over how many GPUs a global batch is spread."""
        return self.gpus if global_batch >= self.gpus * self.reference_batch else 1


def uneven(global_batches: Sequence[int], reference_batch: int, gpus: int) -> list[int]:
    """The global batches that would be spread over the GPUs and do not divide by their number."""
    return [batch for batch in global_batches if batch >= gpus * reference_batch and batch % gpus]


@dataclass(frozen=True)
class Run:
    """All that decides the outcome of one run at a global batch; equal runs are the same run.

    With `precise_batch_norm` it is evaluated in two ways, and trains as it would without.
    """

    seed: int
    epochs: int
    rates: tuple[float, ...]
    zero_gamma: bool
    decay_batch_norm: bool
    label_smoothing: float
    lars: float
    precise_batch_norm: bool


def run_of(
    study: Study, remedy: Remedy, global_batch: int, train_images: int, factor: float, seed: int
) -> Run:
    """The run of `remedy` at `factor` times the rate of its rule."""
    epochs = epochs_of(study, remedy, global_batch, train_images)
    updates = len(batch_sizes(train_images, global_batch, study.gpus_of(global_batch)))
    peak = factor * remedy.rate(study.learning_rate, global_batch / study.reference_batch)
    return Run(
        seed=seed,
        epochs=epochs,
        rates=tuple(rates(remedy, study.learning_rate, peak, updates, epochs)),
        zero_gamma=remedy.zero_gamma,
        decay_batch_norm=remedy.decay_batch_norm,
        label_smoothing=remedy.label_smoothing,
        lars=remedy.lars,
        precise_batch_norm=remedy.precise_batch_norm,
    )


def epochs_of(study: Study, remedy: Remedy, global_batch: int, train_images: int) -> int:
    """The study's epochs, or those that give as many updates as the reference batch."""
    if not remedy.equal_updates:
        return study.epochs
    updates = len(batch_sizes(train_images, global_batch, study.gpus_of(global_batch)))
    return min(
        max(study.epochs, math.ceil(reference_updates(study, train_images) / updates)),
        max(study.max_epochs, study.epochs),
    )


def reference_updates(study: Study, train_images: int) -> int:
    """The updates of the reference batch on one GPU in the study's epochs."""
    return study.epochs * len(batch_sizes(train_images, study.reference_batch, 1))


def choose(factors: Sequence[float], losses: Sequence[float | None]) -> float:
    """The factor whose run has the lowest training loss in its last epoch.

    `losses` are None for runs that diverged. When all did, it is the one nearest to the rule's.
    """
    finished = [
        (loss, factor) for factor, loss in zip(factors, losses, strict=True) if loss is not None
    ]
    if not finished:
        return min(factors, key=lambda factor: abs(math.log(factor)))
    return min(finished)[1]
