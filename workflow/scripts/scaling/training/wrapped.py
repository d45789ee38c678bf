"""A rank's model as a strategy wraps it, with its exchange of gradients and its update."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from scaling.launch.ranks import Rank
from scaling.registry.update_rule import UpdateRule


class Wrapped:
    """One rank's `model` as a strategy wraps it, which averages gradients in the backward pass.

    For each part of a batch call `accumulate`, run `model`, and call `backward`; then `step`.
    """

    optimizer: torch.optim.Optimizer
    sends = True
    """Whether gradients are exchanged."""
    separable = False
    """Whether steps can leave out the exchange."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model

    @property
    def bucket_bytes(self) -> list[int]:
        """Return the bytes of each gradient message of a step."""
        return []

    @property
    def sent_share(self) -> float:
        """Bytes that are sent, as a share of those by the strategy's formula."""
        return 1.0

    @contextmanager
    def without_communication(self) -> Iterator[None]:
        """Within the block, keep gradients local; only where that is `separable`."""
        self.sends = False
        try:
            yield
        finally:
            self.sends = True

    def accumulate(self, more: bool) -> None:
        """Set whether `more` backward passes of the same update follow the next one."""

    def backward(self, loss: Tensor, share: float) -> None:
        """Add the gradients of `loss`, the mean over this `share` of the rank's batch."""
        (loss if share == 1 else loss * share).backward()

    def start(self, options: dict[str, Any], rule: UpdateRule) -> None:
        """Let `step` train from momenta of 0; the configuration refuses a `rule` but SGD's."""
        self.optimizer = torch.optim.SGD(self.model.parameters(), **options)

    def step(self) -> None:
        """Update the weights by the gradients, and delete these."""
        self.optimizer.step()
        self.optimizer.zero_grad()

    def set_rates(self, rate: float, rest: float) -> None:
        """Set the rates of the next updates, which `start`'s rule keeps the same here."""

    @property
    def state(self) -> list[Tensor]:
        """Return what trial steps change; call `refresh` after changing it back."""
        weights = [parameter.data for parameter in self.model.parameters()]
        return [*weights, *self.model.buffers()]

    def refresh(self) -> None:
        """Forget the momenta of trial steps, in place: captured steps refer to them."""
        for momenta in self.optimizer.state.values():
            for momentum in filter(torch.is_tensor, momenta.values()):
                momentum.zero_()

    def release(self) -> None:
        """Detach from the model, so that another optimizer can take it."""


def unwrapped(model: nn.Module, rank: Rank, gpus: int) -> Wrapped:
    """Return the model of one GPU, which exchanges nothing."""
    return Wrapped(model)
