"""Plan runs at a global batch, and train them on one device, one after the other.

The global batch of several GPUs is emulated on one: each update runs over the ranks' shards in turn
and accumulates their gradients. As with DistributedDataParallel each rank's batch is normalized
separately, the gradient is the mean over ranks, and the running statistics are rank 0's.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import cycle

import torch
from torch import Tensor, nn
from torch.optim.swa_utils import update_bn

from scaling.core.section import Precision
from scaling.core.training_options import LargeBatches, Sgd
from scaling.data.resident import ResidentImages
from scaling.models.resnet import ResNet18
from scaling.registry.update_rule import Technique, UpdateRule, gpus_of
from scaling.training.evaluation import evaluate
from scaling.training.flat_sgd import FlatSGD
from scaling.training.step import Batch, DeviceStep, InPrecision, algorithm_search, allow_tf32
from scaling.training.trainer import TrainingData, finite

BATCH_SIZE, PRECISE_IMAGES = 2000, 10_000
"""Maximum batch size and number of images for precise statistics: Wu and Johnson 2021
(arXiv:2105.07576, section 3) need 1,000 to 10,000."""


class Study(LargeBatches, Sgd):
    """Options shared by all runs; the learning rate is for the reference batch."""

    model_width: int = 64
    """Channels of ResNet-18's first stage."""
    precision: Precision = "float32"
    """Of the recipes: `float32`, `tf32` or `bf16`."""

    def gpus_of(self, global_batch: int) -> int:
        """Return the number of GPUs that share a global batch."""
        return gpus_of(global_batch, self.reference_batch, self.gpus)

    def batch_sizes(self, train_images: int, global_batch: int) -> list[int]:
        """Return the images per GPU of each update of an epoch, as DistributedSampler has them."""
        gpus = self.gpus_of(global_batch)
        full, rest = divmod(math.ceil(train_images / gpus), global_batch // gpus)
        return [global_batch // gpus] * full + ([rest] if rest else [])


@dataclass(frozen=True)
class Run:
    """All that decides the result of one run at a global batch; equal runs give equal results.

    `rates` has one learning rate per update (Muon's, if used), and `rest` those of parameters that
    Muon leaves to SGD; `rule` omits what these and `momentum` contain. A `held_out` run trains
    without the images that it is evaluated on; `precise` is by statistics of training images.
    """

    seed: int
    epochs: int
    rates: tuple[float, ...]
    rest: tuple[float, ...]
    momentum: float
    rule: UpdateRule
    held_out: bool = False
    precise: bool = False


OF_THE_RATES = ("warmup_share", "decay", "momentum", "rest_rate")
"""Options of an update rule that a run's other fields contain."""


def run_of(
    study: Study,
    technique: Technique,
    global_batch: int,
    train_images: int,
    factor: float,
    seed: int,
    held_out: bool = False,
) -> Run:
    """Return the run of `technique` at `factor` times its rule's rate, on `train_images`.

    With `equal_updates` it has as many epochs as give the reference batch's number of updates. A
    peak rate of at most the base rate has no warm-up.
    """
    per_epoch, epochs = len(study.batch_sizes(train_images, global_batch)), study.epochs
    if technique.equal_updates:
        wanted = epochs * len(study.batch_sizes(train_images, study.reference_batch))
        epochs = max(epochs, min(math.ceil(wanted / per_epoch), study.max_epochs))
    updates, scale = per_epoch * epochs, global_batch / study.reference_batch
    base, peak = (technique.rate(study.learning_rate, by) for by in (1.0, scale))
    peak *= factor
    warmup = min(updates, round(technique.warmup_epochs * per_epoch)) if peak > base else 0
    rising = [base + (peak - base) * update / warmup for update in range(warmup)]
    rates = (*rising, *(peak * share for share in technique.shares(updates - warmup)))
    rest_peak = technique.peaks(study.learning_rate)[1]
    rest = tuple(rest_peak * rate / peak for rate in rates) if technique.muon else rates
    kept = technique.model_dump(include=UpdateRule.model_fields.keys() - OF_THE_RATES)
    rule = UpdateRule(**kept | {"muon": float(technique.muon > 0)})
    momentum = technique.momentum_of(study.momentum, scale)
    precise = technique.precise_batch_norm or study.precise_batch_norm
    return Run(seed, epochs, rates, rest, momentum, rule, held_out, precise)


class RanksInTurn:
    """The images of a global batch's ranks: one batch of each rank in turn, from rank 0 on.

    Only the batches of rank 0 move the running statistics of `norms`.
    """

    def __init__(self, shards: list[ResidentImages], norms: list[nn.BatchNorm2d]) -> None:
        self._shards, self._norms = shards, norms

    def draw(self, epoch: int) -> None:
        """Draw an epoch's order and crops."""
        for shard in self._shards:
            shard.draw(epoch)
        self._turns = cycle(enumerate(self._shards))
        self._track(True)

    def stage(self, size: int) -> None:
        """Do nothing: all images are on the device."""

    def next_batch(self, size: int) -> Batch:
        rank, shard = next(self._turns)
        self._track(rank == 0)
        return shard.next_batch(size)

    def _track(self, statistics: bool) -> None:
        for norm in self._norms:
            norm.track_running_stats = statistics


class Engine:
    """Trains runs at `global_batch`; each run starts with new weights, order and optimizer state.

    On a GPU an update is a CUDA graph, captured once per batch size and kind of optimizer.
    """

    def __init__(
        self, study: Study, dataset: TrainingData, global_batch: int, device: torch.device
    ) -> None:
        gpus = study.gpus_of(global_batch)
        self.study, self.classes = study, len(dataset.data.classes)
        self.captures, images = device.type == "cuda", len(dataset.data.train_images)
        self._sizes = [gpus * size for size in study.batch_sizes(images, global_batch)]
        allow_tf32(study.precision != "float32")
        self.model = ResNet18(study.model_width, self.classes).to(device)
        if self.captures:
            self.model.to(memory_format=torch.channels_last)
        norms = [one for one in self.model.modules() if isinstance(one, nn.BatchNorm2d)]
        padding, flip = study.crop_padding, study.horizontal_flip
        shard = partial(ResidentImages, dataset.data, dataset.mean, dataset.std, padding, flip)
        self._shards = [shard(device, rank, gpus, seed=0) for rank in range(gpus)]
        self._images = RanksInTurn(self._shards, norms)
        self._replica = FlatSGD(self.model)
        self._trained = InPrecision(self.model, study.precision == "bf16")
        self._evaluate = partial(evaluate, self._trained, dataset, device)
        self._step = DeviceStep(
            *(self._trained, self._replica, device, gpus, UpdateRule()),
            *(self._images, self._sizes[:1]),
            channels_last=self.captures,
        )

    def start(self, run: Run) -> None:
        """Begin a run: initialize weights, momenta and order."""
        torch.manual_seed(run.seed)
        fresh = ResNet18(self.study.model_width, self.classes)
        self.model.load_state_dict(fresh.state_dict())
        decay = self.study.weight_decay
        self._replica.start({"lr": 0.0, "momentum": run.momentum, "weight_decay": decay}, run.rule)
        self._step.rule = run.rule
        for shard in self._shards:
            shard.seed = run.seed
        self.model.train()
        if self.captures:
            with algorithm_search(True):
                self._step.capture(self._sizes)

    def train_epoch(self, run: Run, epoch: int) -> dict[str, float | None]:
        """Train epoch number `epoch` (from 1) of the run that `start` began, and evaluate.

        Returns the mean `train_loss` and `train_accuracy` of its images, and `test_loss` and
        `test_accuracy` after it; if a loss is not finite it is null, as are both accuracies.
        """
        self.model.train()
        self._step.reset()
        self._images.draw(epoch)
        first, sums = (epoch - 1) * len(self._sizes), []
        for rate, rest, size in zip(run.rates[first:], run.rest[first:], self._sizes, strict=False):
            self._replica.set_rates(rate, rest)
            self._step.loss_sum.zero_()
            self._step.run(size)
            sums.append(self._step.loss_sum.clone())
        images = sum(self._sizes)
        found = {
            "train_loss": finite(sum(torch.stack(sums).tolist()) / images),
            "train_accuracy": self._step.correct.item() / images,
            **(self._precise(epoch) if run.precise else self._evaluate()),
        }
        if None in found.values():
            found |= {"train_accuracy": None, "test_accuracy": None}
        return found

    def _precise(self, epoch: int) -> dict[str, float | None]:
        """Evaluate with batch norms' statistics of the epoch's images; the model is unchanged."""
        buffers = list(self.model.buffers())
        kept = [buffer.clone() for buffer in buffers]
        self._images.draw(epoch)
        update_bn(self._training_images(), self._trained)
        found = self._evaluate()
        torch._foreach_copy_(buffers, kept)
        return found

    def _training_images(self) -> Iterator[Tensor]:
        """Yield up to `PRECISE_IMAGES` of the epoch's images, in equal batches."""
        for shard in self._shards:
            wanted = min(shard.samples, math.ceil(PRECISE_IMAGES / len(self._shards)))
            batches = math.ceil(wanted / BATCH_SIZE)
            for _ in range(batches):
                yield shard.next_batch(wanted // batches)[0]
