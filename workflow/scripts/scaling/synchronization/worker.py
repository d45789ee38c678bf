"""Run the synchronization experiments as one rank: image orders, messages, and buffers."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from scaling.core import environment
from scaling.data import dataset as data
from scaling.data.dataset import ImageDataset
from scaling.instruments.messages import Messages, collectives, copies
from scaling.launch import ranks
from scaling.launch.ranks import Rank
from scaling.models.build import build
from scaling.synchronization.plan import Plan, Training
from scaling.training import evaluation
from scaling.training.eager import Eager
from scaling.training.trainer import finite

STEPS = 3
"""Number of recorded steps. DDP sends all gradients in one message in step 1, rebuilds its buckets
in step 2, and uses the new buckets from step 3 on."""
Order = NDArray[np.int64]
"""Indexes of images in the order of a rank's training."""


def start(options: Plan, folder: Path) -> None:
    """Run the experiments in `options.gpus` processes; on GPUs, then DataParallel's in this one."""
    ranks.start(options.gpus, run, options, folder)
    if environment.resolve_device(options.device) == "cuda":
        run(options, folder)


def run(plan: Plan, log_folder: Path) -> None:
    """Run the experiments as one rank. The first rank writes the results to `log_folder`.

    Several processes run all trainings, and record messages of `plan.modes`. A single process only
    records messages of DataParallel.
    """
    limit = plan.collective_timeout_seconds
    with ranks.joined(log_folder, plan.device, plan.cpu_threads, limit) as (rank, log):

        def report(kind: str, content: dict[str, Any]) -> None:
            if rank.is_first:
                log.append(kind, {kind: content})
                print(kind, content.get("buffers") or content.get("way") or "", flush=True)

        dataset = data.read(plan.dataset, plan.manifest, plan.images)
        modes = plan.modes if rank.processes > 1 else {"dp": Training(plan.seeds[0], strategy="dp")}
        if rank.processes > 1:
            model = build(plan.model, len(dataset.classes))
            sizes = {
                "parameter_bytes": sum(p.nbytes for p in model.parameters()),
                "buffer_bytes": sum(b.nbytes for b in model.buffers()),
                "widest_norm": max((b.numel() for b in model.buffers()), default=0),
            }
            report("model", sizes)
            for one in plan.trainings:
                report("training", train(plan, one, rank, dataset))
        for name, mode in modes.items():
            report("steps", record_steps(plan, name, mode, rank, dataset))


def trainer_of(plan: Plan, training: Training, rank: Rank, dataset: ImageDataset) -> Eager:
    """Return a trainer of the plan's model, with initial weights by the training's seed."""
    spec = plan.spec_of(training)
    torch.manual_seed(training.seed)
    model = build(spec.model, len(dataset.classes)).to(rank.device)
    if training.buffers == "sync_batch_norm":
        model = nn.SyncBatchNorm.convert_sync_batchnorm(model)
    trainer = Eager(spec, rank, model, dataset)
    if training.buffers == "local":
        # DistributedDataParallel reads this before each forward pass. The argument's name,
        # broadcast_buffers or forward_sync_buffers, depends on PyTorch's version.
        trainer.model.broadcast_buffers = False  # type: ignore[assignment]
    return trainer


def train(plan: Plan, training: Training, rank: Rank, dataset: ImageDataset) -> dict[str, Any]:
    """Run a training; return a dictionary that compares its ranks, with equal values on all ranks.

    `orders` has the rows of `orders_of` for all epochs. `ranks` has each rank's test loss, test
    accuracy, and SHA-256 of parameters and buffers. `drift` compares running variances.
    """
    trainer = trainer_of(plan, training, rank, dataset)
    model: Any = trainer.model.module
    images, drawn = len(dataset.train_labels), []
    for epoch in range(plan.epochs):
        trainer.run_epoch(epoch if training.set_epoch else 0)
        order = np.fromiter(trainer.sampler, dtype=np.int64)
        drawn += orders_of(rank.gather(order), images, epoch)
    model_of_rank = {
        "rank": rank.index,
        **evaluation.evaluate(model, dataset, rank.device),
        "parameters_sha256": evaluation.sha256(model.parameters()),
        "buffers_sha256": evaluation.sha256(model.buffers()),
    }
    buffers = [one for name, one in model.named_buffers() if name.endswith("running_var")]
    variances = np.concatenate([[], *(one.double().cpu().numpy() for one in buffers)])
    return {
        "buffers": training.buffers,
        "set_epoch": training.set_epoch,
        "seed": training.seed,
        "orders": drawn,
        "ranks": rank.gather(model_of_rank),
        "drift": drift(rank.gather(variances)),
    }


def drift(ranks: Sequence[NDArray[np.float64]]) -> dict[str, float | None]:
    """Return how much running variances differ between ranks: maximum and mean over all channels.

    `ranks` has an array for each rank, with one variance per channel. A channel's difference is
    (max - min) / mean over ranks. Channels with mean 0 are left out; without any other channel,
    both results are 0. Results that are not finite become None.
    """
    mean, apart = np.mean(ranks, axis=0), np.ptp(ranks, axis=0)
    apart = apart[mean != 0] / mean[mean != 0] if mean.any() else np.zeros(1)
    result = {"variance_max": apart.max(), "variance_mean": apart.mean()}
    return {name: finite(float(value)) for name, value in result.items()}


def orders_of(orders: Sequence[Order], images: int, epoch: int) -> list[dict[str, Any]]:
    """Return a row for each rank about its order of the training images (`images`) in an epoch.

    `samples` is the number of indexes in the order, `order_sha256` their hash as little-endian
    int64. `overlap` is the largest number of images that the rank shares with any other rank. Two
    columns are equal in all rows: `unseen` is the number of images that no rank draws. `repeated`
    is the number of draws by all ranks minus the number of distinct images drawn.
    """
    sets = [set(order.tolist()) for order in orders]
    seen = set().union(*sets)
    return [
        {
            "epoch": epoch,
            "rank": rank,
            "samples": len(order),
            "order_sha256": hashlib.sha256(order.astype("<i8").tobytes()).hexdigest(),
            "overlap": max(len(one & other) for other in sets if other is not one),
            "unseen": images - len(seen),
            "repeated": sum(map(len, orders)) - len(seen),
        }
        for rank, (one, order) in enumerate(zip(sets, orders, strict=True))
    ]


def record_steps(
    plan: Plan, name: str, mode: Training, rank: Rank, dataset: ImageDataset
) -> dict[str, Any]:
    """Return the messages of a trainer's start and `STEPS` steps, and whether all ranks agree."""
    messages = Messages()
    recording = collectives if rank.processes > 1 else copies
    with recording(messages):
        messages.phase = "start"
        trainer = trainer_of(plan, mode, rank, dataset)
        messages.phase = None
    step = trainer.in_memory(1)
    with messages.phases_of(trainer.model):
        for messages.step in range(1, STEPS + 1):
            with recording(messages):
                step(1)
            messages.phase = None
    bucket_bytes = trainer.replica.bucket_bytes
    trainer.close()
    return {
        "way": name,
        "bucket_bytes": bucket_bytes,
        "ranks_agree": all(rows == messages.rows for rows in rank.gather(messages.rows)),
        "messages": messages.rows,
    }
