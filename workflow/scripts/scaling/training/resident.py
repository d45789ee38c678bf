"""Engine `resident`: training at the highest speed of the GPUs.

Training images stay on the GPU and are augmented there, activations are channels-last, matrix
products run in bf16 or TF32, batch norms and the operations after them have fused kernels, the rest
is compiled, and one CUDA graph contains a whole step: batch, forward, backward, gradient
all-reduce, update. The host only replays it and synchronizes once an epoch. Every switch is an
option; the record says which were applied, and why others were not. DataParallel on several GPUs
replicates the model in each step from host threads, which rules out fused kernels, a compiled model
and CUDA graphs. The fused kernels are for the lab's ResNet-18; other models are compiled as a
whole. Other strategies than `ddp` send messages that are not captured in a CUDA graph here, and are
compiled block by block.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from time import perf_counter
from typing import Any

import torch
from torch import Tensor, nn

from scaling.core import environment
from scaling.core.grid import Cell
from scaling.data import streamed
from scaling.data.resident import ResidentImages
from scaling.data.streamed import StreamedImages
from scaling.launch import outcome
from scaling.launch.ranks import Rank
from scaling.launch.run_spec import RunSpec
from scaling.launch.stall import StepProgress
from scaling.models import compiled
from scaling.models.resnet import ResNet18
from scaling.registry.engine import ENGINES
from scaling.registry.resident import KERNELS, Options
from scaling.registry.strategy import STRATEGIES
from scaling.registry.update_rule import UpdateRule
from scaling.training.flat_sgd import FlatSGD, bucket_bytes
from scaling.training.step import InPrecision, Step
from scaling.training.trainer import EpochResult, TrainingData, TrainIterations, finite
from scaling.training.wrapped_sgd import WrappedSGD

CUDNN_ALGORITHMS = 10
"""The number of algorithms that cuDNN tries for a convolution (PyTorch's default)."""
EXHAUSTIVE_SEARCH_UP_TO = 512
"""The largest batch of the lab's model for which cuDNN tries all algorithms: on one H200 that
gained 1 to 2 % up to here and nothing at 2048, where slow algorithms made the search 40 s
longer."""
PREPARED_SHARE = 0.05
"""The share of an epoch's images above which a smaller last batch is compiled too."""


class Resident:
    """Trainer of engine `resident`; see `trainer.Trainer`.

    Model and augmentation are distributed as in `plain`, as is the learning rate schedule by
    default. Another schedule spans the planned epochs, and later ones keep its last rate. The
    smaller last batch of an epoch is trained on, too. `loader_seconds` is the host time for drawing
    the epoch's order and for waiting for images that do not fit into GPU memory.
    """

    def __init__(self, spec: RunSpec, rank: Rank, model: nn.Module, dataset: TrainingData) -> None:
        options, cell = Options(**spec.recipe_options), spec.cell
        self._spec, self._rank, self._model = spec, rank, model
        self._rule: UpdateRule = options
        replicated = rank.processes == 1 and cell.gpus > 1
        streams = streamed.must_stream(dataset.data, spec.crop_padding, rank.device)
        self._images = (StreamedImages if streams else ResidentImages)(
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
        # DataParallel uses new threads in each step, and cuDNN would search again in each.
        torch.backends.cudnn.benchmark = not replicated
        exhaustive = isinstance(model, ResNet18) and cell.batch_size <= EXHAUSTIVE_SEARCH_UP_TO
        torch.backends.cudnn.benchmark_limit = 0 if exhaustive else CUDNN_ALGORITHMS
        # fully_shard supports only contiguous parameters.
        sharded = rank.processes > 1 and not STRATEGIES.find(cell.strategy).replicates
        if options.channels_last and not sharded:
            model.to(memory_format=torch.channels_last)
        model.train()
        batch_size = cell.global_batch_size if replicated else cell.batch_size
        self._sizes = _batch_sizes(self._images.samples, batch_size)
        own_messages = cell.strategy in ENGINES.find(spec.engine).sweep_kinds
        self._wrapped: WrappedSGD | None = None
        if rank.processes > 1 and not own_messages:
            self._wrapped = WrappedSGD(spec, rank, model)
        self._fresh: ExitStack | None = None
        options, notes = self._prepared(_possible(options, model, rank, cell, own_messages))
        self.applied = {
            **options.model_dump(exclude_defaults=True),
            "precision": environment.applied_precision(options.precision, rank.device.type),
            "images": "streamed" if streams else "resident",
            "notes": notes,
        }
        self._shares = options.shares(spec.epochs * len(self._sizes))
        self.compiled_batch_sizes = _sizes_to_compile(self._sizes) if options.compile else []
        self._captured, self._captured_local = options.cuda_graph, False
        self.sent_share = 1.0
        self.progress: StepProgress | None = None
        if self._captured and rank.processes > 1:
            self.progress = StepProgress(len(self._sizes), rank.device)

    def _prepared(self, options: Options) -> tuple[Options, list[str]]:
        """Prepare the steps; drop options that fail with this model, and record why.

        An out-of-memory error is raised. If compiling fails it is first repeated with an empty
        cache, as the cache may be damaged.
        """
        notes: list[str] = []
        while True:
            self._build(options)
            try:
                if options.cuda_graph:
                    self._step.capture(self._sizes)
                elif options.compile:
                    self._step.compile()
                return options, notes
            except Exception as error:
                if outcome.classify(error) or not (options.cuda_graph or options.compile):
                    raise
                self._optimizer.release()
                self._model.zero_grad()
                if options.compile and self._fresh is None:
                    self._fresh = compiled.anew()
                    continue
                switch = "cuda_graph" if options.cuda_graph else "compile"
                notes.append(f"without {switch}: {outcome.first_sentence(error)}")
                options = options.model_copy(update={switch: False})

    def _build(self, options: Options) -> None:
        """Build the optimizer, forward pass and step for these options."""
        spec, rank, cell = self._spec, self._rank, self._spec.cell
        replicated = rank.processes == 1 and cell.gpus > 1
        self._optimizer: FlatSGD | WrappedSGD
        if self._wrapped:
            self._optimizer = self._wrapped
            self._wrapped.compile(options.compile)
            trained = self._wrapped.trained
        else:
            in_bf16 = options.precision == "bf16" and not replicated
            self._optimizer = FlatSGD(
                self._model,
                spec.learning_rate,
                spec.momentum,
                spec.weight_decay,
                rank.processes,
                torch.bfloat16 if in_bf16 else None,
                options.compile,
                self._rule,
            )
            trained = _forward_pass(self._optimizer.trained, options)
        self.model: nn.Module = InPrecision(trained, options.precision == "bf16")
        if replicated:
            wrap = STRATEGIES.find(cell.strategy).wrap.load()
            self.model = wrap(self.model, rank, cell.gpus).model
        self._step = Step(
            self._model,
            self.model,
            self._images,
            self._optimizer,
            options,
            1 if self._wrapped else rank.processes,
            rank.device,
            _sizes_to_compile(self._sizes),
            spec.micro_batches,
        )

    @property
    def bucket_bytes(self) -> list[int]:
        if self._wrapped:
            return self._wrapped.wrapped.bucket_bytes
        return bucket_bytes(self._model) if self._rank.processes > 1 else []

    def without_communication(self) -> AbstractContextManager[None] | None:
        if self._wrapped:
            return self._wrapped.wrapped.without_communication()
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
        if self._fresh:
            self._fresh.close()

    def _train(self, epoch: int, sizes: list[int]) -> EpochResult:
        self.model.train()
        self._step.reset()
        self._rank.barrier()
        self._rank.synchronize(self._spec.cell.gpus)
        progress = self.progress
        if progress:
            progress.start(epoch, len(sizes))
        waited, started = self._images.waited, perf_counter()
        self._images.draw(epoch)
        drawn = perf_counter()
        before = (epoch - 1) * len(self._sizes)
        for step, size in enumerate(sizes, start=1):
            if 0 <= before < len(self._shares):
                self._optimizer.follow(self._shares[before + step - 1])
            self._step.run(size)
            if progress:
                progress.launch(step)
        self._rank.synchronize(self._spec.cell.gpus)
        seconds = perf_counter() - started
        if progress:
            progress.end()

        return EpochResult(
            seconds=seconds,
            loader_seconds=drawn - started + self._images.waited - waited,
            iterations=len(sizes),
            samples=sum(sizes),
            train_loss=finite(self._step.loss_sum.item() / sum(sizes)),
            train_accuracy=self._step.correct.item() / sum(sizes),
        )


def _possible(
    options: Options, model: nn.Module, rank: Rank, cell: Cell, own_messages: bool
) -> Options:
    """Return the switches that can be applied to this model and cell."""
    off: list[str] = []
    if rank.processes == 1 and cell.gpus > 1:
        off = ["compile", "cuda_graph", "fused_norms"]
    elif rank.processes > 1 and not own_messages:
        off = ["cuda_graph", "fused_norms"]
    elif not isinstance(model, ResNet18):
        off = ["fused_norms"]
    return options.model_copy(update=dict.fromkeys(off, False))


def _forward_pass(model: nn.Module, options: Options) -> nn.Module:
    """Return a function equal to `model` in training mode, built as the switches say."""
    if options.fused_norms and isinstance(model, ResNet18):
        fused: nn.Module = KERNELS.load()(model, options.compile)
        return fused
    if not options.compile:
        return model
    if isinstance(model, ResNet18):
        return CompiledHalves(model)
    compiled: Any = torch.compile(model, dynamic=False)
    return compiled


class CompiledHalves(nn.Module):
    """`model` with each half compiled separately.

    So the late half's gradients are sent while the backward pass is in the early half.
    """

    def __init__(self, model: ResNet18) -> None:
        super().__init__()
        self._model = model
        self._early = torch.compile(model.early, dynamic=False)
        self._late = torch.compile(model.late, dynamic=False)

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self._late(self._early(images))
        return logits


def _set_precision(precision: str) -> None:
    allowed = precision in ("tf32", "bf16")
    torch.backends.cuda.matmul.allow_tf32 = allowed
    torch.backends.cudnn.allow_tf32 = allowed


def _batch_sizes(samples: int, batch_size: int) -> list[int]:
    full, rest = divmod(samples, batch_size)
    return [batch_size] * full + ([rest] if rest else [])


def _sizes_to_compile(sizes: list[int]) -> list[int]:
    """Return the batch sizes with enough of an epoch's images to be worth compiling."""
    least = PREPARED_SHARE * sum(sizes)
    return [size for size in dict.fromkeys(sizes) if size * sizes.count(size) >= least]
