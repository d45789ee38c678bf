"""Strategy `fsdp`: one process per GPU, which keeps a shard of each parameter."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard

from scaling.launch.ranks import Rank
from scaling.models.build import blocks
from scaling.training.wrapped import Wrapped


class Sharded(Wrapped):
    """One rank's model under fully_shard."""

    def accumulate(self, more: bool) -> None:
        assert isinstance(self.model, FSDPModule)
        self.model.set_requires_gradient_sync(not more)

    def sgd(self, options: dict[str, Any]) -> torch.optim.Optimizer:
        """Return SGD of this rank's shards as plain tensors, which gives the same.

        On DTensors, PyTorch dispatches each operation from Python: tens of milliseconds a step.
        """
        parameters = self.model.parameters()
        return torch.optim.SGD([_part(whole.data) for whole in parameters], **options)

    def step(self) -> None:
        parts = self.optimizer.param_groups[0]["params"]
        for part, whole in zip(parts, self.model.parameters(), strict=True):
            part.grad = None if whole.grad is None else _part(whole.grad)
            whole.grad = None
        super().step()


def _part(sharded: Any) -> Tensor:
    """Return this rank's local shard of a DTensor."""
    local: Tensor = sharded.to_local()
    return local


def wrap(model: nn.Module, rank: Rank, gpus: int) -> Sharded:
    """Return `model` sharded over `gpus` ranks: each block as a unit, then the rest."""
    mesh = init_device_mesh(rank.device.type, (gpus,))
    for block in blocks(model):
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return Sharded(model)
