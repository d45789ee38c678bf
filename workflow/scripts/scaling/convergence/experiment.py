"""Train each technique at each global batch: a sweep of the rate, the best rate's seeds, a record.

All runs of one process follow one another on one device.
"""

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
from scaling.convergence.engine import Engine, Epoch
from scaling.convergence.plan import Run, Session, Study, choose, reference_updates, run_of
from scaling.core import environment, files
from scaling.core.environment import Device
from scaling.core.records import convergence_path
from scaling.launch import gpu_lease, outcome
from scaling.training.trainer import TrainingData, finite

CURVE_POINTS = 200
"""The most points of a loss curve in a record."""
NOT_FINITE, AT_CHANCE = "not finite", "at chance"


def run(session: Session) -> None:
    """Train all techniques and write each record as soon as it is complete.

    Reads the images before leasing a GPU, so that a queued job can start at once.
    """
    torch.set_num_threads(session.cpu_threads)
    techniques, described = session.techniques, files.read_json(session.manifest)
    dataset = TrainingData.read(session.dataset, session.manifest, session.study.train_images)
    facts = {key: described[key] for key in ("source", "checksum", "train_images", "test_images")}
    kind = environment.resolve_device(session.device)
    refuse_bf16(kind, {"convergence": asdict(session.study)})
    precision: Any = environment.applied_precision(session.study.precision, kind)
    study = replace(session.study, precision=precision)
    with _device(kind) as (device, host_info):
        for global_batch in session.global_batches:
            paths = {
                name: convergence_path(session.records, name, global_batch) for name in techniques
            }
            kept = {name for name, path in paths.items() if session.keep and path.exists()}
            wanted = {name: each for name, each in techniques.items() if name not in kept}
            for name, found in _results(study, wanted, global_batch, dataset, device):
                document = {
                    "remedy": name,
                    "global_batch": global_batch,
                    "options": techniques[name].model_dump(),
                    "training": asdict(study),
                    "dataset": facts,
                    **found,
                    "environment": host_info | {"ended": environment.now()},
                }
                files.write_json(paths[name], document)


@contextmanager
def _device(kind: Device) -> Iterator[tuple[torch.device, dict[str, Any]]]:
    """Yield the device, leased until the block ends, and the record's `environment`."""
    host_info = environment.describe(kind)
    if kind == "cpu":
        yield torch.device("cpu"), host_info
        return
    with gpu_lease.lease(1, environment.visible_gpus()) as names:
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
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each technique's name and the part of its record that the runs decide.

    Where the device has no room for one technique it has none for the others. Those with precise
    batch norms go first, as their trainings serve those without.
    """
    status, message = "ok", None
    if global_batch > (there := len(dataset.data.train_labels)):
        status = "infeasible"
        message = f"the global batch is larger than the {there} training images"
    experiment: Experiment | None = None
    for name in sorted(techniques, key=lambda name: not techniques[name].precise_batch_norm):
        result = None
        if status == "ok":
            try:
                if experiment is None:
                    experiment = Experiment(Engine(study, dataset, global_batch, device))
                label = f"{name}, global batch {global_batch}"
                result = experiment.result(techniques[name], label)
            except Exception as error:
                lack = outcome.classify(error)
                if lack is None:
                    raise
                status, message = lack, outcome.first_sentence(error)
        yield name, {"status": status, "message": message, "result": result}


class Experiment:
    """Trains all runs at one global batch; a run that two techniques share is trained once.

    With and without `precise_batch_norm` it is the same training, if the first to train it asks
    for precise statistics.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine, self._study = engine, engine.study
        sizes = engine.study.batch_sizes(engine.train_images, engine.global_batch)
        self._updates_per_epoch = len(sizes)
        self._done: dict[Run, tuple[dict[str, Any], list[Epoch]]] = {}

    def result(self, technique: Technique, label: str) -> dict[str, Any]:
        """Train the runs of `technique`, printing a line for each that begins with `label`.

        Returns the record's `result`: `runs`, each as `_train` describes it, with its `epochs`,
        `factor`, `learning_rate` and `chosen`. The sweep has the first seed. `at_edge`: the chosen
        factor is the least or greatest of several.
        """
        study = self._study
        factors = sorted(technique.factors or study.factors)
        sweep = [self._run(technique, factor, study.seeds[0], label) for factor in factors]
        losses = [None if run["diverged"] else run["epochs"][-1]["train_loss"] for run in sweep]
        chosen = choose(factors, losses)
        seeds = [self._run(technique, chosen, seed, label) for seed in study.seeds[1:]]
        scale = self._engine.global_batch / study.reference_batch
        return {
            "gpus": study.gpus_of(self._engine.global_batch),
            "rule_rate": technique.rate(study.learning_rate, scale),
            "chosen_factor": chosen,
            "at_edge": len(factors) > 1 and chosen in (factors[0], factors[-1]),
            "updates_per_epoch": self._updates_per_epoch,
            "reference_updates": reference_updates(study, self._engine.train_images),
            "runs": [{**run, "chosen": run["factor"] == chosen} for run in [*sweep, *seeds]],
        }

    def _run(self, technique: Technique, factor: float, seed: int, label: str) -> dict[str, Any]:
        images, global_batch = self._engine.train_images, self._engine.global_batch
        run = run_of(self._study, technique, global_batch, images, factor, seed)
        trained_alike = [run, run.with_options(precise_batch_norm=True)]
        trained = next((one for one in trained_alike if one in self._done), None)
        if trained is None:
            self._done[run] = self._train(run)
        found, epochs = self._done[trained or run]
        rows = [
            {"epoch": number, "updates": number * self._updates_per_epoch}
            | _figures(epoch, run.technique.precise_batch_norm)
            for number, epoch in enumerate(epochs, start=1)
        ]
        last, spent = rows[-1], "shared" if trained else f"{found['seconds']:.2f} s"
        print(
            f"{label}, factor {factor:g} rate {max(run.rates):g} seed {seed}: "
            f"loss {last['train_loss']} train {last['train_accuracy']} "
            f"test {last['test_accuracy']} {found['diverged']} {spent}",
            flush=True,
        )
        return {"factor": factor, "learning_rate": max(run.rates), **found, "epochs": rows}

    def _train(self, run: Run) -> tuple[dict[str, Any], list[Epoch]]:
        """Train one run to its end, or to the end of the epoch in which its loss diverges.

        Returns its epochs, and for the record `updates`; `planned_epochs` and `planned_updates`,
        which a run that diverged may not have reached; `losses` (means over `updates_per_point`
        updates, of six digits each; null where not finite); `diverged`, "" or why: a loss that was
        "not finite" in an update, or on the test set after the last one, which ends the run after
        that epoch, and whose number from 1 is `diverged_update`; or "at chance": the training loss
        of the last epoch is no better than the same answer for every image gives, ln(classes).
        """
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
        }, epochs


def _figures(epoch: Epoch, precise: bool) -> dict[str, Any]:
    """Return the figures of an epoch; those of weights that are not finite are null."""
    test = epoch.precise if precise and epoch.precise else epoch.test
    sound = math.isfinite(epoch.train_loss) and math.isfinite(test.loss)
    return {
        "train_loss": finite(epoch.train_loss),
        "train_accuracy": epoch.train_accuracy if sound else None,
        "test_loss": finite(test.loss),
        "test_accuracy": test.accuracy if sound else None,
    }
