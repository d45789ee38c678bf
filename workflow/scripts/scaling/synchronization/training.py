"""A training with recipe `course` whose ranks are compared with one another."""

import hashlib
from collections import defaultdict
from dataclasses import asdict
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import nn

from scaling.launch.ranks import Rank
from scaling.launch.run_spec import RunSpec
from scaling.models.resnet import ResNet18
from scaling.synchronization import samplers, shards
from scaling.synchronization.drift import Statistics, drift
from scaling.synchronization.plan import Buffers, Training
from scaling.training import evaluation
from scaling.training.course import Course
from scaling.training.trainer import Material, finite


def run(spec: RunSpec, training: Training, rank: Rank, material: Material) -> dict[str, Any]:
    """Train the epochs of `spec` and compare the ranks; the same on every rank.

    Returns the training; `epochs`, one row per epoch and rank (an EpochResult); `orders`, the rows
    of `shards.describe` of what the training's own samplers drew; `ranks`, for each rank
    `test_loss` and `test_accuracy` of its own copy of the model, SHA-256 of its parameters and of
    its buffers; and the `drift` of their running statistics. Telling a sampler epoch 0 again and
    again leaves it as it was made: that is what a training without `set_epoch` does.
    """
    model, trainer = course(spec, rank, material, training.buffers)
    epochs, drawn = [], []
    for epoch in range(spec.epochs):
        result = trainer.run_epoch(epoch if training.set_epoch else 0)
        epochs.append({"epoch": epoch, "rank": rank.index, **asdict(result)})
        drawn.append(samplers.order(trainer.sampler))
    own = {
        "rank": rank.index,
        **evaluation.evaluate(model, material, rank.device),
        "parameters_sha256": evaluation.parameters_sha256(model),
        "buffers_sha256": buffers_sha256(model),
    }
    everyone: list[Any] = [None] * rank.processes
    dist.all_gather_object(everyone, (epochs, drawn, own, running_statistics(model)))
    epoch_rows, orders, ranks, statistics = zip(*everyone, strict=True)
    images = len(material.data.train_labels)
    return {
        **asdict(training),
        "epochs": [row for rows in zip(*epoch_rows, strict=True) for row in rows],
        "orders": [
            {"epoch": epoch, **row}
            for epoch, of_ranks in enumerate(zip(*orders, strict=True))
            for row in shards.describe(of_ranks, images)
        ],
        "ranks": list(ranks),
        "drift": {name: finite(value) for name, value in drift(statistics).items()},
    }


def course(
    spec: RunSpec, rank: Rank, material: Material, buffers: Buffers
) -> tuple[nn.Module, Course]:
    """The study's model with the weights of its seed, and recipe `course` that trains it."""
    model = build(spec, rank, material)
    if buffers == "sync_batch_norm":
        model = nn.SyncBatchNorm.convert_sync_batchnorm(model)
    trainer = Course(spec, rank, model, material)
    if buffers == "local":
        # DistributedDataParallel asks this before each forward pass. As an argument it is called
        # broadcast_buffers or forward_sync_buffers, by PyTorch's version.
        trainer.model.broadcast_buffers = False  # type: ignore[assignment]
    return model, trainer


def build(spec: RunSpec, rank: Rank, material: Material) -> ResNet18:
    """The study's model with the weights of its seed, on the rank's device."""
    torch.manual_seed(spec.cell.seed)
    return ResNet18(spec.model_width, len(material.data.classes)).to(rank.device)


def running_statistics(model: nn.Module) -> Statistics:
    """The running mean and variance of every channel, in the order of the modules."""
    found: dict[str, list[np.ndarray]] = defaultdict(list)
    for name, buffer in model.named_buffers():
        for word, statistic in (("running_mean", "mean"), ("running_var", "variance")):
            if name.endswith(word):
                found[statistic].append(buffer.double().cpu().numpy())
    return {name: np.concatenate(parts) for name, parts in found.items()}


def buffers_sha256(model: nn.Module) -> str:
    """SHA-256 over the bytes of all buffers."""
    digest = hashlib.sha256()
    for buffer in model.buffers():
        digest.update(buffer.cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()
