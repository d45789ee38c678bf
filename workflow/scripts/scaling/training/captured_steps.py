"""Capture training steps as CUDA graphs."""

import copy
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from scaling.launch import outcome

WARMUP_STEPS = 11
"""Steps before a capture. DDP times its first 10 steps with CUDA events, which captures forbid."""


def captured(
    begin: Callable[[], None], step: Callable[[], None], memory: Any = None
) -> torch.cuda.CUDAGraph:
    """Return a CUDA graph of `step`, captured after `WARMUP_STEPS` calls of `step`.

    `begin` runs before each call, outside the graph. `memory` is the memory pool of another graph,
    to be shared; a replay of one graph may then overwrite the results of the other.
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
    """A second CUDA stream in a captured step, for work that is only needed when the step ends."""

    def __init__(self) -> None:
        self._stream: torch.cuda.Stream | None = None
        self._kept: list[Tensor] = []

    def after(self, *read: Tensor, launched: bool = False) -> AbstractContextManager[Any]:
        """Return a context manager that makes the side stream current if a step is being captured.

        Outside a capture, the current stream stays, because cuDNN's search for algorithms must run
        alone. With `launched=True`, the side stream is current also outside a capture. It waits for
        all earlier work of the previous stream. `read` are the inputs of the work on the side
        stream, kept alive until `join`.
        """
        if not (read[0].is_cuda and (launched or torch.cuda.is_current_stream_capturing())):
            return nullcontext()
        self._kept += read
        self._stream = self._stream or torch.cuda.Stream()
        self._stream.wait_stream(torch.cuda.current_stream())
        return torch.cuda.stream(self._stream)

    def join(self) -> None:
        """Make the current stream wait for the side stream; release the inputs kept by `after`."""
        if self._kept:
            assert self._stream
            torch.cuda.current_stream().wait_stream(self._stream)
            self._kept.clear()


def refusals(model: nn.Module, images: Tensor) -> list[str]:
    """Return [] if a CUDA graph can capture `model`, else a list with the reason.

    This captures a copy of the model, so call it before FSDP wraps the model.
    """
    copied = copy.deepcopy(model)
    try:
        captured(lambda: None, lambda: copied(images).sum().backward())
    except Exception as error:
        return [f"without cuda_graph: {outcome.first_sentence(error)}"]
    return []
