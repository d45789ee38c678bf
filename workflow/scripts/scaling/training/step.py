"""One training step on the device: by kernel launches, or recorded as a CUDA graph."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

import torch
from torch import Tensor, nn
from torch.nn import functional

from scaling.data.resident import ResidentImages
from scaling.registry.recipes.tuned import Options
from scaling.training.flat_sgd import FlatSGD

WARMUP_STEPS = 3


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

    Without fused norms each half of the model is compiled for itself: either way the gradients of
    the late half travel while the backward pass is in the early one. Batches of the `prepared`
    sizes are compiled, where the options say so, and cuDNN searches for their fastest convolutions;
    others run as they come.
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
        prepared: list[int],
    ) -> None:
        self._model, self._trained, self._images = model, trained, images
        self._optimizer, self._options, self._ranks = optimizer, options, ranks
        self._prepared = prepared
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
        with nullcontext() if size in self._prepared else _as_it_comes():
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
