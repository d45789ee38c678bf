"""Strategy `fsdp`: a process for each GPU, which keeps its part of each parameter."""

from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard

from scaling.launch.ranks import Rank
from scaling.models.parts import blocks
from scaling.training.trainer import Wrapped


class Sharded(Wrapped):
    """The model of one rank under fully_shard."""

    def accumulate(self, more: bool) -> None:
        assert isinstance(self.model, FSDPModule)
        self.model.set_requires_gradient_sync(not more)


def wrap(model: nn.Module, rank: Rank, gpus: int) -> Sharded:
    """`model` sharded over `gpus` ranks: each of its blocks for itself, then what is left."""
    mesh = init_device_mesh(rank.device.type, (gpus,))
    for block in blocks(model):
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return Sharded(model)
