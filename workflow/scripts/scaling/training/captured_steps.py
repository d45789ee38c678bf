"""Training steps captured as CUDA graphs."""

import copy
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from scaling.launch import outcome

WARMUP_STEPS = 11
"""Steps before a capture: more than the ten that DDP times by events, which captures forbid."""


def captured(
    begin: Callable[[], None], step: Callable[[], None], memory: Any = None
) -> torch.cuda.CUDAGraph:
    """Return a CUDA graph of `step`, captured after warm-up steps; `begin` precedes each step.

    The graph shares `memory`, the pool of another graph, and may overwrite that graph's results.
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
    """A second stream of a captured step, for work whose results only the end of the step needs."""

    def __init__(self) -> None:
        self._stream: torch.cuda.Stream | None = None
        self._kept: list[Tensor] = []

    def after(self, *read: Tensor, launched: bool = False) -> AbstractContextManager[Any]:
        """Return a context that runs work on this stream, and keep tensors `read` until `join`.

        Outside a capture, work runs on the current stream unless `launched` is True, because
        cuDNN's search for algorithms must run alone.
        """
        if not (read[0].is_cuda and (launched or torch.cuda.is_current_stream_capturing())):
            return nullcontext()
        self._kept += read
        self._stream = self._stream or torch.cuda.Stream()
        self._stream.wait_stream(torch.cuda.current_stream())
        return torch.cuda.stream(self._stream)

    def join(self) -> None:
        """Make the current stream wait for this stream, and release the kept tensors."""
        if self._kept:
            assert self._stream
            torch.cuda.current_stream().wait_stream(self._stream)
            self._kept.clear()


def refusals(model: nn.Module, images: Tensor) -> list[str]:
    """Return why steps of `model` cannot be captured, or []. Tries a copy, before FSDP wraps it."""
    copied = copy.deepcopy(model)
    try:
        captured(lambda: None, lambda: copied(images).sum().backward())
    except Exception as error:
        return [f"without cuda_graph: {outcome.first_sentence(error)}"]
    return []
