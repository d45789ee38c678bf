"""Train a model many times on one device, run after run, at one global batch.

The global batch of several GPUs is emulated on one: each update runs over the ranks' shards in turn
and accumulates their gradients. The result equals DistributedDataParallel's on so many GPUs: each
rank's batch is normalized separately, the gradient is the mean over all ranks, and the running
statistics of the batch norms are rank 0's, which DDP broadcasts.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.optim.swa_utils import update_bn

from scaling.config.technique import Technique
from scaling.convergence.noise_scale import NoiseScale, noise_scale
from scaling.convergence.plan import Run, Study
from scaling.data.resident import ResidentImages
from scaling.models.resnet import BasicBlock, ResNet18
from scaling.training.captured_steps import CapturedSteps
from scaling.training.evaluation import algorithm_search, normalized
from scaling.training.flat_weights import FlatWeights, views_of
from scaling.training.step import losses
from scaling.training.trainer import TrainingData
from scaling.training.update import Update

BATCH_SIZE = 2000
"""Maximum batch size of an evaluation."""
NOISE_BATCHES = 64
"""Maximum number of reference batches for the noise scale."""
PRECISE_IMAGES = 10_000
"""Maximum number of images for precise statistics: Wu and Johnson 2021 (arXiv:2105.07576, section
3) need 1,000 to 10,000."""


class Quality(NamedTuple):
    """Test metrics of a model: mean cross-entropy, and accuracy as a fraction."""

    loss: float
    accuracy: float


@dataclass(frozen=True)
class Epoch:
    """Means over an epoch's images, and test metrics after it; losses are plain cross-entropy.

    A loss may be infinite or NaN; accuracies are fractions. `losses` has one value per update.
    `running` uses the batch norms' running statistics, `precise` statistics recomputed on training
    images.
    """

    losses: list[float]
    train_loss: float
    train_accuracy: float
    running: Quality
    precise: Quality
    noise: NoiseScale | None = None


class Engine:
    """Trains runs at `global_batch`; each run starts with new weights, order and optimizer state.

    The images stay on the device. On a GPU an update is a CUDA graph, captured once per batch size
    and kind of optimizer.
    """

    def __init__(
        self, study: Study, dataset: TrainingData, global_batch: int, device: torch.device
    ) -> None:
        gpus = study.gpus_of(global_batch)
        self.study, self._device, self._gpus = study, device, gpus
        self.global_batch = global_batch
        self.train_images = len(dataset.data.train_images)
        self.classes = len(dataset.data.classes)
        self._sizes = study.batch_sizes(self.train_images, global_batch)
        self._bf16 = study.precision == "bf16"
        torch.backends.cuda.matmul.allow_tf32 = study.precision != "float32"
        torch.backends.cudnn.allow_tf32 = study.precision != "float32"
        self._shards = [
            ResidentImages(
                dataset.data,
                dataset.mean,
                dataset.std,
                study.crop_padding,
                study.horizontal_flip,
                device,
                rank,
                gpus,
                seed=0,
            )
            for rank in range(gpus)
        ]
        test = normalized(dataset.data.test_images, dataset.mean, dataset.std)
        self._test_images = test.to(device)
        self._test_labels = torch.from_numpy(dataset.data.test_labels).to(device)
        on_gpu = device.type == "cuda"
        self._format = torch.channels_last if on_gpu else torch.contiguous_format
        self.model = ResNet18(study.model_width, self.classes).to(device)
        self.model.to(memory_format=self._format)
        parameters = list(self.model.parameters())
        flat = FlatWeights(parameters)
        self._optimizer = Update(self.model, flat, parameters)
        self._gradients = flat.gradients
        for parameter, view in zip(parameters, views_of(flat.gradients, parameters), strict=True):
            parameter.grad = view
        self._buffers = list(self.model.buffers())
        self._of_rank_0 = [buffer.clone() for buffer in self._buffers]
        self._losses = torch.zeros(len(self._sizes), device=device)
        self._update = torch.zeros(1, dtype=torch.long, device=device)
        self._loss_sum = torch.zeros((), device=device)
        self._correct = torch.zeros((), device=device, dtype=torch.long)
        self._captured = CapturedSteps()
        self._fresh: dict[int, dict[str, Tensor]] = {}

    def start(self, run: Run) -> None:
        """Begin a run: initialize weights, momenta and order."""
        technique, decay = run.technique, self.study.weight_decay
        for module in self.model.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.__dict__["forward"] = partial(_in_parts, module, technique.ghost_batch)
        self._optimizer.reset(technique, run.momentum, decay)
        if self._device.type == "cuda":
            for size in sorted(set(self._sizes), reverse=True):
                self._capture(size, run.update)
        if run.seed not in self._fresh:
            torch.manual_seed(run.seed)
            self._fresh[run.seed] = ResNet18(self.study.model_width, self.classes).state_dict()
        self.model.load_state_dict(self._fresh[run.seed])
        for module in self.model.modules():
            if technique.zero_gamma and isinstance(module, BasicBlock):
                torch.nn.init.zeros_(module.bn2.weight)
        self._optimizer.reset(technique, run.momentum, decay)
        for shard in self._shards:
            shard.seed = run.seed

    def train_epoch(self, run: Run, epoch: int) -> Epoch:
        """Train epoch number `epoch` (from 1) of the run that `start` began, and evaluate."""
        self.model.train()
        self._loss_sum.zero_()
        self._correct.zero_()
        self._draw(epoch)
        first, update = (epoch - 1) * len(self._sizes), run.update
        for rate, rest, size in zip(run.rates[first:], run.rest[first:], self._sizes, strict=False):
            self._optimizer.set_rates(rate, rest)
            self._captured.run((size, update), partial(self._launch, size, update))
        images = self._gpus * sum(self._sizes)
        return Epoch(
            losses=self._losses.tolist(),
            train_loss=self._loss_sum.item() / images,
            train_accuracy=self._correct.item() / images,
            running=self._evaluate(),
            precise=self._precise(epoch),
            noise=self._noise_scale(epoch) if run.technique.noise_scale else None,
        )

    @torch.no_grad()
    def _evaluate(self) -> Quality:
        """Evaluate on the test images with running statistics, in batches of about equal size."""
        self.model.eval()
        batches = math.ceil(len(self._test_labels) / BATCH_SIZE)
        loss = torch.zeros((), device=self._device)
        correct = torch.zeros((), device=self._device, dtype=torch.long)
        for images, labels in zip(
            self._test_images.chunk(batches), self._test_labels.chunk(batches), strict=True
        ):
            logits = self._logits(images)
            loss += functional.cross_entropy(logits, labels, reduction="sum")
            correct += (logits.argmax(1) == labels).sum()
        images_seen = len(self._test_labels)
        return Quality(loss.item() / images_seen, correct.item() / images_seen)

    def _precise(self, epoch: int) -> Quality:
        """Evaluate with statistics of the epoch's images; the running statistics are unchanged."""
        running = [buffer.clone() for buffer in self._buffers]
        self._draw(epoch)
        with self._autocast():
            update_bn(self._training_images(), self.model)
        found = self._evaluate()
        torch._foreach_copy_(self._buffers, running)
        return found

    def _training_images(self) -> Iterator[Tensor]:
        """Yield up to `PRECISE_IMAGES` of the epoch's images, in equal batches."""
        for shard in self._shards:
            wanted = min(shard.samples, math.ceil(PRECISE_IMAGES / self._gpus))
            batches = math.ceil(wanted / BATCH_SIZE)
            for _ in range(batches):
                images, _labels = shard.next_batch(wanted // batches)
                yield images.contiguous(memory_format=self._format)

    def _noise_scale(self, epoch: int) -> NoiseScale | None:
        """Estimate the gradient noise scale from 3 batches or more; the model is unchanged."""
        running = [buffer.clone() for buffer in self._buffers]
        self.model.train()
        self._draw(epoch)
        size, gradients = self.study.reference_batch, []
        for _ in range(min(NOISE_BATCHES, self._shards[0].samples // size)):
            self._gradients.zero_()
            images, labels = self._shards[0].next_batch(size)
            losses(self._logits(images), labels, 0.0)[0].backward()
            gradients.append(self._gradients.clone())
        torch._foreach_copy_(self._buffers, running)
        return noise_scale(torch.stack(gradients), size) if len(gradients) > 2 else None

    def _launch(self, size: int, update: Technique) -> None:
        """Launch one update on `size` images of each rank."""
        self._gradients.zero_()
        mean_loss = torch.zeros((), device=self._device)
        for rank, shard in enumerate(self._shards):
            images, labels = shard.next_batch(size)
            objective, loss, correct = losses(self._logits(images), labels, update.label_smoothing)
            (objective / self._gpus).backward()
            mean_loss += loss.detach() / self._gpus
            self._correct += correct
            if rank == 0 and self._gpus > 1:
                torch._foreach_copy_(self._of_rank_0, self._buffers)
        if self._gpus > 1:
            torch._foreach_copy_(self._buffers, self._of_rank_0)
        self._optimizer.step()
        self._loss_sum += mean_loss * (size * self._gpus)
        self._losses.index_copy_(0, self._update, mean_loss.unsqueeze(0))
        self._update += 1

    def _capture(self, size: int, update: Technique) -> None:
        """Capture the update as a CUDA graph if there is none yet; this changes the weights."""
        if (size, update) in self._captured:
            return
        self.model.train()
        with algorithm_search(size == self._sizes[0]):
            launch = partial(self._launch, size, update)
            self._captured.capture((size, update), partial(self._draw, 0), launch)

    def _draw(self, epoch: int) -> None:
        """Begin an epoch: draw its order and crops, and reset its update counter."""
        for shard in self._shards:
            shard.draw(epoch)
        self._update.zero_()

    def _autocast(self) -> torch.autocast:
        return torch.autocast(self._device.type, torch.bfloat16, enabled=self._bf16)

    def _logits(self, images: Tensor) -> Tensor:
        with self._autocast():
            logits: Tensor = self.model(images.contiguous(memory_format=self._format))
        return logits.float()


def _in_parts(norm: nn.BatchNorm2d, size: int, images: Tensor) -> Tensor:
    """Let `norm` normalize every `size` images separately in training; 0 means all at once."""
    if not size or not norm.training:
        return nn.BatchNorm2d.forward(norm, images)
    return torch.cat([nn.BatchNorm2d.forward(norm, part) for part in images.split(size)])
