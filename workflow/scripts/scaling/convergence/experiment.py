"""Run each technique at each global batch: a learning rate sweep, then all seeds at its best rate.

All runs of a process use the same device, one after another.
"""

import gc
import math
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import Any

import torch

from scaling.config.devices import refuse_bf16
from scaling.config.technique import Technique
from scaling.convergence.cache import Cache
from scaling.convergence.engine import Engine, Epoch
from scaling.convergence.plan import (
    Run,
    Session,
    Study,
    choose,
    next_factor,
    reference_updates,
    run_of,
)
from scaling.core import environment
from scaling.core.environment import Device
from scaling.core.records.convergence import CONVERGENCE, convergence_path
from scaling.core.records.dataset import DATASET
from scaling.launch import lease, outcome
from scaling.training.trainer import TrainingData, finite

CURVE_POINTS = 200
"""Maximum number of points of a loss curve in a record."""
NOT_FINITE, AT_CHANCE = "not finite", "at chance"


def run(session: Session) -> None:
    """Train all techniques and write each record as soon as it is complete.

    Reads the images before it leases a GPU, so that a queued job can start at once.
    """
    torch.set_num_threads(session.cpu_threads)
    techniques, described = session.techniques, DATASET.read(session.manifest)
    dataset = TrainingData.read(session.dataset, session.manifest, session.study.train_images)
    facts = {key: described[key] for key in ("source", "checksum", "train_images", "test_images")}
    kind = environment.resolve_device(session.device)
    refuse_bf16(kind, {"convergence": asdict(session.study)})
    precision: Any = environment.applied_precision(session.study.precision, kind)
    study = replace(session.study, precision=precision)
    with _device(kind) as (device, host_info):
        for global_batch in session.global_batches:
            cache = Cache(session.cache, study, global_batch, facts, device)
            for name, found in _results(study, techniques, global_batch, dataset, device, cache):
                document: Any = {
                    "remedy": name,
                    "global_batch": global_batch,
                    "options": techniques[name].model_dump(),
                    "training": asdict(study),
                    "dataset": facts,
                    **found,
                    "environment": host_info | {"ended": environment.now()},
                }
                path = convergence_path(session.records, name, global_batch)
                CONVERGENCE.write(path, document)
                host_info["started"] = environment.now()


@contextmanager
def _device(kind: Device) -> Iterator[tuple[torch.device, dict[str, Any]]]:
    """Yield the device, leased until the block ends, and the record's `environment`."""
    host_info = environment.describe(kind)
    if kind == "cpu":
        yield torch.device("cpu"), host_info
        return
    with lease.gpus(1, environment.visible_gpus()) as names:
        os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
        os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(names)
        versions = {"cuda": torch.version.cuda}
        yield torch.device("cuda", 0), host_info | environment.leased_gpus(names) | versions


