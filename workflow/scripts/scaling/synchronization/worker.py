"""Run the synchronization experiments as one rank, which reports to its log.

They include recording every message of training steps, for each mode of parallel training.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from scaling.instruments.messages import Messages, collectives, copies
from scaling.launch import ranks
from scaling.launch.rank_log import RankLog
from scaling.launch.ranks import Rank
from scaling.models.build import build
from scaling.synchronization import orders, training
from scaling.synchronization.plan import Buffers, Plan
from scaling.training.resident import Resident
from scaling.training.trainer import Trainer, TrainingData

STEPS = 3
"""Steps to record: DDP sends all gradients in one message in the first, rebuilds its buckets in the
second, and uses these from the third on."""


@dataclass(frozen=True)
class ParallelMode:
    """A mode of parallel training: `name`, recipe, strategy, and how buffers are kept."""

    name: str
    recipe: str
    strategy: str
    buffers: Buffers = "broadcast"


OF_RANKS = [
    ParallelMode("ddp", "plain", "ddp"),
    ParallelMode("ddp, buffers local", "plain", "ddp", "local"),
    ParallelMode("ddp, SyncBatchNorm", "plain", "ddp", "sync_batch_norm"),
    ParallelMode("fsdp", "plain", "fsdp"),
    ParallelMode("zero1", "plain", "zero1"),
    ParallelMode("tuned", "tuned", "ddp"),
]
DATA_PARALLEL = ParallelMode("dp", "plain", "dp")
WITHOUT_MESSAGES = ("compile", "cuda_graph", "fused_norms")
"""Switches of recipe tuned that change no message, and are off here."""


def run(plan: Plan, log_folder: Path) -> None:
    """Run the experiments that use one process per GPU; rank 0 reports to `log_folder`.

    Reports `model` with parameter_bytes (K), buffer_bytes and widest_norm (channels), and the rows
    of `permutations`, `steps`, `training`, `buffer_seconds` and `agreement`.
    """
    with _joined(plan, log_folder) as (rank, log):
        dataset = TrainingData.read(plan.dataset, plan.manifest, plan.images)
        model = build(plan, len(dataset.data.classes))
        sizes = {
            "parameter_bytes": sum(p.numel() * p.itemsize for p in model.parameters()),
            "buffer_bytes": sum(b.numel() * b.itemsize for b in model.buffers()),
            "widest_norm": max((b.numel() for b in model.buffers()), default=0),
        }
        _report(log, rank, "model", sizes)
        for drawn in _permutations(plan) if rank.is_first else []:
            _report(log, rank, "permutations", drawn)
        for one in plan.trainings:
            spec = plan.spec_of("plain", "ddp", one.seed)
            _report(log, rank, "training", training.run(spec, one, rank, dataset))
        rows = training.epoch_seconds(plan, rank, dataset)
        _report(log, rank, "buffer_seconds", {"rows": rows})
        rows = training.distances(plan, rank, dataset)
        _report(log, rank, "agreement", {"rows": rows})
        # Last, as recipe tuned sets precision and algorithms for the whole process.
        for mode in modes_of(plan):
            _report(log, rank, "steps", record_steps(plan, mode, rank, dataset))


def modes_of(plan: Plan) -> list[ParallelMode]:
    """Return the modes of `OF_RANKS` that this device and the study's recipes have."""
    there = [mode for mode in OF_RANKS if mode.buffers in plan.kinds]
    return [mode for mode in there if mode.recipe != "tuned" or plan.tuned_options]


def run_data_parallel(plan: Plan, log_folder: Path) -> None:
    """Record DataParallel's steps, in one process with all GPUs."""
    with _joined(plan, log_folder) as (rank, log):
        dataset = TrainingData.read(plan.dataset, plan.manifest, plan.images)
        _report(log, rank, "steps", record_steps(plan, DATA_PARALLEL, rank, dataset))


def _joined(plan: Plan, log_folder: Path) -> AbstractContextManager[tuple[Rank, RankLog]]:
    limit = plan.collective_timeout_seconds
    return ranks.joined(log_folder, plan.device, plan.cpu_threads, limit)


def _permutations(plan: Plan) -> Iterator[dict[str, Any]]:
    images, seed, epochs = range(plan.images), plan.seeds[0], plan.epochs
    for gpus in sorted({plan.gpus, *plan.world_sizes} - {1}):
        about = {"sampler": "DistributedSampler", "gpus": gpus, "seed": seed}
        for set_epoch in (True, False):
            drawn = orders.distributed(images, gpus, seed, epochs, set_epoch)
            yield {**about, "set_epoch": set_epoch, "orders": drawn}
    alone = {"sampler": "RandomSampler", "gpus": 1, "seed": seed, "set_epoch": False}
    yield {**alone, "orders": orders.random(images, seed, epochs)}


def _report(log: RankLog, rank: Rank, kind: str, content: dict[str, Any]) -> None:
    if rank.is_first:
        log.append(kind, content)
        print(kind, content.get("buffers") or content.get("way") or "", flush=True)


def record_steps(
    plan: Plan, mode: ParallelMode, rank: Rank, dataset: TrainingData
) -> dict[str, Any]:
    """Record the messages of `STEPS` steps, and whether they were equal on all ranks."""
    messages = Messages()
    recording = collectives if rank.processes > 1 else copies
    with recording(messages):
        messages.phase = "start"
        trainer = _trainer(plan, mode, rank, dataset)
        messages.phase = None
    train = trainer.in_memory(1)
    with messages.phases_of(trainer.model):
        for step in range(1, STEPS + 1):
            messages.step = step
            with recording(messages):
                train(1)
            messages.phase = None
    bucket_bytes = trainer.bucket_bytes
    trainer.close()
    return {
        "way": mode.name,
        "bucket_bytes": bucket_bytes,
        "ranks_agree": all(rows == messages.rows for rows in rank.gather(messages.rows)),
        "messages": messages.rows,
    }


def _trainer(plan: Plan, mode: ParallelMode, rank: Rank, dataset: TrainingData) -> Trainer:
    spec = plan.spec_of(mode.recipe, mode.strategy, plan.seeds[0])
    if mode.recipe == "tuned":
        options = {**spec.recipe_options, **dict.fromkeys(WITHOUT_MESSAGES, False)}
        spec = replace(spec, recipe_options=options)
        return Resident(spec, rank, training.fresh(spec, rank, dataset), dataset)
    return training.plain(spec, rank, dataset, mode.buffers)[1]
