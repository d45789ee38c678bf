"""Recipe `tuned`: what the GPUs give when nothing holds them back.

Training images live on the GPU and are augmented there, activations are channels-last, matrix
products run in bf16 or TF32, the model is compiled, and one CUDA graph holds a whole step: batch,
forward, backward, gradient all-reduce, update. The host only replays it and waits once an epoch.

Every switch is an option of the recipe. DataParallel on several GPUs copies the model each step
from host threads, which neither a compiled model nor a CUDA graph can hold: there both are off, and
the record says so.
"""

from dataclasses import dataclass
from time import perf_counter

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.parallel import DataParallel

from scaling.dataset import ImageDataset
from scaling.errors import UserError
from scaling.gradients import GradientBuckets
from scaling.ranks import Rank
from scaling.recipes.trained import Report, Trained
from scaling.record import EpochRow
from scaling.resident import ResidentImages
from scaling.run_spec import RunSpec

WARMUP_STEPS = 3


@dataclass(frozen=True)
class Options:
    """The recipe's switches; `precision` is float32, tf32 or bf16."""

    precision: str
    channels_last: bool
    compile: bool
    cuda_graph: bool


class Step:
    """One training step on static buffers, by kernel launches or as a CUDA graph.

    Only batches of `size` images are compiled: the smaller one at the end of an epoch, run once,
    is not worth a compilation of its own.
    """

    def __init__(
        self,
        model: nn.Module,
        images: ResidentImages,
        optimizer: torch.optim.Optimizer,
        buckets: GradientBuckets | None,
        options: Options,
        ranks: int,
        device: torch.device,
        size: int,
    ) -> None:
        self._model, self._images, self._optimizer = model, images, optimizer
        self._buckets, self._options, self._ranks, self._device = buckets, options, ranks, device
        self._compiled_size = size if options.compile else 0
        self._compiled = torch.compile(self._losses, dynamic=False)
        self.loss_sum = torch.zeros((), device=device)
        self.correct = torch.zeros((), device=device, dtype=torch.long)
        self._graphs: dict[int, torch.cuda.CUDAGraph] = {}

    def run(self, size: int) -> None:
        """Train on the next `size` images; only launches work."""
        if size in self._graphs:
            self._graphs[size].replay()
        else:
            self._launch(size)

    def capture(self, sizes: list[int]) -> None:
        """Record a graph for each batch size; the model and its optimizer stay as they were."""
        held = [*self._model.state_dict().values()]
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
            with torch.cuda.graph(graph, capture_error_mode="thread_local"):
                self._launch(size)
            self._graphs[size] = graph
        with torch.no_grad():
            for tensor, value in zip(held, saved, strict=True):
                tensor.copy_(value)
            for state in self._optimizer.state.values():
                state["momentum_buffer"].zero_()
        self.reset()

    def reset(self) -> None:
        """Start new sums of loss and right answers."""
        self.loss_sum.zero_()
        self.correct.zero_()

    def _launch(self, size: int) -> None:
        losses = self._compiled if size == self._compiled_size else self._losses
        loss, correct = losses(size)
        (loss / self._ranks).backward()
        if self._buckets is not None:
            self._buckets.finish()
        self._optimizer.step()
        self._optimizer.zero_grad(set_to_none=True)
        self.loss_sum += loss.detach() * size
        self.correct += correct

    def _losses(self, size: int) -> tuple[Tensor, Tensor]:
        images, labels = self._images.next_batch(size)
        if not self._options.channels_last:
            images = images.contiguous()
        bf16 = self._options.precision == "bf16"
        with torch.autocast(self._device.type, torch.bfloat16, enabled=bf16):
            logits = self._model(images)
        logits = logits.float()
        correct = (logits.detach().argmax(1) == labels).sum()
        return functional.cross_entropy(logits, labels), correct


def train(
    spec: RunSpec,
    rank: Rank,
    model: nn.Module,
    data: ImageDataset,
    mean: np.ndarray,
    std: np.ndarray,
    report: Report,
) -> Trained:
    """Train `model` as `recipes.course.train` does; the same model, schedule and augmentation.

    The last, smaller batch of an epoch is trained on as well. `loader_seconds` is the host time of
    drawing the epoch's order. Raises UserError for a CUDA graph without a GPU.
    """
    options, applied = _options(spec, rank)
    cell = spec.cell
    images = ResidentImages(
        data,
        mean,
        std,
        spec.crop_padding,
        spec.horizontal_flip,
        rank.device,
        rank.index,
        rank.processes,
        cell.seed,
    )
    _set_precision(options.precision)
    if options.channels_last:
        model.to(memory_format=torch.channels_last)
    replicated = rank.processes == 1 and cell.gpus > 1
    parallel = DataParallel(model, device_ids=list(range(cell.gpus))) if replicated else model
    parallel.train()
    buckets = GradientBuckets(model) if rank.processes > 1 else None
    optimizer = torch.optim.SGD(
        model.parameters(),
        lr=spec.learning_rate,
        momentum=spec.momentum,
        weight_decay=spec.weight_decay,
        fused=True,
    )
    batch_size = cell.global_batch_size if replicated else cell.batch_size
    step = Step(
        parallel, images, optimizer, buckets, options, rank.processes, rank.device, batch_size
    )
    sizes = _batch_sizes(images.samples, batch_size)
    if options.cuda_graph:
        step.capture(sorted(set(sizes), reverse=True))

    for epoch in range(1, spec.epochs + 1):
        step.reset()
        rank.barrier()
        rank.synchronize(cell.gpus)
        started = perf_counter()
        images.draw(epoch)
        drawn = perf_counter()
        for size in sizes:
            step.run(size)
        rank.synchronize(cell.gpus)
        seconds = perf_counter() - started

        mean_loss = step.loss_sum.item() / images.samples
        report(
            EpochRow(
                epoch=epoch,
                rank=rank.index,
                role="warmup" if epoch <= spec.warmup_epochs else "measured",
                seconds=seconds,
                loader_seconds=drawn - started,
                iterations=len(sizes),
                samples=images.samples,
                train_loss=mean_loss if np.isfinite(mean_loss) else None,
                train_accuracy=step.correct.item() / images.samples,
            )
        )
    return Trained(parallel, buckets.bucket_bytes if buckets else [], applied)


def _options(spec: RunSpec, rank: Rank) -> tuple[Options, dict[str, object]]:
    """The switches as they can be applied to this cell, and the same for the record."""
    options = Options(**spec.recipe_options)
    if options.cuda_graph and rank.device.type != "cuda":
        raise UserError("recipes.tuned.cuda_graph is true and there is no GPU: set it to false")
    if rank.processes == 1 and spec.cell.gpus > 1:
        options = Options(options.precision, options.channels_last, False, False)
    return options, vars(options)


def _set_precision(precision: str) -> None:
    allowed = precision in ("tf32", "bf16")
    torch.backends.cuda.matmul.allow_tf32 = allowed
    torch.backends.cudnn.allow_tf32 = allowed
    torch.backends.cudnn.benchmark = True


def _batch_sizes(samples: int, batch_size: int) -> list[int]:
    full, rest = divmod(samples, batch_size)
    return [batch_size] * full + ([rest] if rest else [])
