"""Strategy `fsdp`: a process for each GPU, which keeps its part of each parameter."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor

from scaling.launch.ranks import Rank
from scaling.models.parts import blocks
from scaling.training.trainer import Wrapped


class ShardSGD(torch.optim.SGD):
    """SGD on this rank's parts of `parameters`, as plain tensors.

    SGD works on each element by itself, so the result is the same. On the sharded tensors
    themselves PyTorch dispatches each operation on each parameter from Python: tens of
    milliseconds a step.
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
    """The model of one rank under fully_shard."""

    def accumulate(self, more: bool) -> None:
        assert isinstance(self.model, FSDPModule)
        self.model.set_requires_gradient_sync(not more)

    def optimizer(self, options: dict[str, Any]) -> torch.optim.Optimizer:
        return ShardSGD(list(self.model.parameters()), options)


def _part(sharded: Tensor) -> Tensor:
    """What this rank has of a sharded tensor."""
    assert isinstance(sharded, DTensor)
    return sharded.to_local()


def wrap(model: nn.Module, rank: Rank, gpus: int) -> Sharded:
    """`model` sharded over `gpus` ranks: each of its blocks for itself, then what is left."""
    mesh = init_device_mesh(rank.device.type, (gpus,))
    for block in blocks(model):
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return Sharded(model)
