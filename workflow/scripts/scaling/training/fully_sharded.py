"""Strategy `fsdp`: one process per GPU, which keeps a shard of each parameter."""

from typing import Any

import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard

from scaling.launch.ranks import Rank
from scaling.models.build import blocks
from scaling.registry.update_rule import UpdateRule
from scaling.training.wrapped import Wrapped


class Sharded(Wrapped):
    """One rank's model under fully_shard."""

    def accumulate(self, more: bool) -> None:
        assert isinstance(self.model, FSDPModule)
        self.model.set_requires_gradient_sync(not more)

    def start(self, options: dict[str, Any], rule: UpdateRule) -> None:
        # On DTensors, PyTorch dispatches each operation from Python: tens of milliseconds a step.
        parameters: Any = self.model.parameters()
        parts = [whole.data.to_local() for whole in parameters]
        self.optimizer = torch.optim.SGD(parts, **options)

    def step(self) -> None:
        parts, parameters = self.optimizer.param_groups[0]["params"], self.model.parameters()
        sharded: Any = zip(parts, parameters, strict=True)
        for part, whole in sharded:
            part.grad = None if whole.grad is None else whole.grad.to_local()
            whole.grad = None
        super().step()


def wrap(model: nn.Module, rank: Rank, gpus: int) -> Sharded:
    """Return `model` sharded over `gpus` ranks: each block as a unit, then the rest."""
    mesh = init_device_mesh(rank.device.type, (gpus,))
    for block in blocks(model):
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return Sharded(model)
