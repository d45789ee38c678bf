"""Train a model many times on one device, run after run, at one global batch.

The global batch of several GPUs is emulated on one: each update runs over the ranks' shards in turn
and accumulates their gradients. The result equals DistributedDataParallel's on so many GPUs: each
rank's batch is normalized separately, the gradient is the mean over all ranks, and the running
statistics of the batch norms are rank 0's, which DDP broadcasts.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.optim.swa_utils import update_bn

from scaling.convergence.noise_scale import NoiseScale, noise_scale
from scaling.convergence.plan import Run, Study
from scaling.data.resident import ResidentImages
from scaling.models.resnet import ResNet18
from scaling.registry.update_rule import UpdateRule
from scaling.training.evaluation import evaluate
from scaling.training.flat_sgd import FlatSGD
from scaling.training.step import (
    Batch,
    DeviceStep,
    InPrecision,
    algorithm_search,
    allow_tf32,
)
from scaling.training.trainer import TrainingData, finite

BATCH_SIZE = 2000
"""Maximum batch size for precise statistics."""
NOISE_BATCHES = 64
"""Maximum number of reference batches for the noise scale."""
PRECISE_IMAGES = 10_000
"""Maximum number of images for precise statistics: Wu and Johnson 2021 (arXiv:2105.07576, section
3) need 1,000 to 10,000."""


class Epoch(NamedTuple):
    """The mean cross-entropy of each update, and the epoch's `figures` for its record.

    `train_loss` and `train_accuracy` are means over its images. Test metrics after it use the batch
    norms' running statistics, as `running_test_loss` and `running_test_accuracy`, or `precise` ones
    recomputed on training images. Losses are null if not finite, and then accuracies are too.
    """

    losses: list[float]
    figures: dict[str, Any]


class RanksInTurn:
    """The images of a global batch's ranks: one batch of each rank in turn, from rank 0 on.

    Only the batches of rank 0 move the running statistics of `norms`.
    """

    def __init__(self, shards: list[ResidentImages], norms: list[nn.BatchNorm2d]) -> None:
        self._shards, self._norms, self._next = shards, norms, 0

    def draw(self, epoch: int) -> None:
        """Begin an epoch: draw its order and crops."""
        for shard in self._shards:
            shard.draw(epoch)
        self._next = 0
        self._track(True)

    def stage(self, size: int) -> None:
        """Do nothing: all images are on the device."""

    def next_batch(self, size: int) -> Batch:
        rank = self._next
        self._next = (rank + 1) % len(self._shards)
        self._track(rank == 0)
        return self._shards[rank].next_batch(size)

    def _track(self, statistics: bool) -> None:
        for norm in self._norms:
            norm.track_running_stats = statistics


class Engine:
    """Trains runs at `global_batch`; each run starts with new weights, order and optimizer state.

    The images stay on the device. On a GPU an update is a CUDA graph, captured once per batch size
    and kind of optimizer.
    """

    def __init__(
        self, study: Study, dataset: TrainingData, global_batch: int, device: torch.device
    ) -> None:
        gpus = study.gpus_of(global_batch)
        self.study, self.global_batch = study, global_batch
        self.train_images = len(dataset.data.train_images)
        self.classes = len(dataset.data.classes)
        self.captures = device.type == "cuda"
        self._sizes = [gpus * size for size in study.batch_sizes(self.train_images, global_batch)]
        allow_tf32(study.precision != "float32")
        self.model = ResNet18(study.model_width, self.classes).to(device)
        if self.captures:
            self.model.to(memory_format=torch.channels_last)
        self._norms = [one for one in self.model.modules() if isinstance(one, nn.BatchNorm2d)]
        padding, flip = study.crop_padding, study.horizontal_flip
        images = partial(ResidentImages, dataset.data, dataset.mean, dataset.std, padding, flip)
        self._shards = [images(device, rank, gpus, seed=0) for rank in range(gpus)]
        self._images = RanksInTurn(self._shards, self._norms)
        self._replica = FlatSGD(self.model)
        self._trained = InPrecision(self.model, study.precision == "bf16")
        self._evaluate = partial(evaluate, self._trained, dataset, device)
        self._step = DeviceStep(
            *(self._trained, self._replica, self._images, device, gpus, UpdateRule()),
            self._sizes[:1],
            channels_last=self.captures,
        )
        self._fresh: dict[int, dict[str, Tensor]] = {}

    def start(self, run: Run) -> None:
        """Begin a run: initialize weights, momenta and order."""
        if run.seed not in self._fresh:
            torch.manual_seed(run.seed)
            self._fresh[run.seed] = ResNet18(self.study.model_width, self.classes).state_dict()
        self.model.load_state_dict(self._fresh[run.seed])
        decay = self.study.weight_decay
        self._replica.start({"lr": 0.0, "momentum": run.momentum, "weight_decay": decay}, run.rule)
        self._step.rule = run.rule
        for shard in self._shards:
            shard.seed = run.seed
        self.model.train()
        if self.captures:
            with algorithm_search(True):
                self._step.capture(self._sizes)

    def train_epoch(self, run: Run, epoch: int) -> Epoch:
        """Train epoch number `epoch` (from 1) of the run that `start` began, and evaluate."""
        self.model.train()
        self._step.reset()
        self._images.draw(epoch)
        first, sums = (epoch - 1) * len(self._sizes), []
        for rate, rest, size in zip(run.rates[first:], run.rest[first:], self._sizes, strict=False):
            self._replica.set_rates(rate, rest)
            self._step.loss_sum.zero_()
            self._step.run(size)
            sums.append(self._step.loss_sum.clone())
        totals, images = torch.stack(sums).tolist(), sum(self._sizes)
        figures: dict[str, Any] = {
            "train_loss": finite(sum(totals) / images),
            "train_accuracy": self._step.correct.item() / images,
        }
        for kind, found in (("running", self._evaluate()), ("precise", self._precise(epoch))):
            figures |= {f"{kind}_{name}": value for name, value in found.items()}
        if None in (figures["train_loss"], figures["running_test_loss"]):
            figures |= {name: None for name in figures if name.endswith("accuracy")}
        if run.noise_scale and (noise := self._noise_scale(epoch)):
            figures["noise_scale"] = [finite(value) for value in noise]
        return Epoch([t / size for t, size in zip(totals, self._sizes, strict=True)], figures)

    def _precise(self, epoch: int) -> dict[str, float | None]:
        """Evaluate with statistics of the epoch's images."""
        with self._buffers_kept():
            self._images.draw(epoch)
            update_bn(self._training_images(), self._trained)
            return self._evaluate()

    def _training_images(self) -> Iterator[Tensor]:
        """Yield up to `PRECISE_IMAGES` of the epoch's images, in equal batches."""
        for shard in self._shards:
            wanted = min(shard.samples, math.ceil(PRECISE_IMAGES / len(self._shards)))
            batches = math.ceil(wanted / BATCH_SIZE)
            for _ in range(batches):
                yield shard.next_batch(wanted // batches)[0]

    def _noise_scale(self, epoch: int) -> NoiseScale | None:
        """Estimate the gradient noise scale from 3 batches or more; the model is unchanged."""
        size, gradients = self.study.reference_batch, []
        with self._buffers_kept():
            self.model.train()
            self._images.draw(epoch)
            for _ in range(min(NOISE_BATCHES, self._shards[0].samples // size)):
                images, labels = self._shards[0].next_batch(size)
                cross_entropy(self._trained(images).float(), labels).backward()
                gradients.append(self._replica.gradients.to(torch.float32, copy=True))
        return noise_scale(torch.stack(gradients), size) if len(gradients) > 2 else None

    @contextmanager
    def _buffers_kept(self) -> Iterator[None]:
        buffers = list(self.model.buffers())
        kept = [buffer.clone() for buffer in buffers]
        yield
        torch._foreach_copy_(buffers, kept)
