"""Engine `resident`: training that is optimized for speed.

Images stay on the GPU and are augmented there. Activations are channels-last, and matrix products
use bf16 or TF32. Fused kernels compute norms, residual additions and ReLUs; torch.compile compiles
the rest. The host launches a whole step, from batch to update, as one CUDA graph. Each of these is
an option. A run's record lists the options that were applied, and why others were not.
"""

from collections.abc import Iterator
from itertools import chain
from typing import Any

import torch
from torch import nn

from scaling.core import environment
from scaling.data.dataset import ImageDataset
from scaling.data.resident import ResidentImages
from scaling.launch import outcome
from scaling.launch.ranks import Rank
from scaling.launch.run_spec import RunSpec
from scaling.launch.stall import StepProgress
from scaling.models.build import blocks
from scaling.models.resnet import ResNet18
from scaling.registry.resident import KERNELS, Options
from scaling.registry.strategy import STRATEGIES
from scaling.training.captured_steps import refusals
from scaling.training.foreach_sgd import FlatShards, ForeachSGD
from scaling.training.step import DeviceStep, InPrecision, allow_tf32
from scaling.training.strategies import Wrapped
from scaling.training.trainer import EpochResult, Trainer, TrainIterations

CUDNN_ALGORITHMS = 10
"""Number of algorithms that cuDNN tries for each convolution (PyTorch's default)."""
EXHAUSTIVE_SEARCH_UP_TO = 512
"""Largest batch per GPU for which cuDNN tries all algorithms, with resnet18-cifar. On one H200,
this shortens steps by 1 to 2 % up to 512. At 2048, it only makes the search 40 s longer."""
UPDATES: dict[str, type[ForeachSGD]] = {"ddp": ForeachSGD, "zero1": FlatShards}
"""Maps the name of a strategy to its optimizer class. Other strategies wrap the model."""
PREPARED_SHARE = 0.05
"""A smaller last batch is compiled only if it has at least this fraction of an epoch's images."""


