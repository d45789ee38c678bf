"""Strategy `fsdp`: one process per GPU, which keeps a shard of each parameter."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor

from scaling.launch.ranks import Rank
from scaling.models.parts import blocks
from scaling.training.wrapped import Wrapped


class ShardSGD(torch.optim.SGD):
    """SGD on this rank's shards of `parameters`, as plain tensors.

    SGD is elementwise, so the result is the same. On DTensors, PyTorch dispatches each operation on
    each parameter from Python, which takes tens of milliseconds per step.
    """

    def __init__(self, parameters: list[nn.Parameter], options: dict[str, Any]) -> None:
        self._whole = parameters
        super().__init__([_part(whole.data) for whole in parameters], **options)
        self.register_step_pre_hook(self._take_gradients)

    def _take_gradients(self, *_: Any) -> None:
        for part, whole in zip(self.param_groups[0]["params"], self._whole, strict=True):
            part.grad = None if whole.grad is None else _part(whole.grad)

    def zero_grad(self, set_to_none: bool = True) -> None:
        super().zero_grad(set_to_none)
        for whole in self._whole:
            whole.grad = None


class Sharded(Wrapped):
    """One rank's model under fully_shard."""

    def accumulate(self, more: bool) -> None:
        assert isinstance(self.model, FSDPModule)
        self.model.set_requires_gradient_sync(not more)

    def optimizer(self, options: dict[str, Any]) -> torch.optim.Optimizer:
        return ShardSGD(list(self.model.parameters()), options)


def _part(sharded: Tensor) -> Tensor:
    """Return this rank's local shard of a tensor."""
    assert isinstance(sharded, DTensor)
    return sharded.to_local()


def wrap(model: nn.Module, rank: Rank, gpus: int) -> Sharded:
    """Return `model` sharded over `gpus` ranks: each block as a unit, then the rest."""
    mesh = init_device_mesh(rank.device.type, (gpus,))
    for block in blocks(model):
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return Sharded(model)
