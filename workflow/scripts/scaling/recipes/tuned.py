"""Recipe `tuned`: what the GPUs give when nothing holds them back.

Training images live on the GPU and are augmented there, activations are channels-last, matrix
products run in bf16 or TF32, the model is compiled, and one CUDA graph holds a whole step: batch,
forward, backward, gradient all-reduce, update. The host only replays it and waits once an epoch.

Every switch is an option of the recipe. DataParallel on several GPUs copies the model each step
from host threads, which neither a compiled model nor a CUDA graph can hold: there both are off, and
the record says so.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from time import perf_counter

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.parallel import DataParallel

from scaling.errors import UserError
from scaling.flat_sgd import FlatSGD, bucket_bytes
from scaling.ranks import Rank
from scaling.recipes.trainer import EpochResult, Material, TrainIterations, finite
from scaling.resident import ResidentImages
from scaling.resnet import ResNet18
from scaling.run_spec import RunSpec

WARMUP_STEPS = 3
CUDNN_ALGORITHMS = 10
"""How many algorithms cuDNN tries for a convolution (PyTorch's default)."""
EXHAUSTIVE_SEARCH_UP_TO = 512
"""The largest batch for which it tries all: on one H200 that gained 1 to 2 % up to here and nothing
at 2048, where the slowest algorithms made the search 40 s longer.
"""


@dataclass(frozen=True)
class Options:
    """The recipe's switches; `precision` is float32, tf32 or bf16."""

    precision: str
    channels_last: bool
    compile: bool
    cuda_graph: bool


class InPrecision(nn.Module):
    """`model` with convolutions and matrix products in bf16 where `bf16` says so.

    A module, so that DataParallel's replicas, each called in a thread of its own, do it too.
    """

    def __init__(self, model: nn.Module, bf16: bool) -> None:
        super().__init__()
        self.model, self._bf16 = model, bf16

    def forward(self, images: Tensor) -> Tensor:
        with torch.autocast(images.device.type, torch.bfloat16, enabled=self._bf16):
            logits: Tensor = self.model(images)
        return logits


class Step:
    """One training step on static buffers, by kernel launches or as a CUDA graph.

    Each half of the model is compiled for itself: the gradients of the late half then travel while
    the backward pass is in the early one. Batches of `size` images are compiled, and cuDNN searches
    for their fastest convolutions; the smaller one at the end of an epoch, run once, is not worth
    either.
    """

    def __init__(
        self,
        model: nn.Module,
        trained: nn.Module,
        images: ResidentImages,
        optimizer: FlatSGD,
        options: Options,
        ranks: int,
        device: torch.device,
        size: int,
    ) -> None:
        self._model, self._trained, self._images = model, trained, images
        self._optimizer, self._options, self._ranks = optimizer, options, ranks
        self._size = size
        self._next_batch, self._losses = images.next_batch, _losses
        if options.compile:
            self._next_batch = torch.compile(images.next_batch, dynamic=False)
            self._losses = torch.compile(_losses, dynamic=False)
        self.loss_sum = torch.zeros((), device=device)
        self.correct = torch.zeros((), device=device, dtype=torch.long)
        self._graphs: dict[tuple[bool, int], torch.cuda.CUDAGraph] = {}

    def run(self, size: int) -> None:
        """Train on the next `size` images; only launches work."""
        graph = self._graphs.get((self._optimizer.enabled, size))
        if graph is not None:
            graph.replay()
        else:
            self._launch(size)

    def capture(self, sizes: list[int]) -> None:
        """Record a graph for each of the batch sizes, sending or not as the optimizer does now.

        The model and its optimizer stay as they were. The graphs share their memory: only one of
        them runs at a time, and none needs what another one left.
        """
        sizes = sorted(set(sizes), reverse=True)
        held = [*self._model.state_dict().values(), *self._optimizer.state]
        saved = [tensor.clone() for tensor in held]
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for size in sizes:
                for _ in range(WARMUP_STEPS):
                    self._images.draw(0)
                    self._launch(size)
        torch.cuda.current_stream().wait_stream(side)
        for size in sizes:
            self._images.draw(0)
            graph = torch.cuda.CUDAGraph()
            memory = next(iter(self._graphs.values())).pool() if self._graphs else None
            with torch.cuda.graph(graph, pool=memory, capture_error_mode="thread_local"):
                self._launch(size)
            self._graphs[self._optimizer.enabled, size] = graph
        with torch.no_grad():
            for tensor, value in zip(held, saved, strict=True):
                tensor.copy_(value)
        self._optimizer.refresh()
        self.reset()

    def release(self) -> None:
        """Forget the graphs. NCCL does not end a process group that a graph still uses."""
        self._graphs.clear()

    def reset(self) -> None:
        """Start new sums of loss and right answers."""
        self.loss_sum.zero_()
        self.correct.zero_()

    def _launch(self, size: int) -> None:
        whole = size == self._size
        with nullcontext() if whole else _as_it_comes():
            images, labels = self._next_batch(size)
            if not self._options.channels_last:
                images = images.contiguous()
            loss, correct = self._losses(self._trained(images), labels)
            (loss / self._ranks).backward()
            self._optimizer.step()
            self.loss_sum += loss.detach() * size
            self.correct += correct


@contextmanager
def _as_it_comes() -> Iterator[None]:
    """Within the block nothing is compiled and no algorithm searched for."""
    searching = torch.backends.cudnn.benchmark
    torch.backends.cudnn.benchmark = False
    try:
        with torch.compiler.set_stance("force_eager"):
            yield
    finally:
        torch.backends.cudnn.benchmark = searching


def _losses(logits: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Mean cross-entropy and number of right answers."""
    logits = logits.float()
    return functional.cross_entropy(logits, labels), (logits.detach().argmax(1) == labels).sum()


class Tuned:
    """Training at the GPUs' pace; see `recipes.trainer.Trainer`.

    Model, schedule and distribution of the augmentation are those of `course`; the last, smaller
    batch of an epoch is trained on as well. `loader_seconds` is the host time of drawing the
    epoch's order. Raises UserError for a CUDA graph without a GPU.
    """

    def __init__(self, spec: RunSpec, rank: Rank, model: ResNet18, material: Material) -> None:
        options = _options(spec, rank)
        cell = spec.cell
        replicated = rank.processes == 1 and cell.gpus > 1
        self._rank, self._gpus = rank, cell.gpus
        self._images = ResidentImages(
            material.data,
            material.mean,
            material.std,
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
        if options.compile:
            trained = self._optimizer.trained
            trained.early = torch.compile(trained.early, dynamic=False)  # type: ignore[method-assign]
            trained.late = torch.compile(trained.late, dynamic=False)  # type: ignore[method-assign]
        self.model: nn.Module = InPrecision(self._optimizer.trained, options.precision == "bf16")
        if replicated:
            self.model = DataParallel(self.model, device_ids=list(range(cell.gpus)))
        self.applied = vars(options).copy()
        batch_size = cell.global_batch_size if replicated else cell.batch_size
        self._sizes = _batch_sizes(self._images.samples, batch_size)
        self._step = Step(
            model,
            self.model,
            self._images,
            self._optimizer,
            options,
            rank.processes,
            rank.device,
            batch_size,
        )
        self._captured, self._captured_local = options.cuda_graph, False
        if self._captured:
            self._step.capture(self._sizes)

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
        started = perf_counter()
        self._images.draw(epoch)
        drawn = perf_counter()
        for size in sizes:
            self._step.run(size)
        self._rank.synchronize(self._gpus)
        seconds = perf_counter() - started

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
    if options.cuda_graph and rank.device.type != "cuda":
        raise UserError("recipes.tuned.cuda_graph is true and there is no GPU: set it to false")
    if rank.processes == 1 and spec.cell.gpus > 1:
        options = replace(options, compile=False, cuda_graph=False)
    return options


def _set_precision(precision: str) -> None:
    allowed = precision in ("tf32", "bf16")
    torch.backends.cuda.matmul.allow_tf32 = allowed
    torch.backends.cudnn.allow_tf32 = allowed


def _batch_sizes(samples: int, batch_size: int) -> list[int]:
    full, rest = divmod(samples, batch_size)
    return [batch_size] * full + ([rest] if rest else [])
