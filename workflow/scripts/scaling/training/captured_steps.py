"""Training steps captured as CUDA graphs."""

import copy
from collections.abc import Callable, Hashable

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
