"""The base of engines: a trainer that trains one epoch at a time, and times it."""

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
    """One epoch of one rank; seconds are the host's, with the device idle at both ends."""

    seconds: float
    loader_seconds: float
    iterations: int
    samples: int
    train_loss: float | None
    """null when it was not finite."""
    train_accuracy: float


TrainIterations = Callable[..., EpochResult]
"""Trains on a number of in-memory batches, so that loading has no effect on times.

After `untimed` steps (by default 0) its seconds, on the device's clock, have no synchronization.
"""


class Trainer:
    """A model in training on one rank: the base of an engine's class.

    That is constructed with (spec, rank, model, dataset), sets `model` (wrapped for several GPUs),
    `replica` (the same with its exchange of gradients), `step` and `applied` (the recipe's options
    in this cell), and defines `run_epoch`, `in_memory` and, for their batches, `_update`.
    """

    model: nn.Module
    replica: Wrapped
    step: Step
    applied: dict[str, Any]
    progress: StepProgress | None = None
    """The progress of captured steps, whose waits NCCL's watchdog does not see."""

    def __init__(self, spec: RunSpec, rank: Rank) -> None:
        self._spec, self._rank = spec, rank

    def run_epoch(self, epoch: int) -> EpochResult:
        """Return the result of training epoch number `epoch` (from 1)."""
        raise NotImplementedError

    def in_memory(self, limit: int) -> TrainIterations:
        """Return a function that trains on some of at most `limit` batches, loaded now."""
        raise NotImplementedError

    def close(self) -> None:
        """Release what would keep the process group from being destroyed."""

    def _update(self, batch: Any) -> int:
        """Return the number of images of a batch, whose update is launched."""
        raise NotImplementedError

    def _train(
        self, batches: Iterable[Any], epoch: int = 0, steps: int = 0, untimed: int = 0
    ) -> EpochResult:
        """Return the result of training on batches; `progress` gets an epoch's `steps`.

        After `untimed` batches, which are not counted, the seconds are those from step to step.
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
    """Return the value, or None if JSON cannot represent it."""
    return value if np.isfinite(value) else None
