"""Recipe `tuned`: what the GPUs give when nothing holds them back.

Training images live on the GPU and are augmented there, activations are channels-last, matrix
products run in bf16 or TF32, batch norms and what follows them have kernels of their own, the rest
is compiled, and one CUDA graph holds a whole step: batch, forward, backward, gradient all-reduce,
update. The host only replays it and waits once an epoch.

Every switch is an option of the recipe. DataParallel on several GPUs copies the model each step
from host threads, where neither kernels of our own nor a compiled model nor a CUDA graph can be:
there all three are off, and the record says so.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from time import perf_counter

import torch
from torch import nn

from scaling.data.resident import ResidentImages
from scaling.launch.ranks import Rank
from scaling.launch.run_spec import RunSpec
from scaling.launch.stall import StepProgress
from scaling.models.resnet import ResNet18
from scaling.registry.recipes.tuned import Options
from scaling.registry.strategy import STRATEGIES
from scaling.training.flat_sgd import FlatSGD, bucket_bytes
from scaling.training.step import InPrecision, Step
from scaling.training.trainer import EpochResult, TrainingData, TrainIterations, finite

CUDNN_ALGORITHMS = 10
"""How many algorithms cuDNN tries for a convolution (PyTorch's default)."""
EXHAUSTIVE_SEARCH_UP_TO = 512
"""The largest batch for which it tries all: on one H200 that gained 1 to 2 % up to here and nothing
at 2048, where the slowest algorithms made the search 40 s longer.
"""
PREPARED_SHARE = 0.05
"""From this share of an epoch's images on, a smaller last batch is prepared as whole ones are."""


class Tuned:
    """Training at the GPUs' pace; see `recipes.trainer.Trainer`.

    Model, schedule and distribution of the augmentation are those of `course`; the last, smaller
    batch of an epoch is trained on as well. `loader_seconds` is the host time of drawing the
    epoch's order.
    """

    def __init__(self, spec: RunSpec, rank: Rank, model: ResNet18, dataset: TrainingData) -> None:
        options = _options(spec, rank)
        cell = spec.cell
        replicated = rank.processes == 1 and cell.gpus > 1
        self._rank, self._gpus = rank, cell.gpus
        self._images = ResidentImages(
            dataset.data,
            dataset.mean,
            dataset.std,
            spec.crop_padding,
            spec.horizontal_flip,
            rank.device,
            rank.index,
            rank.processes,
            cell.seed,
        )
        _set_precision(options.precision)
        # DataParallel's replicas are new threads in each step: cuDNN would search again in each.
        torch.backends.cudnn.benchmark = not replicated
        torch.backends.cudnn.benchmark_limit = (
            0 if cell.batch_size <= EXHAUSTIVE_SEARCH_UP_TO else CUDNN_ALGORITHMS
        )
        if options.channels_last:
            model.to(memory_format=torch.channels_last)
        model.train()
        self._optimizer = FlatSGD(
            model,
            spec.learning_rate,
            spec.momentum,
            spec.weight_decay,
            rank.processes,
            torch.bfloat16 if options.precision == "bf16" and not replicated else None,
            options.compile,
        )
        trained = _forward_pass(self._optimizer.trained, options)
        self.model: nn.Module = InPrecision(trained, options.precision == "bf16")
        if replicated:
            wrap = STRATEGIES.find(cell.strategy).wrap.load()
            self.model = wrap(self.model, rank, cell.gpus).model
        self.applied = options.model_dump()
        batch_size = cell.global_batch_size if replicated else cell.batch_size
        self._sizes = _batch_sizes(self._images.samples, batch_size)
        prepared = _worth_preparing(self._sizes)
        self.compiled_batch_sizes = prepared if options.compile else []
        self._step = Step(
            model,
            self.model,
            self._images,
            self._optimizer,
            options,
            rank.processes,
            rank.device,
            prepared,
        )
        self._captured, self._captured_local = options.cuda_graph, False
        self.progress: StepProgress | None = None
        if self._captured:
            self._step.capture(self._sizes)
            if rank.processes > 1:
                self.progress = StepProgress(len(self._sizes), rank.device)

    @property
    def bucket_bytes(self) -> list[int]:
        return bucket_bytes(self._optimizer.trained) if self._rank.processes > 1 else []

    def without_communication(self) -> AbstractContextManager[None] | None:
        return self._local_gradients() if self._rank.processes > 1 else None

    @contextmanager
    def _local_gradients(self) -> Iterator[None]:
        self._optimizer.enabled = False
        if self._captured and not self._captured_local:
            self._step.capture(self._sizes)
            self._captured_local = True
        try:
            yield
        finally:
            self._optimizer.enabled = True

    def run_epoch(self, epoch: int) -> EpochResult:
        return self._train(epoch, self._sizes)

    def in_memory(self, limit: int) -> TrainIterations:
        return lambda count: self._train(0, self._sizes[: min(count, limit)])

    def close(self) -> None:
        self._step.release()

    def _train(self, epoch: int, sizes: list[int]) -> EpochResult:
        self.model.train()
        self._step.reset()
        self._rank.barrier()
        self._rank.synchronize(self._gpus)
        progress = self.progress
        if progress:
            progress.start(epoch, len(sizes))
        started = perf_counter()
        self._images.draw(epoch)
        drawn = perf_counter()
        for step, size in enumerate(sizes, start=1):
            self._step.run(size)
            if progress:
                progress.launch(step)
        self._rank.synchronize(self._gpus)
        seconds = perf_counter() - started
        if progress:
            progress.end()

        return EpochResult(
            seconds=seconds,
            loader_seconds=drawn - started,
            iterations=len(sizes),
            samples=sum(sizes),
            train_loss=finite(self._step.loss_sum.item() / sum(sizes)),
            train_accuracy=self._step.correct.item() / sum(sizes),
        )


def _options(spec: RunSpec, rank: Rank) -> Options:
    """The switches as they can be applied to this cell."""
    options = Options(**spec.recipe_options)
    if rank.processes == 1 and spec.cell.gpus > 1:
        off = {"compile": False, "cuda_graph": False, "fused_norms": False}
        options = options.model_copy(update=off)
    return options


def _forward_pass(model: ResNet18, options: Options) -> nn.Module:
    """What computes the same as `model` in training mode, the way the switches say."""
    if options.fused_norms:
        from scaling.models.fused import FusedResNet  # needs Triton, which comes with CUDA

        return FusedResNet(model, options.compile)
    if options.compile:
        model.early = torch.compile(model.early, dynamic=False)  # type: ignore[method-assign]
        model.late = torch.compile(model.late, dynamic=False)  # type: ignore[method-assign]
    return model


def _set_precision(precision: str) -> None:
    allowed = precision in ("tf32", "bf16")
    torch.backends.cuda.matmul.allow_tf32 = allowed
    torch.backends.cudnn.allow_tf32 = allowed


def _batch_sizes(samples: int, batch_size: int) -> list[int]:
    full, rest = divmod(samples, batch_size)
    return [batch_size] * full + ([rest] if rest else [])


def _worth_preparing(sizes: list[int]) -> list[int]:
    """The sizes that have a share of an epoch's images which is worth the time of preparing."""
    least = PREPARED_SHARE * sum(sizes)
    return [size for size in dict.fromkeys(sizes) if size * sizes.count(size) >= least]
