"""Train with recipe `plain`, and compare the ranks with one another and with other strategies."""

import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from scaling.launch.ranks import Rank
from scaling.launch.run_spec import RunSpec
from scaling.models.build import build
from scaling.synchronization import orders
from scaling.synchronization.plan import Buffers, Plan, Training
from scaling.training import evaluation
from scaling.training.eager import Eager
from scaling.training.trainer import TrainingData, finite

ROUNDS = 5
"""Timed epochs with each kind of buffers. Two kinds that take equally long then have disjoint
ranges by chance in one of 126 comparisons, 2 / C(10, 5)."""

STEPS = 10
STRATEGIES = ["ddp", "ddp", "fsdp", "zero1"]
"""The first is what the others are compared with; again, it shows what rounding alone does."""

Statistics = dict[str, NDArray[np.float64]]
"""`mean` and `variance`: the running statistics of all channels of all batch norms of one rank."""


def run(spec: RunSpec, training: Training, rank: Rank, dataset: TrainingData) -> dict[str, Any]:
    """Train the epochs of `spec` and compare the ranks; the same on every rank.

    Returns the training; `epochs`, one row per epoch and rank (an EpochResult); `orders`, the rows
    of `orders.describe` of what the training's own samplers drew; `ranks`, for each rank
    `test_loss` and `test_accuracy` of its own copy of the model, SHA-256 of its parameters and of
    its buffers; and the `drift` of their running statistics. A sampler that is set to epoch 0 again
    and again stays as it was made: that is what a training without `set_epoch` does.
    """
    model, trainer = plain(spec, rank, dataset, training.buffers)
    epochs, drawn = [], []
    for epoch in range(spec.epochs):
        result = trainer.run_epoch(epoch if training.set_epoch else 0)
        epochs.append({"epoch": epoch, "rank": rank.index, **asdict(result)})
        drawn.append(orders.drawn(trainer.sampler))
    own = {
        "rank": rank.index,
        **evaluation.evaluate(model, dataset, rank.device),
        "parameters_sha256": evaluation.sha256(model.parameters()),
        "buffers_sha256": evaluation.sha256(model.buffers()),
    }
    found = rank.gather((epochs, drawn, own, running_statistics(model)))
    epoch_rows, drawn_by_all, ranks, statistics = zip(*found, strict=True)
    images = len(dataset.data.train_labels)
    return {
        **asdict(training),
        "epochs": [row for rows in zip(*epoch_rows, strict=True) for row in rows],
        "orders": [
            row
            for epoch, of_ranks in enumerate(zip(*drawn_by_all, strict=True))
            for row in orders.describe(of_ranks, images, epoch)
        ],
        "ranks": list(ranks),
        "drift": {name: finite(value) for name, value in drift(statistics).items()},
    }


def epoch_seconds(plan: Plan, rank: Rank, dataset: TrainingData) -> list[dict[str, Any]]:
    """Time epochs with each kind of buffers, without data loading; the same rows on every rank.

    A row for each kind of buffers, round (from 1) and rank has the `seconds` of an epoch of recipe
    `plain` and its `iterations`, on batches that are in memory already. Each kind trains a model
    of its own. The kinds take turns, every other round in the opposite order, after a round that is
    not among the rows.
    """
    spec = plan.spec_of("plain", "ddp", plan.seeds[0])
    epochs = {
        kind: plain(spec, rank, dataset, kind)[1].in_memory(sys.maxsize) for kind in plan.kinds
    }
    own = []
    for turn in range(1 + ROUNDS):
        for kind in plan.kinds if turn % 2 else reversed(plan.kinds):
            result = epochs[kind](sys.maxsize)
            figures = {"seconds": result.seconds, "iterations": result.iterations}
            own.append({"buffers": kind, "round": turn, "rank": rank.index, **figures})
    return [row for rows in zip(*rank.gather(own), strict=True) for row in rows if row["round"]]


def plain(
    spec: RunSpec, rank: Rank, dataset: TrainingData, buffers: Buffers
) -> tuple[nn.Module, Eager]:
    """Make the study's model with the weights of its seed, and recipe `plain` to train it."""
    model = fresh(spec, rank, dataset)
    if buffers == "sync_batch_norm":
        model = nn.SyncBatchNorm.convert_sync_batchnorm(model)
    trainer = Eager(spec, rank, model, dataset)
    if buffers == "local":
        # DistributedDataParallel asks this before each forward pass. As an argument it is called
        # broadcast_buffers or forward_sync_buffers, by PyTorch's version.
        trainer.model.broadcast_buffers = False  # type: ignore[assignment]
    return model, trainer


def fresh(spec: RunSpec, rank: Rank, dataset: TrainingData) -> nn.Module:
    """Make the study's model with the weights of its seed, on the rank's device."""
    torch.manual_seed(spec.cell.seed)
    return build(spec, len(dataset.data.classes)).to(rank.device)


def running_statistics(model: nn.Module) -> Statistics:
    """Collect the running mean and variance of every channel, in the order of the modules."""
    buffers = {name: buffer.double().cpu().numpy() for name, buffer in model.named_buffers()}
    return {
        statistic: np.concatenate([[], *(buffers[name] for name in buffers if name.endswith(word))])
        for word, statistic in (("running_mean", "mean"), ("running_var", "variance"))
    }


def drift(ranks: Sequence[Statistics]) -> dict[str, float]:
    """Measure the range of each channel's running statistics over ranks, relative to their size.

    A variance is relative to its mean over the ranks; a mean, which may be zero, to the standard
    deviation that this variance gives. Returns `mean_max`, `mean_mean`, `variance_max` and
    `variance_mean`: the largest and the mean over all channels, NaN where a training has diverged.
    Channels that never vary (variance zero on every rank) have no relative difference and are left
    out; 0 where none is left.
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


def distances(plan: Plan, rank: Rank, dataset: TrainingData) -> list[dict[str, Any]]:
    """Train with each strategy; a row for each but the first, the same on every rank.

    `distance` is that of its parameters from the first one's, both after `steps` steps of recipe
    plain, in lengths of the way that the first one's went (2-norms over all parameters).
    """
    rows: list[dict[str, Any]] = []
    for strategy in STRATEGIES:
        spec = plan.spec_of("plain", strategy, plan.seeds[0])
        model = fresh(spec, rank, dataset)
        start = _flat(evaluation.whole(model.parameters()))
        train = Eager(spec, rank, model, dataset).in_memory(STEPS)
        iterations = train(STEPS).iterations
        end = _flat(evaluation.whole(model.parameters()))
        if not rows:
            first, way = end, torch.linalg.vector_norm(end - start)
        distance = torch.linalg.vector_norm(end - first) / way
        rows.append({"strategy": strategy, "steps": iterations, "distance": distance.item()})
    return rows[1:]


def _flat(parameters: list[Tensor]) -> Tensor:
    return torch.cat([parameter.detach().double().cpu().flatten() for parameter in parameters])
