"""Training steps captured as CUDA graphs."""

import copy
from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from scaling.launch import outcome

WARMUP_STEPS = 3


class CapturedSteps:
    """CUDA graphs of steps, by key.

    The graphs share one memory pool: only one runs at a time, and none needs another's results.
    """

    def __init__(self) -> None:
        self._graphs: dict[Hashable, torch.cuda.CUDAGraph] = {}

    def __contains__(self, key: Hashable) -> bool:
        return key in self._graphs

    def run(self, key: Hashable, step: Callable[[], None]) -> None:
        """Replay the graph of `key`, or call `step` if there is none."""
        graph = self._graphs.get(key)
        if graph is None:
            step()
        else:
            graph.replay()

    def capture(self, key: Hashable, begin: Callable[[], None], step: Callable[[], None]) -> None:
        """Capture `step` after warm-up steps; `begin` is called before each of them."""
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(WARMUP_STEPS):
                begin()
                step()
        torch.cuda.current_stream().wait_stream(side)
        begin()
        graph = torch.cuda.CUDAGraph()
        memory = next(iter(self._graphs.values())).pool() if self._graphs else None
        with torch.cuda.graph(graph, pool=memory, capture_error_mode="thread_local"):
            step()
        self._graphs[key] = graph

    def clear(self) -> None:
        """Delete the graphs: NCCL cannot destroy a process group that a graph uses."""
        self._graphs.clear()


class SideStream:
    """A second stream of a captured step, for work whose results only the step's end needs."""

    def __init__(self) -> None:
        self._stream: torch.cuda.Stream | None = None
        self._kept: list[Tensor] = []

    def after(self, *read: Tensor) -> AbstractContextManager[Any]:
        """Return a context whose work runs there, after all that was launched so far.

        What it has `read` is kept until the streams `join`. Outside of a capture the work runs on
        the current stream, as a search for algorithms must be alone.
        """
        if not (read[0].is_cuda and torch.cuda.is_current_stream_capturing()):
            return nullcontext()
        self._kept += read
        self._stream = self._stream or torch.cuda.Stream()
        self._stream.wait_stream(torch.cuda.current_stream())
        return torch.cuda.stream(self._stream)

    def join(self) -> None:
        """Let the current stream wait for this one."""
        if self._kept:
            assert self._stream
            torch.cuda.current_stream().wait_stream(self._stream)
            self._kept.clear()


def refusals(model: nn.Module, images: Tensor) -> list[str]:
    """Return why a training step of `model` on `images` cannot be captured, empty if it can.

    It is asked before a model is sharded: FSDP cannot go on after a step that was broken off.
    """
    copied = copy.deepcopy(model)
    try:
        CapturedSteps().capture(None, lambda: None, lambda: copied(images).sum().backward())
    except Exception as error:
        return [f"without cuda_graph: {outcome.first_sentence(error)}"]
    return []
