"""Training steps captured as CUDA graphs."""

import copy
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from scaling.launch import outcome

WARMUP_STEPS = 11
"""Steps before a capture. DDP times its first 10 steps with CUDA events, which a capture
forbids."""


def captured(
    begin: Callable[[], None], step: Callable[[], None], memory: Any = None
) -> torch.cuda.CUDAGraph:
    """Return a CUDA graph of `step`, captured after warm-up steps. `begin` runs before each step.

    If given, `memory` is the memory pool of another graph. Both graphs then use the same memory:
    replaying one may overwrite the results of the other.
    """
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(WARMUP_STEPS):
            begin()
            step()
    torch.cuda.current_stream().wait_stream(side)
    begin()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=memory, capture_error_mode="thread_local"):
        step()
    return graph


class SideStream:
    """A second CUDA stream in a captured step, for work that is only needed at the step's end."""

    def __init__(self) -> None:
        self._stream: torch.cuda.Stream | None = None
        self._kept: list[Tensor] = []

    def after(self, *read: Tensor, launched: bool = False) -> AbstractContextManager[Any]:
        """Return a context manager that runs work on this object's stream.

        The work starts after all earlier work of the current stream. `read` are the tensors that it
        reads; they are kept alive until `join`. Outside a capture, work runs on PyTorch's current
        stream instead, because cuDNN's search for algorithms must run alone; `launched=True` uses
        this object's stream even then.
        """
        if not (read[0].is_cuda and (launched or torch.cuda.is_current_stream_capturing())):
            return nullcontext()
        self._kept += read
        self._stream = self._stream or torch.cuda.Stream()
        self._stream.wait_stream(torch.cuda.current_stream())
        return torch.cuda.stream(self._stream)

    def join(self) -> None:
        """Make the current stream wait for this stream, and release the tensors kept by `after`."""
        if self._kept:
            assert self._stream
            torch.cuda.current_stream().wait_stream(self._stream)
            self._kept.clear()


def refusals(model: nn.Module, images: Tensor) -> list[str]:
    """Return [], or a list with the reason why a CUDA graph cannot capture `model`.

    Tries a capture with a copy of the model, so call this before FSDP wraps the model.
    """
    copied = copy.deepcopy(model)
    try:
        captured(lambda: None, lambda: copied(images).sum().backward())
    except Exception as error:
        return [f"without cuda_graph: {outcome.first_sentence(error)}"]
    return []
