"""One training step on the device, launched kernel by kernel or captured as a CUDA graph."""

import math
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional

from scaling.data.resident import ResidentImages
from scaling.registry.resident import Options
from scaling.training.captured_steps import CapturedSteps
from scaling.training.evaluation import algorithm_search
from scaling.training.flat_sgd import FlatSGD
from scaling.training.wrapped_sgd import WrappedSGD


class InPrecision(nn.Module):
    """Run `model` with convolutions and matrix products in bf16 if `bf16`.

    It is a module, so that DataParallel's replicas, each in its own thread, do so too.
    """

    def __init__(self, model: nn.Module, bf16: bool) -> None:
        super().__init__()
        self.model, self._bf16 = model, bf16

    def forward(self, images: Tensor) -> Tensor:
        with torch.autocast(images.device.type, torch.bfloat16, enabled=self._bf16):
            logits: Tensor = self.model(images)
        return logits


class Step:
    """One training step on static buffers, eager or as a CUDA graph.

    Batches of the `prepared` sizes are compiled if the options say so, with cuDNN's algorithm
    search; others run eagerly. Each is trained in `micro_batches` parts.
    """

    def __init__(
        self,
        model: nn.Module,
        trained: nn.Module,
        images: ResidentImages,
        optimizer: FlatSGD | WrappedSGD,
        options: Options,
        ranks: int,
        device: torch.device,
        prepared: list[int],
        micro_batches: int,
    ) -> None:
        self._model, self._trained, self._images = model, trained, images
        self._optimizer, self._options, self._ranks = optimizer, options, ranks
        self._prepared, self._micro_batches = prepared, micro_batches
        self._next_batch, self._losses = images.next_batch, losses
        if options.compile:
            self._next_batch = torch.compile(images.next_batch, dynamic=False)
            self._losses = torch.compile(losses, dynamic=False)
        self.loss_sum = torch.zeros((), device=device)
        self.correct = torch.zeros((), device=device, dtype=torch.long)
        self._captured = CapturedSteps()

    def run(self, size: int) -> None:
        """Launch training on the next `size` images, without waiting."""
        self._images.stage(size)
        self._captured.run((self._optimizer.enabled, size), lambda: self._launch(size))

    def capture(self, sizes: list[int]) -> None:
        """Capture a graph for each batch size, in the optimizer's current mode of communication.

        The model and its optimizer are restored afterwards.
        """
        with self._kept():
            for size in sorted(set(sizes), reverse=True):
                self._captured.capture(
                    (self._optimizer.enabled, size),
                    partial(self._begin, size),
                    partial(self._launch, size),
                )

    def compile(self) -> None:
        """Compile the steps of the prepared sizes, and restore model and optimizer."""
        with self._kept():
            for size in self._prepared:
                self._begin(size)
                self._launch(size)

    def _begin(self, size: int) -> None:
        self._images.draw(0)
        self._images.stage(size)

    @contextmanager
    def _kept(self) -> Iterator[None]:
        held = [*self._model.state_dict().values(), *self._optimizer.state]
        saved = [tensor.clone() for tensor in held]
        yield
        with torch.no_grad():
            for tensor, value in zip(held, saved, strict=True):
                tensor.copy_(value)
        self._optimizer.refresh()
        self.reset()

    def release(self) -> None:
        """Delete the graphs."""
        self._captured.clear()

    def reset(self) -> None:
        """Reset the sums of loss and correct predictions."""
        self.loss_sum.zero_()
        self.correct.zero_()

    def _launch(self, size: int) -> None:
        with nullcontext() if size in self._prepared else _as_it_comes():
            left = size
            while left:
                part = min(left, math.ceil(size / self._micro_batches))
                left -= part
                images, labels = self._next_batch(part)
                if not self._options.channels_last:
                    images = images.contiguous()
                self._optimizer.accumulate(left > 0)
                logits = self._trained(images)
                objective, loss, correct = self._losses(
                    logits, labels, self._options.label_smoothing
                )
                (objective * (part / size / self._ranks)).backward()
                self.loss_sum += loss.detach() * part
                self.correct += correct
            self._optimizer.step()


@contextmanager
def _as_it_comes() -> Iterator[None]:
    """Within the block nothing is compiled and cuDNN does not search for algorithms."""
    with algorithm_search(False), torch.compiler.set_stance("force_eager"):
        yield


def losses(logits: Tensor, labels: Tensor, smoothing: float) -> tuple[Tensor, Tensor, Tensor]:
    """Return the loss to minimize, the unsmoothed mean cross-entropy, and the correct count."""
    logits = logits.float()
    loss = functional.cross_entropy(logits, labels)
    objective = loss
    if smoothing:
        objective = functional.cross_entropy(logits, labels, label_smoothing=smoothing)
    return objective, loss, (logits.detach().argmax(1) == labels).sum()
