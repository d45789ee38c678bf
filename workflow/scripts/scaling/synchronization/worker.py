"""Run the synchronization experiments: one process, which joins the others and reports."""

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from scaling.core import environment
from scaling.launch import measure
from scaling.launch.rank_log import RankLog
from scaling.launch.ranks import Rank
from scaling.models.resnet import ResNet18
from scaling.synchronization import orders, steps, training
from scaling.synchronization.plan import Plan
from scaling.training.trainer import TrainingData


def run(plan: Plan, log_folder: Path) -> None:
    """Run the experiments that take a process for each GPU; rank 0 reports to `log_folder`.

    Reports `model` with parameter_bytes (K) and buffer_bytes, and the rows of `permutations`,
    `steps`, `training` and `buffer_seconds`.
    """
    with _joined(plan, log_folder) as (rank, log):
        material = TrainingData.read(plan.dataset, plan.manifest, plan.images)
        model = ResNet18(plan.model_width, len(material.data.classes))
        sizes = {
            "parameter_bytes": sum(p.numel() * p.itemsize for p in model.parameters()),
            "buffer_bytes": sum(b.numel() * b.itemsize for b in model.buffers()),
        }
        _report(log, rank, "model", sizes)
        for drawn in _permutations(plan) if rank.is_first else []:
            _report(log, rank, "permutations", drawn)
        for one in plan.trainings:
            spec = plan.spec_of("course", "ddp", one.seed)
            _report(log, rank, "training", training.run(spec, one, rank, material))
        rows = training.epoch_seconds(plan, rank, material)
        _report(log, rank, "buffer_seconds", {"rows": rows})
        # After the trainings: recipe tuned sets precision and algorithms for the whole process.
        for mode in steps.OF_RANKS:
            if mode.buffers in plan.kinds:
                _report(log, rank, "steps", steps.record(plan, mode, rank, material))


def run_data_parallel(plan: Plan, log_folder: Path) -> None:
    """Record DataParallel's steps, in one process with all GPUs."""
    with _joined(plan, log_folder) as (rank, log):
        material = TrainingData.read(plan.dataset, plan.manifest, plan.images)
        _report(log, rank, "steps", steps.record(plan, steps.DATA_PARALLEL, rank, material))


def _joined(plan: Plan, log_folder: Path) -> AbstractContextManager[tuple[Rank, RankLog]]:
    device = environment.resolve_device(plan.device)
    return measure.joined(log_folder, device, plan.cpu_threads, plan.collective_timeout_seconds)


def _permutations(plan: Plan) -> list[dict[str, Any]]:
    images = range(plan.images)
    seed, epochs = plan.seeds[0], plan.epochs
    found: list[dict[str, Any]] = [
        {
            "sampler": "DistributedSampler",
            "gpus": gpus,
            "set_epoch": set_epoch,
            "orders": orders.distributed(images, gpus, seed, epochs, set_epoch),
        }
        for gpus in sorted({plan.gpus, *plan.world_sizes} - {1})
        for set_epoch in (True, False)
    ]
    alone = orders.random(images, seed, epochs)
    found.append({"sampler": "RandomSampler", "gpus": 1, "set_epoch": False, "orders": alone})
    return [{"seed": seed, **drawn} for drawn in found]


def _report(log: RankLog, rank: Rank, kind: str, content: dict[str, Any]) -> None:
    if rank.is_first:
        log.append(kind, content)
        print(kind, content.get("buffers") or content.get("way") or "", flush=True)
