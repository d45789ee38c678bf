"""SGD under a strategy's own wrapping: what `FlatSGD` is for replicas, for all other strategies."""

import torch
from torch import Tensor, nn

from scaling.launch.ranks import Rank
from scaling.launch.run_spec import RunSpec
from scaling.models.parts import blocks
from scaling.registry.strategy import STRATEGIES
from scaling.training.trainer import Wrapped


class WrappedSGD:
    """SGD on `model` as the strategy of `spec` wraps it; has what `Step` uses of an optimizer.

    The strategy averages the gradients over the ranks.
    """

    enabled = True

    def __init__(self, spec: RunSpec, rank: Rank, model: nn.Module) -> None:
        self._blocks = blocks(model) or [model]
        wrap = STRATEGIES.find(spec.cell.strategy).wrap.load()
        self.wrapped: Wrapped = wrap(model, rank, spec.cell.gpus)
        self.trained = self.wrapped.model
        self._options = spec.sgd
        self.refresh()

    def compile(self, blocks_too: bool) -> None:
        """Compile each block of the model for itself, or none of them any more.

        Blocks share their code: by default the compiler gives up on it after eight of them.
        """
        torch._dynamo.config.recompile_limit = 8 + 2 * len(self._blocks)
        for block in self._blocks:
            block._compiled_call_impl = None
            if blocks_too:
                block.compile(dynamic=False)

    @property
    def state(self) -> list[Tensor]:
        """Weights, as far as they are this rank's."""
        return [parameter.data for parameter in self.trained.parameters()]

    def refresh(self) -> None:
        """Forget the momenta of steps that did not count."""
        self._optimizer = self.wrapped.optimizer(self._options)

    def follow(self, share: float) -> None:
        """Keep the rate: other schedules are refused before (`devices.need_other_strategies`)."""

    def accumulate(self, more: bool) -> None:
        self.wrapped.accumulate(more)

    def step(self) -> None:
        self._optimizer.step()
        self._optimizer.zero_grad()

    def release(self) -> None:
        """Nothing of it outlives a failed attempt."""
