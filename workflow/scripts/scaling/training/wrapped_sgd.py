"""SGD on a model that a strategy wraps: the counterpart of `FlatSGD` for strategies but `ddp`."""

import torch
from torch import Tensor, nn

from scaling.launch.ranks import Rank
from scaling.launch.run_spec import RunSpec
from scaling.models.parts import blocks
from scaling.registry.strategy import STRATEGIES
from scaling.training.trainer import Wrapped


class WrappedSGD:
    """SGD on `model`, wrapped by the strategy of `spec`, with the optimizer interface of `Step`.

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
        """Compile each block of the model separately, or undo it.

        Blocks share their code: the compiler's default limit is eight versions of it.
        """
        torch._dynamo.config.recompile_limit = 8 + 2 * len(self._blocks)
        for block in self._blocks:
            block._compiled_call_impl = None
            if blocks_too:
                block.compile(dynamic=False)

    @property
    def state(self) -> list[Tensor]:
        """Return this rank's local weights."""
        return [parameter.data for parameter in self.trained.parameters()]

    def refresh(self) -> None:
        """Clear the momenta of trial steps."""
        self._optimizer = self.wrapped.optimizer(self._options)

    def follow(self, share: float) -> None:
        """Keep the rate: the configuration refuses others (`devices.need_other_strategies`)."""

    def accumulate(self, more: bool) -> None:
        self.wrapped.accumulate(more)

    def step(self) -> None:
        self._optimizer.step()
        self._optimizer.zero_grad()

    def release(self) -> None:
        """Do nothing: a failed attempt leaves no state."""
