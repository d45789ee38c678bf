"""Run each technique at each global batch: a learning rate sweep, then all seeds at its best rate.

The rate is chosen on images held out of the training set, or by training loss without them, never
on the test set. Equal runs are trained once.
"""

import gc
import hashlib
import json
import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

from scaling.convergence.engine import Engine, Run, Study, run_of
from scaling.core.records.convergence import TRAINING
from scaling.launch import outcome
from scaling.registry.update_rule import Technique
from scaling.training.trainer import TrainingData

NOT_FINITE, AT_CHANCE = "not finite", "at chance"
Result = dict[str, Any]
Sweep = dict[float, Result]
"""Runs by their factor, a multiple of the rule's rate."""


@dataclass
class Experiment:
    """Trains all runs at one global batch; finished ones are kept in `folder`, by `identity`."""

    study: Study
    dataset: TrainingData
    global_batch: int
    device: torch.device
    folder: Path
    identity: list[Any]
    _engines: dict[bool, Engine] = field(default_factory=dict)

    def results(self, techniques: dict[str, Technique]) -> Iterator[tuple[str, Result]]:
        """Yield each technique's name and the results of its runs, for the record.

        After an out-of-memory error the remaining techniques are recorded as out of memory too.
        """
        left, images = list(techniques), self._images(self.study.held_out_images > 0)
        status = "infeasible"
        message = f"the global batch is larger than the {images} training images"
        try:
            if self.global_batch <= images:
                sweeps = {name: self._sweep(name, own) for name, own in techniques.items()}
                for name, sweep in sweeps.items():
                    result = self._result(name, techniques[name], sweep)
                    yield name, {"status": "ok", "message": None, "result": result}
                    left.remove(name)
        except Exception as error:
            lack = outcome.classify(error)
            if lack is None:
                raise
            status, message = lack, outcome.first_sentence(error)
        for name in left:
            yield name, {"status": status, "message": message, "result": None}

    def _images(self, held_out: bool) -> int:
        """Return the number of images to train on."""
        return len(self.dataset.data.train_labels) - held_out * self.study.held_out_images

    def _engine(self, held_out: bool) -> Engine:
        """Return the engine of these runs; memory has room for one at a time."""
        if held_out not in self._engines:
            self._engines.clear()
            gc.collect()
            data = self.dataset.judged_by(self.study.held_out_images) if held_out else self.dataset
            self._engines[held_out] = Engine(self.study, data, self.global_batch, self.device)
        return self._engines[held_out]

    def _sweep(self, name: str, technique: Technique) -> Sweep:
        """Train the first seed at each factor, and at more until the best is no end of the sweep.

        Factors are judged by held-out images if there are any, else by training loss.
        """
        study, runs = self.study, Sweep()
        held_out = study.held_out_images > 0
        wanted = list(technique.factors or study.factors)
        more = study.more_factors if len(wanted) > 1 else 0
        while wanted:
            factor = wanted.pop(0)
            runs[factor] = self.run(name, technique, factor, study.seeds[0], held_out)
            if not wanted and more and (following := next_factor(losses(runs))):
                wanted, more = [following], more - 1
        return dict(sorted(runs.items()))

    def _result(self, name: str, technique: Technique, sweep: Sweep) -> Result:
        """Train the seeds at the best factor of a sweep, and return the record's part.

        `at_edge` is whether that is the smallest or largest of several.
        """
        factors, chosen = list(sweep), choose(losses(sweep))
        seeds = self.study.seeds[0 if self.study.held_out_images else 1 :]
        runs = [*sweep.values(), *(self.run(name, technique, chosen, seed) for seed in seeds)]
        return {
            "gpus": self.study.gpus_of(self.global_batch),
            "chosen_factor": chosen,
            "at_edge": len(factors) > 1 and chosen in (factors[0], factors[-1]),
            "runs": [
                run | {"chosen": run["factor"] == chosen and not run["held_out"]} for run in runs
            ],
        }

    def run(
        self, name: str, technique: Technique, factor: float, seed: int, held_out: bool = False
    ) -> Result:
        """Return the record's part of a run, trained now or before, and print a line on it."""
        images = self._images(held_out)
        run = run_of(self.study, technique, self.global_batch, images, factor, seed, held_out)
        own = [self.global_batch, asdict(run) | {"rule": run.rule.model_dump()}]
        text = json.dumps([*self.identity, *own], sort_keys=True)
        path = self.folder / f"{hashlib.sha256(text.encode()).hexdigest()}.json"
        there = path.exists()
        if not there:
            TRAINING.write(path, self._train(run))
        found = TRAINING.read(path)
        print(
            f"{name}, global batch {self.global_batch}, factor {factor:g}, seed {seed}: "
            f"{found['epochs'][-1]} {found['diverged']} "
            + ("shared" if there else f"{found['seconds']:.2f} s"),
            flush=True,
        )
        return {"factor": factor, "learning_rate": max(run.rates), "held_out": held_out, **found}

    def _train(self, run: Run) -> Result:
        """Train one run to its end, or to the end of the epoch in which it diverges.

        `diverged` is "", "not finite" of a loss in an update or after it, or "at chance" of a last
        training loss no better than that of a constant prediction, ln(classes).
        """
        engine = self._engine(run.held_out)
        started = time.perf_counter()
        engine.start(run)
        rows: list[dict[str, Any]] = []
        updates, diverged = len(run.rates) // run.epochs, ""
        for number in range(1, run.epochs + 1):
            found = engine.train_epoch(run, number)
            if None in (found["train_loss"], found["test_loss"]):
                diverged = NOT_FINITE
            if run.held_out:
                judged = {f"validation_{of}": found[f"test_{of}"] for of in ("loss", "accuracy")}
                found |= {"test_loss": None, "test_accuracy": None, **judged}
            rows.append({"epoch": number, "updates": number * updates, **found})
            if diverged:
                break
        if not diverged and rows[-1]["train_loss"] >= math.log(engine.classes):
            diverged = AT_CHANCE
        return {
            "seed": run.seed,
            "updates": rows[-1]["updates"],
            "planned_epochs": run.epochs,
            "planned_updates": len(run.rates),
            "diverged": diverged,
            "seconds": round(time.perf_counter() - started, 3),
            "epochs": rows,
        }


def losses(runs: Sweep) -> dict[float, float | None]:
    """Return the loss that judges each factor's run: None if it was not finite."""
    return {
        factor: None
        if run["diverged"] == NOT_FINITE
        else run["epochs"][-1]["validation_loss" if run["held_out"] else "train_loss"]
        for factor, run in runs.items()
    }


def choose(found: Mapping[float, float | None]) -> float:
    """Return the factor of the lowest loss; that nearest to 1 if none is finite (all are None)."""
    finished = [(loss, factor) for factor, loss in found.items() if loss is not None]
    return min(finished or [(abs(math.log(factor)), factor) for factor in found])[1]


def next_factor(found: Mapping[float, float | None]) -> float | None:
    """Return the next factor of a sweep; None once the best one lies inside, to a factor of 2.

    If the best is an end, the next is twice as far out; else it is halfway (geometrically) to a
    neighbour more than a factor of 2 away.
    """
    tried, best = sorted(found), choose(found)
    if best == tried[0] or all(loss is None for loss in found.values()):
        return tried[0] / 2
    if best == tried[-1]:
        return best * 2
    place = tried.index(best)
    near = tried[place - 1], tried[place + 1]
    return next((math.sqrt(best * one) for one in near if abs(math.log2(one / best)) > 1.01), None)
