"""Run the synchronization experiments as one rank, which reports to its log."""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from scaling.instruments.messages import Messages, collectives, copies
from scaling.launch import ranks
from scaling.launch.rank_log import RankLog
from scaling.launch.ranks import Rank
from scaling.models.build import build
from scaling.synchronization import training
from scaling.synchronization.plan import Plan, Training
from scaling.training.trainer import TrainingData

STEPS = 3
"""Steps to record: DDP sends all gradients in one message in the first, rebuilds its buckets in the
second, and uses these from the third on."""


def run(plan: Plan, log_folder: Path) -> None:
    """Run the experiments that use one process per GPU; rank 0 reports to `log_folder`.

    Reports `model` with parameter_bytes (K), buffer_bytes and widest_norm (channels), and the rows
    of `permutations`, `steps`, `training`, `buffer_seconds` and `agreement`.
    """
    with _joined(plan, log_folder) as (rank, log):
        dataset = TrainingData.read(plan.dataset, plan.manifest, plan.images)
        model = build(plan.model, len(dataset.data.classes))
        sizes = {
            "parameter_bytes": sum(p.numel() * p.itemsize for p in model.parameters()),
            "buffer_bytes": sum(b.numel() * b.itemsize for b in model.buffers()),
            "widest_norm": max((b.numel() for b in model.buffers()), default=0),
        }
        _report(log, rank, "model", sizes)
        for drawn in _permutations(plan) if rank.is_first else []:
            _report(log, rank, "permutations", drawn)
        for one in plan.trainings:
            _report(log, rank, "training", training.run(plan, one, rank, dataset))
        rows = training.epoch_seconds(plan, rank, dataset)
        _report(log, rank, "buffer_seconds", {"rows": rows})
        rows = training.distances(plan, rank, dataset)
        _report(log, rank, "agreement", {"rows": rows})
        for name, mode in plan.modes.items():
            _report(log, rank, "steps", record_steps(plan, name, mode, rank, dataset))


def run_data_parallel(plan: Plan, log_folder: Path) -> None:
    """Record DataParallel's steps, in one process with all GPUs."""
    with _joined(plan, log_folder) as (rank, log):
        dataset = TrainingData.read(plan.dataset, plan.manifest, plan.images)
        mode = plan.training(strategy="dp")
        _report(log, rank, "steps", record_steps(plan, "dp", mode, rank, dataset))


def _joined(plan: Plan, log_folder: Path) -> AbstractContextManager[tuple[Rank, RankLog]]:
    limit = plan.collective_timeout_seconds
    return ranks.joined(log_folder, plan.device, plan.cpu_threads, limit)


def _permutations(plan: Plan) -> Iterator[dict[str, Any]]:
    images, seed, epochs = plan.images, plan.seeds[0], plan.epochs
    for gpus in sorted({plan.gpus, *plan.world_sizes} - {1}):
        about = {"sampler": "DistributedSampler", "gpus": gpus, "seed": seed}
        for set_epoch in (True, False):
            drawn = training.sampled(images, gpus, seed, epochs, set_epoch)
            yield {**about, "set_epoch": set_epoch, "orders": drawn}
    alone = {"sampler": "RandomSampler", "gpus": 1, "seed": seed, "set_epoch": False}
    yield {**alone, "orders": training.sampled_alone(images, seed, epochs)}


def _report(log: RankLog, rank: Rank, kind: str, content: dict[str, Any]) -> None:
    if rank.is_first:
        log.append(kind, content)
        print(kind, content.get("buffers") or content.get("way") or "", flush=True)


def record_steps(
    plan: Plan, name: str, mode: Training, rank: Rank, dataset: TrainingData
) -> dict[str, Any]:
    """Record the messages of `STEPS` steps, and whether they were equal on all ranks."""
    messages = Messages()
    recording = collectives if rank.processes > 1 else copies
    with recording(messages):
        messages.phase = "start"
        _, trainer = training.trainer_of(plan, mode, rank, dataset)
        messages.phase = None
    train = trainer.in_memory(1)
    with messages.phases_of(trainer.model):
        for messages.step in range(1, STEPS + 1):
            with recording(messages):
                train(1)
            messages.phase = None
    bucket_bytes = trainer.replica.bucket_bytes
    trainer.close()
    return {
        "way": name,
        "bucket_bytes": bucket_bytes,
        "ranks_agree": all(rows == messages.rows for rows in rank.gather(messages.rows)),
        "messages": messages.rows,
    }