def _results(
    study: Study,
    techniques: dict[str, Technique],
    global_batch: int,
    dataset: TrainingData,
    device: torch.device,
    cache: Cache,
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each technique's name and the results of its runs, for the record.

    Sweeps with held-out images come first: memory has room for one engine at a time. After an
    out-of-memory error the remaining techniques are recorded as out of memory too.
    """
    status, message, done = "ok", None, set[str]()
    there = len(dataset.data.train_labels) - study.held_out_images
    if global_batch > there:
        status = "infeasible"
        message = f"the global batch is larger than the {there} training images"
    parts = [dataset]
    if study.held_out_images:
        parts.insert(0, dataset.judged_by(study.held_out_images))
    sweeps: dict[str, dict[float, dict[str, Any]]] = {}
    try:
        for data in parts if status == "ok" else []:
            experiment = Experiment(Engine(study, data, global_batch, device), cache)
            for name, technique in techniques.items():
                label = f"{name}, global batch {global_batch}"
                if data is parts[0]:
                    sweeps[name] = experiment.sweep(technique, label, data is not dataset)
                if data is dataset:
                    result = experiment.result(technique, sweeps[name], label)
                    yield name, {"status": status, "message": message, "result": result}
                    done.add(name)
            del experiment
            gc.collect()
    except Exception as error:
        lack = outcome.classify(error)
        if lack is None:
            raise
        status, message = lack, outcome.first_sentence(error)
    for name in techniques.keys() - done:
        yield name, {"status": status, "message": message, "result": None}


class Experiment:
    """Trains all runs at one global batch, with one engine's images."""

    def __init__(self, engine: Engine, cache: Cache) -> None:
        self._engine, self._study, self._cache = engine, engine.study, cache
        sizes = engine.study.batch_sizes(engine.train_images, engine.global_batch)
        self._updates_per_epoch = len(sizes)

    def sweep(
        self, technique: Technique, label: str, held_out: bool
    ) -> dict[float, dict[str, Any]]:
        """Train the first seed at each factor, and at more until the best is no end of the sweep.

        Factors are judged by the `held_out` images if there are any (the engine's test images),
        else by training loss. Prints a line for each run, as `result` does.
        """
        study = self._study
        runs: dict[float, dict[str, Any]] = {}
        wanted = list(technique.factors or study.factors)
        more = study.more_factors if len(wanted) > 1 else 0
        while wanted:
            factor = wanted.pop(0)
            runs[factor] = self._run(technique, factor, study.seeds[0], label, held_out=held_out)
            if not wanted and more and (following := next_factor(losses(runs))):
                wanted, more = [following], more - 1
        return dict(sorted(runs.items()))

    def result(
        self, technique: Technique, sweep: dict[float, dict[str, Any]], label: str
    ) -> dict[str, Any]:
        """Train all runs of `technique` that follow from its sweep.

        Returns the record's `result`: `runs`, each as in `_train`, with `epochs`, `factor`,
        `learning_rate`, `held_out` and `chosen`; `longer`, the same for other lengths; `at_edge`,
        whether the chosen factor is the smallest or largest of several.
        """
        study, factors = self._study, list(sweep)
        chosen = choose(losses(sweep))
        swept = [{**run, "chosen": False} for run in sweep.values()]
        if not study.held_out_images:
            swept = [{**run, "chosen": run["factor"] == chosen} for run in swept]
        left = study.seeds if study.held_out_images else study.seeds[1:]
        seeds = [self._run(technique, chosen, seed, label) for seed in left]
        longer = [
            self._run(technique, chosen, seed, label, epochs=epochs)
            for epochs in technique.lengths or []
            for seed in study.seeds
        ]
        scale = self._engine.global_batch / study.reference_batch
        return {
            "gpus": study.gpus_of(self._engine.global_batch),
            "rule_rate": technique.rate(study.learning_rate, scale),
            "chosen_factor": chosen,
            "at_edge": len(factors) > 1 and chosen in (factors[0], factors[-1]),
            "updates_per_epoch": self._updates_per_epoch,
            "reference_updates": reference_updates(study, self._engine.train_images),
            "runs": [*swept, *({**run, "chosen": True} for run in seeds)],
            "longer": [{**run, "chosen": True} for run in longer],
        }

    def _run(
        self,
        technique: Technique,
        factor: float,
        seed: int,
        label: str,
        *,
        epochs: int | None = None,
        held_out: bool = False,
    ) -> dict[str, Any]:
        run = run_of(
            *(self._study, technique, self._engine.global_batch, self._engine.train_images),
            *(factor, seed),
            epochs=epochs,
            held_out=held_out,
        )
        found, there = self._cache.result(run, self._train)
        precise = technique.precise_batch_norm or self._study.precise_batch_norm
        rows = [
            _recorded(row, "precise" if precise else "running", held_out) for row in found["epochs"]
        ]
        last, spent = rows[-1], "shared" if there else f"{found['seconds']:.2f} s"
        figures = ", ".join(f"{key} {value}" for key, value in last.items() if "_" in key)
        print(
            f"{label}, factor {factor:g} rate {max(run.rates):g} seed {seed} epochs {run.epochs}: "
            f"{figures} {found['diverged']} {spent}",
            flush=True,
        )
        of_run = {"factor": factor, "learning_rate": max(run.rates), "held_out": held_out}
        return {**of_run, **found, "epochs": rows}

    def _train(self, run: Run) -> dict[str, Any]:
        """Train one run to its end, or to the end of the epoch in which it diverges.

        Returns its `epochs`, with metrics for both statistics of the batch norms; `updates`;
        `planned_epochs` and `planned_updates`, which a diverged run may not have reached; `losses`
        (means over `updates_per_point` updates, six digits, null if not finite); and `diverged`, ""
        or the reason. "not finite" is a loss in an update, or on the test set after the last one;
        the run ends after that epoch, and `diverged_update` is the update's number from 1. "at
        chance" is a training loss in the last epoch no better than that of a constant prediction,
        ln(classes).
        """
        started = time.perf_counter()
        self._engine.start(run)
        rows: list[dict[str, Any]] = []
        losses: list[float] = []
        diverged, diverged_update = "", None
        for number in range(1, run.epochs + 1):
            epoch = self._engine.train_epoch(run, number)
            rows.append(_figures(number, number * self._updates_per_epoch, epoch))
            losses += epoch.losses
            bad = [index for index, loss in enumerate(losses, start=1) if not math.isfinite(loss)]
            if bad or not math.isfinite(epoch.running.loss):
                diverged, diverged_update = NOT_FINITE, (bad or [len(losses)])[0]
                break
        if not diverged and epoch.train_loss >= math.log(self._engine.classes):
            diverged = AT_CHANCE
        stretch = math.ceil(len(losses) / CURVE_POINTS)
        parts = [losses[start : start + stretch] for start in range(0, len(losses), stretch)]
        means = [sum(part) / len(part) for part in parts]
        return {
            "seed": run.seed,
            "updates": len(losses),
            "planned_epochs": run.epochs,
            "planned_updates": run.epochs * self._updates_per_epoch,
            "diverged": diverged,
            "diverged_update": diverged_update,
            "updates_per_point": stretch,
            "losses": [float(f"{mean:.6g}") if math.isfinite(mean) else None for mean in means],
            "seconds": round(time.perf_counter() - started, 3),
            "epochs": rows,
        }


def losses(runs: dict[float, dict[str, Any]]) -> dict[float, float | None]:
    """Return the loss that judges each factor's run: None if it was not finite."""
    return {
        factor: None
        if run["diverged"] == NOT_FINITE
        else run["epochs"][-1]["validation_loss" if run["held_out"] else "train_loss"]
        for factor, run in runs.items()
    }


def _figures(number: int, updates: int, epoch: Epoch) -> dict[str, Any]:
    """Return the metrics of an epoch; those of non-finite weights are null."""
    row: dict[str, Any] = {"epoch": number, "updates": updates}
    sound = math.isfinite(epoch.train_loss) and math.isfinite(epoch.running.loss)
    row["train_loss"] = finite(epoch.train_loss)
    row["train_accuracy"] = epoch.train_accuracy if sound else None
    for kind, test in (("running", epoch.running), ("precise", epoch.precise)):
        row[f"{kind}_test_loss"] = finite(test.loss)
        row[f"{kind}_test_accuracy"] = test.accuracy if sound else None
    noise = epoch.noise
    return row | ({"noise_scale": [finite(value) for value in noise]} if noise else {})


def _recorded(row: dict[str, Any], kind: str, held_out: bool) -> dict[str, Any]:
    """Return an epoch's row with one kind of statistics, as validation metrics if held out."""
    split = "validation" if held_out else "test"
    kept = {key: value for key, value in row.items() if not (held_out and "_test_" in key)}
    own = {f"{split}_{what}": row[f"{kind}_test_{what}"] for what in ("loss", "accuracy")}
    return kept | {"test_loss": None, "test_accuracy": None} | own