class Resident(Trainer):
    """Trainer of engine `resident`.

    The learning rate schedule spans `spec.epochs` epochs; later epochs keep the last rate.
    `EpochResult.loader_seconds` is the host time for shuffling images. If GPU memory cannot hold
    all images, it includes the time for copying them to the GPU.
    """

    step: DeviceStep

    def __init__(self, spec: RunSpec, rank: Rank, model: nn.Module, dataset: ImageDataset) -> None:
        super().__init__(spec, rank)
        options, cell = Options(**spec.recipe_options), spec.cell
        self._model, self._rule = model, options
        self._replicated = rank.processes == 1 and cell.gpus > 1
        self._images = ResidentImages(
            *(dataset, spec.crop_padding, spec.horizontal_flip, rank.device),
            *(rank.index, rank.processes, cell.seed),
        )
        several, strategy = rank.processes > 1, STRATEGIES.find(cell.strategy)
        wraps = several and cell.strategy not in UPDATES
        refused: list[str] = []
        if wraps and options.cuda_graph:
            side = dataset.train_images.shape[1]
            refused = refusals(model, torch.zeros(2, 3, side, side, device=rank.device))
        allow_tf32(options.precision != "float32")
        # DataParallel starts new threads in each step. In each, cuDNN would search again.
        torch.backends.cudnn.benchmark = not self._replicated
        exhaustive = isinstance(model, ResNet18) and cell.batch_size <= EXHAUSTIVE_SEARCH_UP_TO
        torch.backends.cudnn.benchmark_limit = 0 if exhaustive else CUDNN_ALGORITHMS
        # fully_shard supports only contiguous parameters.
        if options.channels_last and (strategy.replicates or not several):
            model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        model.train()
        batch_size = cell.global_batch_size if self._replicated else cell.batch_size
        self._sizes = _batch_sizes(self._images.samples, batch_size)
        self._blocks = blocks(model) or [model]
        self._wrap = lambda model: strategy.wrap.load()(model, rank, cell.gpus)
        self._wrapped: Wrapped | None = self._wrap(model) if wraps else None
        # In each step, host threads of DataParallel replicate the model.
        possible = {
            "compile": not self._replicated,
            "cuda_graph": not self._replicated and not refused,
            "fused_norms": not (self._replicated or wraps) and isinstance(model, ResNet18),
        }
        off = {switch: False for switch, can in possible.items() if not can}
        options, notes = self._prepared(options.model_copy(update=off))
        self.applied = {
            **options.model_dump(exclude_defaults=True),
            "precision": environment.applied_precision(options.precision, rank.device.type),
            "images": "streamed" if self._images.streamed else "resident",
            "notes": refused + notes,
        }
        rate, rest = options.peaks(spec.learning_rate)
        shares = options.shares(spec.epochs * len(self._sizes))
        self.rates = [(share * rate, share * rest) for share in shares]
        self._captures = options.cuda_graph
        if self._captures and several:
            self.progress = StepProgress(len(self._sizes), rank.device)

    def _prepared(self, options: Options) -> tuple[Options, list[str]]:
        """Build the step. Return the options in effect, and a note on each option turned off.

        If capture or compilation fails, the step is built again without that option.
        """
        notes: list[str] = []
        while True:
            self._build(options)
            try:
                if options.cuda_graph:
                    self.step.capture(self._sizes)
                elif options.compile:
                    self.step.compile()
                return options, notes
            except Exception as error:
                if outcome.classify(error) or not (options.cuda_graph or options.compile):
                    raise
                self._model.zero_grad()
                switch = "cuda_graph" if options.cuda_graph else "compile"
                notes.append(f"without {switch}: {outcome.first_sentence(error)}")
                options = options.model_copy(update={switch: False})

    def _build(self, options: Options) -> None:
        """Create the optimizer, the forward pass and the step that `options` describe."""
        spec, rank, bf16 = self._spec, self._rank, options.precision == "bf16"
        if self._wrapped:
            self.replica, trained = self._wrapped, self._wrapped.model
            _compile_blocks(self._blocks, options.compile)
        else:
            working = torch.bfloat16 if bf16 and not self._replicated else None
            update = UPDATES[spec.cell.strategy] if rank.processes > 1 else ForeachSGD
            flat = update(self._model, rank.processes, working, options.compile)
            self.replica, trained = flat, flat.parallel(_forward_pass(flat, options))
        self.replica.start(spec.sgd, self._rule)
        self.model = InPrecision(trained, bf16)
        if self._replicated:
            self.model = self._wrap(self.model).model
        self.step = DeviceStep(
            *(self.model, self.replica, rank.device, spec.micro_batches, self._rule),
            *(self._images, _sizes_to_compile(self._sizes)),
            compiled=options.compile,
            channels_last=options.channels_last,
        )

    def run_epoch(self, epoch: int) -> EpochResult:
        return self._run(epoch, self._sizes)

    def in_memory(self, limit: int) -> TrainIterations:
        def train(count: int, untimed: int = 0) -> EpochResult:
            return self._run(0, self._sizes[: min(count, limit)], untimed)

        return train

    def close(self) -> None:
        self.step.release()

    def _run(self, epoch: int, sizes: list[int], untimed: int = 0) -> EpochResult:
        self.model.train()
        if self._captures:
            self.step.capture(self._sizes)  # Steps without communication differ.
        before = chain.from_iterable(self._batches(0, sizes[:1]) for _ in range(untimed))
        batches = chain(before, self._batches(epoch, sizes))
        return self._train(batches, epoch, len(sizes), untimed)

    def _batches(self, epoch: int, sizes: list[int]) -> Iterator[tuple[int, int]]:
        """Yield (number of the update, batch size) for each batch. Epoch 1 starts at update 0.

        In epoch 0, for extra steps, numbers are negative and the learning rate does not change.
        """
        self._images.draw(epoch)
        for place, size in enumerate(sizes, start=(epoch - 1) * len(self._sizes)):
            self._images.stage(size)
            yield place, size

    def _update(self, batch: tuple[int, int]) -> int:
        place, size = batch
        if 0 <= place < len(self.rates):
            self.replica.set_rates(*self.rates[place])
        self.step.run(size)
        return size


def _compile_blocks(blocks: list[nn.Module], compiled: bool) -> None:
    """Compile each block with torch.compile, or undo this if `compiled` is False.

    Blocks of one class share PyTorch's recompile limit, so the limit is increased.
    """
    torch._dynamo.config.recompile_limit = 8 + 2 * len(blocks)
    for block in blocks:
        block._compiled_call_impl = None
        if compiled:
            block.compile(dynamic=False)


def _forward_pass(replica: ForeachSGD, options: Options) -> nn.Module:
    """Return a module equivalent to `replica.model`, fused or compiled according to `options`."""
    model = replica.model
    if options.fused_norms and isinstance(model, ResNet18):
        model = KERNELS.load()(model, options.compile, replica.aside)
    elif options.compile:
        # While the backward pass computes one part, gradients of later parts are sent.
        parts = model.parts if isinstance(model, ResNet18) else [model]
        compiled: list[Any] = [torch.compile(part, dynamic=False) for part in parts]
        model = nn.Sequential(*compiled)
    return model


def _batch_sizes(samples: int, batch_size: int) -> list[int]:
    full, rest = divmod(samples, batch_size)
    return [batch_size] * full + ([rest] if rest else [])


def _sizes_to_compile(sizes: list[int]) -> list[int]:
    """Return each batch size whose batches sum to at least `PREPARED_SHARE` of all images."""
    least = PREPARED_SHARE * sum(sizes)
    return [size for size in dict.fromkeys(sizes) if size * sizes.count(size) >= least]
