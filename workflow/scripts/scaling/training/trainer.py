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
    """Results of one epoch on one rank. `seconds` is host time until the device has finished.

    `loader_seconds` is the part of `seconds` in which the host waits for batches.
    """

    seconds: float
    loader_seconds: float
    iterations: int
    samples: int
    train_loss: float | None
    """Mean loss over the epoch; None if it is not finite."""
    train_accuracy: float


TrainIterations = Callable[..., EpochResult]
"""Function (count, untimed=0) that runs `untimed` steps, then `count` steps, on batches in memory.

It returns the result of the `count` steps. If `untimed` > 0, CUDA events measure `seconds`, so that
the device need not be idle before the timed steps."""


class Trainer:
    """Trains a model on one rank. Each engine has a subclass.

    The constructor of a subclass takes (spec, rank, model, dataset). It sets `model` (wrapped if
    there are several GPUs), `replica`, `step`, and `applied`: the recipe's options as this run
    applies them. A subclass defines `run_epoch`, `in_memory` and `_update`.
    """

    model: nn.Module
    replica: Wrapped
    step: Step
    applied: dict[str, Any]
    progress: StepProgress | None = None
    """Progress of captured steps; None if no steps are captured. A watchdog reads it, because NCCL
    cannot detect a stall in captured steps."""

    def __init__(self, spec: RunSpec, rank: Rank) -> None:
        self._spec, self._rank = spec, rank

    def run_epoch(self, epoch: int) -> EpochResult:
        """Train epoch number `epoch` (from 1), and return its result."""
        raise NotImplementedError

    def in_memory(self, limit: int) -> TrainIterations:
        """Return a function that trains on at most `limit` batches, which are in memory."""
        raise NotImplementedError

    def close(self) -> None:
        """Release resources, such as CUDA graphs, before the process group is destroyed."""

    def _update(self, batch: Any) -> int:
        """Launch one training step on `batch`, and return the number of its images."""
        raise NotImplementedError

    def _train(
        self, batches: Iterable[Any], epoch: int = 0, steps: int = 0, untimed: int = 0
    ) -> EpochResult:
        """Train on `batches`; return the result of all but the first `untimed` batches.

        If `untimed` > 0, the device's clock measures `seconds`. `self.progress`, if not None,
        records the epoch's number `epoch` and its number of steps, `steps`.
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
