"""Train on several ranks; compare their orders of images, their results, and strategies."""

import hashlib
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils.data import DistributedSampler, RandomSampler

from scaling.launch.ranks import Rank
from scaling.models.build import build
from scaling.synchronization.plan import Plan, Training
from scaling.training import evaluation
from scaling.training.eager import Eager
from scaling.training.resident import Resident
from scaling.training.trainer import TrainingData, finite

ROUNDS = 5
"""Timed epochs of each buffer mode. Two equally fast modes then have disjoint ranges by chance in
one of 126 comparisons, 2 / C(10, 5)."""

STEPS = 10
STRATEGIES = ["ddp", "ddp", "fsdp", "zero1"]
"""The first is the reference; its repeat shows the effect of rounding."""

Statistics = dict[str, NDArray[np.float64]]
"""`mean` and `variance` of all channels of one rank's batch norms."""
Order = NDArray[np.int64]
"""Image indexes in the order in which one rank trains on them."""


def trainer_of(
    plan: Plan, training: Training, rank: Rank, dataset: TrainingData
) -> tuple[nn.Module, Eager | Resident]:
    """Return the study's model with its seed's initial weights, and its trainer."""
    spec = plan.spec_of(training)
    torch.manual_seed(training.seed)
    model = build(spec.model, len(dataset.data.classes)).to(rank.device)
    if training.buffers == "sync_batch_norm":
        model = nn.SyncBatchNorm.convert_sync_batchnorm(model)
    trainer = (Resident if training.recipe == "tuned" else Eager)(spec, rank, model, dataset)
    if training.buffers == "local":
        # DistributedDataParallel reads this before each forward pass. The argument's name,
        # broadcast_buffers or forward_sync_buffers, depends on PyTorch's version.
        trainer.model.broadcast_buffers = False  # type: ignore[assignment]
    return model, trainer


def run(plan: Plan, training: Training, rank: Rank, dataset: TrainingData) -> dict[str, Any]:
    """Train with recipe `plain` and return a comparison of the ranks, equal on every rank.

    `epochs` has a row per epoch and rank (an EpochResult), `orders` the rows of `orders_of` for
    what its samplers drew, `ranks` the quality of each rank's model and the SHA-256 of its
    parameters and of its buffers, and `drift` is that of their running statistics.
    """
    model, trainer = trainer_of(plan, training, rank, dataset)
    assert isinstance(trainer, Eager)
    images, epochs, drawn = len(dataset.data.train_labels), [], []
    for epoch in range(plan.epochs):
        result = trainer.run_epoch(epoch if training.set_epoch else 0)
        epochs += rank.gather({"epoch": epoch, "rank": rank.index, **asdict(result)})
        drawn += orders_of(rank.gather(_drawn(trainer.sampler)), images, epoch)
    own = {
        "rank": rank.index,
        **evaluation.evaluate(model, dataset, rank.device),
        "parameters_sha256": evaluation.sha256(model.parameters()),
        "buffers_sha256": evaluation.sha256(model.buffers()),
    }
    apart = drift(rank.gather(running_statistics(model)))
    return {
        "buffers": training.buffers,
        "set_epoch": training.set_epoch,
        "seed": training.seed,
        "epochs": epochs,
        "orders": drawn,
        "ranks": rank.gather(own),
        "drift": {name: finite(value) for name, value in apart.items()},
    }


def epoch_seconds(plan: Plan, rank: Rank, dataset: TrainingData) -> list[dict[str, Any]]:
    """Time epochs with each buffer mode, without data loading; the rows are equal on every rank.

    A row for each buffer mode, round (from 1) and rank has the `seconds` of an epoch of recipe
    `plain` and its `iterations`, on in-memory batches. Each mode trains a separate model. Modes
    alternate, in reverse order every other round, after a warm-up round that has no rows.
    """
    epochs = {}
    for kind in plan.kinds:
        _, trainer = trainer_of(plan, plan.training(buffers=kind), rank, dataset)
        epochs[kind] = trainer.in_memory(sys.maxsize)
    own = []
    for turn in range(1 + ROUNDS):
        for kind in plan.kinds if turn % 2 else reversed(plan.kinds):
            result = epochs[kind](sys.maxsize)
            figures = {"seconds": result.seconds, "iterations": result.iterations}
            own.append({"buffers": kind, "round": turn, "rank": rank.index, **figures})
    return [row for rows in zip(*rank.gather(own), strict=True) for row in rows if row["round"]]


