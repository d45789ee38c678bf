"""Which runs a technique needs at a global batch: a sweep of the rate, then the best rate's seeds.

The rate is chosen by the training loss of the last epoch, never by the test set. Needs no torch.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from scaling.config.technique import Technique, gpus_of
from scaling.core.environment import Device
from scaling.core.training_options import TrainingOptions


@dataclass(frozen=True)
class Study(TrainingOptions):
    """Options that all runs have in common; the learning rate is that of the reference batch."""

    reference_batch: int = 128
    """Batch on one GPU that every other is compared with, and at which every scaling rule gives the
    learning rate."""
    gpus: int = 4
    """How many GPUs share a global batch of at least so many reference batches; smaller ones are on
    one."""
    epochs: int = 5
    """Epochs of every run."""
    max_epochs: int = 5
    """The most epochs of a run at equal updates."""
    seeds: tuple[int, ...] = (0, 1, 2)
    """Seeds of the chosen rate's runs; the sweep has the first."""
    factors: tuple[float, ...] = (1.0,)
    """Multiples of the rule's rate."""
    precision: Literal["float32", "tf32", "bf16"] = "float32"
    """Precision of convolutions and matrix products."""
    train_images: int | None = None
    """How many images are trained on, the first ones (default: all)."""

    def gpus_of(self, global_batch: int) -> int:
        """Return over how many GPUs a global batch is spread."""
        return gpus_of(global_batch, self.reference_batch, self.gpus)

    def batch_sizes(self, train_images: int, global_batch: int) -> list[int]:
        """Return the images per GPU of each update of an epoch; the last may have fewer.

        They are those of DistributedSampler and DataLoader.
        """
        gpus = self.gpus_of(global_batch)
        full, rest = divmod(math.ceil(train_images / gpus), global_batch // gpus)
        return [global_batch // gpus] * full + ([rest] if rest else [])


@dataclass(frozen=True)
class Session:
    """Options of one process, which trains techniques at global batches one after another."""

    study: Study
    remedies: dict[str, Any]
    """Options of each technique, by name."""
    global_batches: tuple[int, ...]
    """Images of one update."""
    dataset: Path
    """images.npz, made by dataset_prepare.py."""
    manifest: Path
    """Its manifest.json."""
    records: Path
    """Folder of the records."""
    device: Device = "auto"
    cpu_threads: int = 1
    """Threads of the process."""
    keep: bool = False
    """Leave existing records alone."""

    @property
    def techniques(self) -> dict[str, Technique]:
        """The techniques by name; UserError for an option that there is not."""
        return {
            name: Technique.of(options, f"remedy {name}") for name, options in self.remedies.items()
        }


@dataclass(frozen=True)
class Run:
    """All that decides the outcome of one run at a global batch; equal runs are the same run.

    `technique` is without the options that `epochs` and `rates` have settled. With precise batch
    norms it is evaluated in two ways, and trains as it would without.
    """

    seed: int
    epochs: int
    rates: tuple[float, ...]
    technique: Technique

    def with_options(self, **options: Any) -> "Run":
        """Change options of the technique."""
        return replace(self, technique=self.technique.model_copy(update=options))


SETTLED = ("scaling", "warmup_epochs", "decay", "equal_updates", "factors")


def run_of(
    study: Study,
    technique: Technique,
    global_batch: int,
    train_images: int,
    factor: float,
    seed: int,
) -> Run:
    """Make the run of `technique` at `factor` times the rate of its rule."""
    epochs = epochs_of(study, technique, global_batch, train_images)
    updates = len(study.batch_sizes(train_images, global_batch))
    peak = factor * technique.rate(study.learning_rate, global_batch / study.reference_batch)
    found = tuple(rates(technique, study.learning_rate, peak, updates, epochs))
    plain = {name: getattr(Technique(), name) for name in SETTLED}
    return Run(seed, epochs, found, technique.model_copy(update=plain))


def epochs_of(study: Study, technique: Technique, global_batch: int, train_images: int) -> int:
    """Return the study's epochs, or those that give as many updates as the reference batch."""
    if not technique.equal_updates:
        return study.epochs
    updates = len(study.batch_sizes(train_images, global_batch))
    return min(
        max(study.epochs, math.ceil(reference_updates(study, train_images) / updates)),
        max(study.max_epochs, study.epochs),
    )


def reference_updates(study: Study, train_images: int) -> int:
    """Count the updates of the reference batch on one GPU in the study's epochs."""
    return study.epochs * len(study.batch_sizes(train_images, study.reference_batch))


def rates(
    technique: Technique, base: float, peak: float, updates_per_epoch: int, epochs: int
) -> list[float]:
    """Return the learning rate of each update; after the warm-up it starts from `peak`.

    A peak that is not above the base rate has no warm-up: there is nowhere to rise to.
    """
    updates = updates_per_epoch * epochs
    warmup = min(updates, round(technique.warmup_epochs * updates_per_epoch)) if peak > base else 0
    rising = [base + (peak - base) * update / warmup for update in range(warmup)]
    left = updates - warmup
    # The share of the peak that is left after so much of the updates, from 0 to 1.
    remaining: Callable[[float], float] = {
        "none": lambda progress: 1.0,
        "linear": lambda progress: 1 - progress,
        "cosine": lambda progress: (1 + math.cos(math.pi * progress)) / 2,
    }[technique.decay]
    return rising + [peak * remaining(update / left) for update in range(left)]


def choose(factors: Sequence[float], losses: Sequence[float | None]) -> float:
    """Return the factor whose run has the lowest training loss in its last epoch.

    `losses` are None for runs that diverged. When all did, it is the one nearest to the rule's.
    """
    finished = [
        (loss, factor) for factor, loss in zip(factors, losses, strict=True) if loss is not None
    ]
    if not finished:
        return min(factors, key=lambda factor: abs(math.log(factor)))
    return min(finished)[1]
