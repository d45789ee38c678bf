"""A training step on one batch (loss, gradients, update), run eagerly or as a CUDA graph."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.profiler import record_function

from scaling.models.build import compile_seconds
from scaling.registry.update_rule import UpdateRule
from scaling.training.captured_steps import captured
from scaling.training.strategies import Wrapped

Batch = tuple[Tensor, Tensor]
"""Images [n, 3, S, S] and their labels [n]."""


@dataclass(eq=False)
class Step:
    """A training step on one batch: forward passes, backward passes, and one update of the weights.

    The batch is split into `micro_batches` parts. Part r of n has images r, r + n, r + 2n …, as a
    DistributedSampler would give to rank r. `replica` averages gradients over ranks and updates the
    weights. Only `label_smoothing` of `rule` matters here. `loss_sum` is the sum of losses since
    `reset`, `correct` the number of correct predictions. If `replays` is False, no graph is used.
    """

    model: nn.Module
    replica: Wrapped
    device: torch.device
    micro_batches: int
    rule: UpdateRule

    replays = True
    search_seconds = 0.0
    """Seconds before the first epoch in which cuDNN searches for algorithms and loads kernels."""

    def __post_init__(self) -> None:
        self._objective = objective
        self.loss_sum = torch.zeros((), device=self.device)
        self.correct = torch.zeros((), device=self.device, dtype=torch.long)

    def reset(self) -> None:
        """Set the sum of losses and the number of correct predictions to 0."""
        self.loss_sum.zero_()
        self.correct.zero_()

    def update(self, size: int, next_batch: Callable[[int], Batch]) -> None:
        """Update the weights once, on a batch of `size` images that `next_batch(size)` returns."""
        batch, parts = next_batch(size), min(size, self.micro_batches)
        for part in range(parts):
            images, labels = (one[part::parts] for one in batch)
            self.replica.accumulate(part < parts - 1)
            logits = self.model(images)
            sums = self.loss_sum, self.correct
            loss = self._objective(logits, labels, self.rule.label_smoothing, *sums)
            self.replica.backward(loss, len(labels) / size)
        with record_function("optimizer"):
            self.replica.step()


@dataclass(eq=False)
class DeviceStep(Step):
    """A training step, eager or as a CUDA graph, on batches that `images` creates on the device.

    `images` is a `ResidentImages`. For batch sizes in `prepared`, cuDNN searches for fast
    algorithms and, if `compiled`, torch.compile compiles the step. There is one graph for each
    combination of rule, batch size, and exchange of gradients (on or off).
    """

    images: Any
    prepared: list[int]
    compiled: bool = False
    channels_last: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        self._next_batch = self.images.next_batch
        if self.compiled:
            self._next_batch = torch.compile(self.images.next_batch, dynamic=False)
            self._objective = torch.compile(objective, dynamic=False)
        self._graphs: dict[tuple[UpdateRule, bool, int], torch.cuda.CUDAGraph] = {}
        self._searches = set(self.prepared if self.device.type == "cuda" else [])

    def run(self, size: int) -> None:
        """Launch a step on the next `size` images, without waiting for the device."""
        graph = self._graphs.get(self._key(size))
        if graph and self.replays:
            graph.replay()
        else:
            self._launch(size)

    def capture(self, sizes: list[int]) -> None:
        """Capture a graph for each of `sizes` that has none, then restore model and optimizer."""
        missing = [size for size in set(sizes) if self._key(size) not in self._graphs]
        with self._kept() if missing else nullcontext():
            for size in sorted(missing, reverse=True):
                begin, launch = partial(self._begin, size), partial(self._prepare, size)
                memory = next((graph.pool() for graph in self._graphs.values()), None)
                self._graphs[self._key(size)] = captured(begin, launch, memory)

    def compile(self) -> None:
        """Compile the step for each size in `prepared`, then restore model and optimizer."""
        with self._kept():
            for size in self.prepared:
                self._begin(size)
                self._prepare(size)

    def release(self) -> None:
        """Delete all graphs. NCCL cannot destroy a process group that a graph uses."""
        self._graphs.clear()

    def _key(self, size: int) -> tuple[UpdateRule, bool, int]:
        return self.rule, self.replica.sends, size

    def _begin(self, size: int) -> None:
        self.images.draw(0)
        self.images.stage(size)

    @contextmanager
    def _kept(self) -> Iterator[None]:
        held = self.replica.state
        saved = [tensor.clone() for tensor in held]
        try:
            yield
        finally:
            with torch.no_grad():
                for tensor, value in zip(held, saved, strict=True):
                    tensor.copy_(value)
            self.replica.refresh()
            self.reset()

    def _prepare(self, size: int) -> None:
        """Launch a step. For a new batch size, first add cuDNN's search time to `search_seconds`.

        The search time is the duration of one extra step, which searches, minus that of another.
        """
        if size in self._searches and torch.backends.cudnn.benchmark:
            self._searches.remove(size)
            seconds = []
            for _ in range(2):
                torch.cuda.synchronize(self.device)
                started = perf_counter() - compile_seconds()
                self._launch(size)
                torch.cuda.synchronize(self.device)
                seconds.append(perf_counter() - compile_seconds() - started)
                self._begin(size)
            self.search_seconds += max(0.0, seconds[0] - seconds[1])
        self._launch(size)

    def _launch(self, size: int) -> None:
        if size in self.prepared:
            self.update(size, self._next)
            return
        uncompiled = torch.compiler.set_stance("force_eager") if self.compiled else nullcontext()
        with algorithm_search(False), uncompiled:
            self.update(size, self._next)

    def _next(self, size: int) -> Batch:
        images, labels = self._next_batch(size)
        return images if self.channels_last else images.contiguous(), labels


class InPrecision(nn.Module):
    """Runs `model`, under autocast to bf16 if `bf16`; this holds in DataParallel's threads, too."""

    def __init__(self, model: nn.Module, bf16: bool) -> None:
        super().__init__()
        self.model, self._bf16 = model, bf16

    def forward(self, images: Tensor) -> Tensor:
        with torch.autocast(images.device.type, torch.bfloat16, enabled=self._bf16):
            logits: Tensor = self.model(images)
        return logits


def allow_tf32(allowed: bool) -> None:
    """Allow or forbid TF32 in float32 convolutions and matrix products."""
    torch.backends.cuda.matmul.allow_tf32 = allowed
    torch.backends.cudnn.allow_tf32 = allowed


@contextmanager
def algorithm_search(on: bool) -> Iterator[None]:
    """In a `with` block, turn cuDNN's search for fast algorithms on or off (cudnn.benchmark).

    A search takes seconds for each batch size.
    """
    before = torch.backends.cudnn.benchmark
    torch.backends.cudnn.benchmark = on
    try:
        yield
    finally:
        torch.backends.cudnn.benchmark = before


def objective(
    logits: Tensor, labels: Tensor, smoothing: float, loss_sum: Tensor, correct: Tensor
) -> Tensor:
    """Return the mean cross-entropy of a batch, with label smoothing `smoothing`.

    `loss_sum` and `correct` change in place. The sum of the losses without smoothing is added to
    `loss_sum`, and the number of correct predictions to `correct`.
    """
    logits = logits.float()
    loss = functional.cross_entropy(logits, labels)
    loss_sum += loss.detach() * len(labels)
    correct += (logits.detach().argmax(1) == labels).sum()
    if smoothing:
        return functional.cross_entropy(logits, labels, label_smoothing=smoothing)
    return loss
