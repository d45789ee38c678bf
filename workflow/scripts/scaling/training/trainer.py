"""Base class of the trainers of all engines. A trainer trains and times one epoch at a time."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from torch import nn

from scaling.launch.ranks import Rank
from scaling.launch.run_spec import RunSpec
from scaling.launch.stall import StepProgress
from scaling.training.step import Step
from scaling.training.strategies import Wrapped


@dataclass(frozen=True)
class EpochResult:
    """Results of one epoch on one rank. Seconds are host time, from idle device to idle device."""

    seconds: float
    loader_seconds: float
    iterations: int
    samples: int
    train_loss: float | None
    """Mean loss over the epoch; None if it is not finite."""
    train_accuracy: float


TrainIterations = Callable[..., EpochResult]
"""Function (count, untimed=0) that trains on `count` batches in memory after `untimed` steps.

If `untimed` > 0, seconds are measured by the device's clock, without synchronization.
"""


class Trainer:
    """Trains a model on one rank: the base class of an engine's trainer.

    A subclass takes (spec, rank, model, dataset), and defines `run_epoch`, `in_memory` and
    `_update`. It sets `model` (wrapped for several GPUs), `replica` (its `Wrapped`), `step`, and
    `applied` (the recipe's options as applied in this run).
    """

    model: nn.Module
    replica: Wrapped
    step: Step
    applied: dict[str, Any]
    progress: StepProgress | None = None
    """Progress of captured steps, to detect stalls that NCCL does not see; else None."""

    def __init__(self, spec: RunSpec, rank: Rank) -> None:
        self._spec, self._rank = spec, rank

    def run_epoch(self, epoch: int) -> EpochResult:
        """Train one epoch (`epoch` counts from 1), and return its result."""
        raise NotImplementedError

    def in_memory(self, limit: int) -> TrainIterations:
        """Load at most `limit` batches, and return a function that trains on them."""
        raise NotImplementedError

    def close(self) -> None:
        """Release what keeps the process group from being destroyed."""

    def _update(self, batch: Any) -> int:
        """Launch the update by one batch, and return its number of images."""
        raise NotImplementedError

    def _train(
        self, batches: Iterable[Any], epoch: int = 0, steps: int = 0, untimed: int = 0
    ) -> EpochResult:
        """Train on `batches` and return the result, without the first `untimed` batches.

        If `untimed` > 0, the device's clock is used. `progress` gets `epoch` and its number of
        `steps`.
        """
        self.model.train()
        self.step.reset()
        self._rank.barrier()
        self._rank.synchronize(self._spec.cell.gpus)
        if self.progress:
            self.progress.start(epoch, steps)
        iterations, samples, waited = 0, 0, 0.0
        started = ready = perf_counter()
        for iterations, batch in enumerate(batches, start=1 - untimed):
            if iterations == 1 and untimed:
                self.step.reset()
                samples, elapsed = 0, self._rank.stopwatch()
            waited += perf_counter() - ready
            samples += self._update(batch)
            if self.progress:
                self.progress.launch(max(0, iterations))
            ready = perf_counter()
        waited += perf_counter() - ready
        seconds = elapsed() if untimed else 0.0
        self._rank.synchronize(self._spec.cell.gpus)
        seconds = seconds or perf_counter() - started
        if self.progress:
            self.progress.end()
        loss, correct = self.step.loss_sum.item(), self.step.correct.item()
        means = finite(loss / samples), correct / samples
        return EpochResult(seconds, waited, iterations, samples, *means)


def finite(value: float) -> float | None:
    """Return the value, or None if it is infinite or NaN, which JSON cannot represent."""
    return value if np.isfinite(value) else None