def distances(plan: Plan, rank: Rank, dataset: TrainingData) -> list[dict[str, Any]]:
    """Train with each strategy; return a row for each but the first, equal on every rank.

    `distance` is between its parameters and the first strategy's after `steps` steps of recipe
    plain, relative to how far the first one's moved (2-norms over all parameters).
    """
    rows: list[dict[str, Any]] = []
    for strategy in STRATEGIES:
        model, trainer = trainer_of(plan, plan.training(strategy=strategy), rank, dataset)
        start = _flat(model)
        iterations = trainer.in_memory(STEPS)(STEPS).iterations
        end = _flat(model)
        if not rows:
            first, way = end, torch.linalg.vector_norm(end - start)
        distance = torch.linalg.vector_norm(end - first) / way
        rows.append({"strategy": strategy, "steps": iterations, "distance": distance.item()})
    return rows[1:]


def _flat(model: nn.Module) -> Tensor:
    parameters = evaluation.whole(model.parameters())
    return torch.cat([parameter.detach().double().cpu().flatten() for parameter in parameters])


def running_statistics(model: nn.Module) -> Statistics:
    """Return the running mean and variance of every channel, in the order of the modules."""
    buffers = {name: buffer.double().cpu().numpy() for name, buffer in model.named_buffers()}
    return {
        statistic: np.concatenate([[], *(buffers[name] for name in buffers if name.endswith(word))])
        for word, statistic in (("running_mean", "mean"), ("running_var", "variance"))
    }


def drift(ranks: Sequence[Statistics]) -> dict[str, float]:
    """Return the range of each channel's running statistics over ranks, relative to their size.

    A variance is relative to its mean over the ranks; a mean, which may be zero, to the square root
    of that mean variance. Returns `mean_max`, `mean_mean`, `variance_max` and `variance_mean`: the
    largest and the mean over all channels, NaN if a training diverged. Channels with zero variance
    on every rank are left out; 0 if none remains.
    """
    means, variances = (np.stack([rank[name] for rank in ranks]) for name in ("mean", "variance"))
    variance = variances.mean(axis=0)
    varies = variance != 0
    relative = {
        "mean": np.ptp(means, axis=0)[varies] / np.sqrt(variance[varies]),
        "variance": np.ptp(variances, axis=0)[varies] / variance[varies],
    }
    return {
        f"{name}_{of}": float(reduce(values)) if values.size else 0.0
        for name, values in relative.items()
        for of, reduce in (("max", np.max), ("mean", np.mean))
    }


def sampled(
    images: int, ranks: int, seed: int, epochs: int, set_epoch: bool
) -> list[dict[str, Any]]:
    """Describe each epoch of DistributedSamplers, constructed as in recipe plain."""
    samplers: list[DistributedSampler] = [
        DistributedSampler(range(images), ranks, rank, shuffle=True, seed=seed)  # type: ignore[arg-type]
        for rank in range(ranks)
    ]
    rows = []
    for epoch in range(epochs):
        for sampler in samplers:
            sampler.set_epoch(epoch if set_epoch else 0)
        rows += orders_of([_drawn(sampler) for sampler in samplers], images, epoch)
    return rows


def sampled_alone(images: int, seed: int, epochs: int) -> list[dict[str, Any]]:
    """Describe each epoch of a RandomSampler, which DataParallel uses, without set_epoch."""
    torch.manual_seed(seed)
    sampler = RandomSampler(range(images))
    return [row for epoch in range(epochs) for row in orders_of([_drawn(sampler)], images, epoch)]


def _drawn(sampler: Iterable[int]) -> Order:
    """Return the indexes that a sampler draws for one epoch."""
    return np.fromiter(sampler, dtype=np.int64)


def orders_of(orders: Sequence[Order], images: int, epoch: int) -> list[dict[str, Any]]:
    """Return a row for each rank's order of one epoch.

    `samples` drawn, `order_sha256` (of little-endian 64-bit integers), `overlap` (the largest
    number of distinct images shared with one other rank, null for a single rank), and, equal in all
    rows: `unseen`, the `images` that no rank draws, and `repeated`, the draws of an image beyond
    its first. DistributedSampler repeats images if the ranks do not divide their number.
    """
    sets = [set(order.tolist()) for order in orders]
    seen = set().union(*sets)
    return [
        {
            "epoch": epoch,
            "rank": rank,
            "samples": len(order),
            "order_sha256": hashlib.sha256(order.astype("<i8").tobytes()).hexdigest(),
            "overlap": max(
                (len(sets[rank] & other) for index, other in enumerate(sets) if index != rank),
                default=None,
            ),
            "unseen": images - len(seen),
            "repeated": sum(map(len, orders)) - len(seen),
        }
        for rank, order in enumerate(orders)
    ]
