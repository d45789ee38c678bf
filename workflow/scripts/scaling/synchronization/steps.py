"""Record every message of training steps, for each mode of parallel training."""

from dataclasses import dataclass, replace
from typing import Any

from scaling.instruments.messages import Messages, collectives, copies
from scaling.launch.ranks import Rank
from scaling.synchronization import training
from scaling.synchronization.plan import Buffers, Plan
from scaling.training.trainer import Trainer, TrainingData
from scaling.training.tuned import Tuned

STEPS = 3
"""DDP sends its gradients in one message in the first step, settles its buckets in the second, and
keeps to them from the third on."""


@dataclass(frozen=True)
class ParallelMode:
    """A mode of parallel training: `name`, recipe, strategy, and what becomes of buffers."""

    name: str
    recipe: str
    strategy: str
    buffers: Buffers = "broadcast"


OF_RANKS = [
    ParallelMode("ddp", "course", "ddp"),
    ParallelMode("ddp, buffers local", "course", "ddp", "local"),
    ParallelMode("ddp, SyncBatchNorm", "course", "ddp", "sync_batch_norm"),
    ParallelMode("tuned", "tuned", "ddp"),
]
DATA_PARALLEL = ParallelMode("dp", "course", "dp")
WITHOUT_MESSAGES = ("compile", "cuda_graph", "fused_norms")
"""Switches of recipe tuned that change no message; it runs without them here."""


def record(plan: Plan, mode: ParallelMode, rank: Rank, material: TrainingData) -> dict[str, Any]:
    """Record the messages of `STEPS` steps, and whether all ranks saw the same ones."""
    messages = Messages()
    recording = collectives if rank.processes > 1 else copies
    with recording(messages):
        messages.phase = "start"
        trainer = _trainer(plan, mode, rank, material)
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


def _trainer(plan: Plan, mode: ParallelMode, rank: Rank, material: TrainingData) -> Trainer:
    spec = plan.spec_of(mode.recipe, mode.strategy, plan.seeds[0])
    if mode.recipe == "tuned":
        options = {**spec.recipe_options, **dict.fromkeys(WITHOUT_MESSAGES, False)}
        spec = replace(spec, recipe_options=options)
        return Tuned(spec, rank, training.build(spec, rank, material), material)
    return training.course(spec, rank, material, mode.buffers)[1]
