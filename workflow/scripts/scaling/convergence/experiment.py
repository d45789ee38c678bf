"""A remedy at a global batch: its sweep, the choice of a rate, its seeds; and the record of it."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from scaling.convergence.engine import Engine, Epoch
from scaling.convergence.plan import Run, Study, choose, reference_updates, run_of
from scaling.convergence.remedy import Remedy, batch_sizes
from scaling.training.trainer import finite

CURVE_POINTS = 200
"""The most points of a loss curve in a record; a longer one has means over equal stretches."""
NOT_FINITE, AT_CHANCE = "not finite", "at chance"


@dataclass(frozen=True)
class Training:
    """A run that is over: its epochs, and why and in which update from 1 it diverged, if it did."""

    epochs: list[Epoch]
    diverged: str
    diverged_update: int | None
    seconds: float


class Experiment:
    """All runs at one global batch; a run that two remedies share is trained once.

    With and without `precise_batch_norm` it is the same training: whoever comes first should ask
    for it.
    """

    def __init__(self, engine: Engine, study: Study) -> None:
        self._engine, self._study = engine, study
        self._global_batch, self._train_images = engine.global_batch, engine.train_images
        self._chance = math.log(engine.classes)
        self._updates_per_epoch = len(
            batch_sizes(self._train_images, self._global_batch, study.gpus_of(self._global_batch))
        )
        self._done: dict[Run, Training] = {}

    def record(self, remedy: Remedy, report: Callable[[str], None]) -> dict[str, Any]:
        """What the runs of `remedy` gave; `report` is told of each.

        The sweep has the first seed. `runs`, each with `factor`, `learning_rate` and `chosen`; see
        `_document`. `at_edge`: the chosen factor is the least or greatest of several.
        """
        study = self._study
        factors = sorted(remedy.factors or study.factors)
        sweep = [self._run(remedy, factor, study.seeds[0], report) for factor in factors]
        losses = [None if run["diverged"] else run["epochs"][-1]["train_loss"] for run in sweep]
        chosen = choose(factors, losses)
        seeds = [self._run(remedy, chosen, seed, report) for seed in study.seeds[1:]]
        return {
            "gpus": study.gpus_of(self._global_batch),
            "rule_rate": remedy.rate(
                study.learning_rate, self._global_batch / study.reference_batch
            ),
            "chosen_factor": chosen,
            "at_edge": len(factors) > 1 and chosen in (factors[0], factors[-1]),
            "updates_per_epoch": self._updates_per_epoch,
            "reference_updates": reference_updates(study, self._train_images),
            "runs": [{**run, "chosen": run["factor"] == chosen} for run in [*sweep, *seeds]],
        }

    def _run(
        self, remedy: Remedy, factor: float, seed: int, report: Callable[[str], None]
    ) -> dict[str, Any]:
        run = run_of(self._study, remedy, self._global_batch, self._train_images, factor, seed)
        ways = [run, replace(run, precise_batch_norm=True)]
        found = next((self._done[way] for way in ways if way in self._done), None)
        shared = found is not None
        if found is None:
            found = self._done[run] = self._train(run)
        document = self._document(run, found)
        last = document["epochs"][-1]
        report(
            f"factor {factor:g} rate {max(run.rates):g} seed {seed}: "
            f"loss {last['train_loss']} train {last['train_accuracy']} "
            f"test {last['test_accuracy']} {found.diverged} "
            f"{'shared' if shared else format(found.seconds, '.2f') + ' s'}"
        )
        return {"factor": factor, "learning_rate": max(run.rates), **document}

    def _train(self, run: Run) -> Training:
        """Train one run: to its end, or of the epoch in which a loss no longer is finite."""
        started = time.perf_counter()
        self._engine.start(run)
        epochs: list[Epoch] = []
        losses: list[float] = []
        diverged, diverged_update = "", None
        for number in range(1, run.epochs + 1):
            epoch = self._engine.train_epoch(run, number)
            epochs.append(epoch)
            losses += epoch.losses
            bad = [index for index, loss in enumerate(losses, start=1) if not math.isfinite(loss)]
            if bad or not math.isfinite(epoch.test.loss):
                diverged, diverged_update = NOT_FINITE, (bad or [len(losses)])[0]
                break
        if not diverged and epoch.train_loss >= self._chance:
            diverged = AT_CHANCE
        return Training(epochs, diverged, diverged_update, time.perf_counter() - started)

    def _document(self, run: Run, found: Training) -> dict[str, Any]:
        """What the record says of a run.

        `epochs` and `losses` (of updates, see `CURVE_POINTS`; null where not finite), `updates`;
        `planned_epochs` and `planned_updates`, which a run that diverged may not have reached;
        `diverged` is "" or why: a loss that was "not finite" in an update, or on the test set after
        the last one, which ends the run after that epoch, and whose number from 1 is
        `diverged_update`; or "at chance": the training loss of the last epoch is no better than the
        same answer for every image gives, ln(classes).
        """
        losses = [loss for epoch in found.epochs for loss in epoch.losses]
        return {
            "seed": run.seed,
            "updates": len(losses),
            "planned_epochs": run.epochs,
            "planned_updates": run.epochs * self._updates_per_epoch,
            "diverged": found.diverged,
            "diverged_update": found.diverged_update,
            "epochs": [
                _row(number, number * self._updates_per_epoch, epoch, run.precise_batch_norm)
                for number, epoch in enumerate(found.epochs, start=1)
            ],
            **_curve(losses),
            "seconds": round(found.seconds, 3),
        }


def _row(number: int, updates: int, epoch: Epoch, precise: bool) -> dict[str, Any]:
    """The figures of an epoch, null where they are those of weights that are not finite."""
    test = epoch.precise if precise and epoch.precise else epoch.test
    sound = math.isfinite(epoch.train_loss) and math.isfinite(test.loss)
    return {
        "epoch": number,
        "updates": updates,
        "train_loss": finite(epoch.train_loss),
        "train_accuracy": epoch.train_accuracy if sound else None,
        "test_loss": finite(test.loss),
        "test_accuracy": test.accuracy if sound else None,
    }


def _curve(losses: list[float]) -> dict[str, Any]:
    """`losses` with six digits, each the mean over `updates_per_point` updates."""
    stretch = math.ceil(len(losses) / CURVE_POINTS)
    means = [
        sum(part) / len(part)
        for part in (losses[start : start + stretch] for start in range(0, len(losses), stretch))
    ]
    return {
        "updates_per_point": stretch,
        "losses": [float(f"{mean:.6g}") if math.isfinite(mean) else None for mean in means],
    }
