"""Strategy `fsdp`: a process for each GPU, which keeps its part of each parameter."""

from collections import Counter
from collections.abc import Iterator

from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

from scaling.launch.ranks import Rank
from scaling.training.trainer import Wrapped


def wrap(model: nn.Module, rank: Rank, gpus: int) -> Wrapped:
    """`model` sharded over `gpus` ranks: each of its blocks for itself, then what is left."""
    mesh = init_device_mesh(rank.device.type, (gpus,))
    for block in blocks(model):
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return Wrapped(model)


def blocks(model: nn.Module) -> list[nn.Module]:
    """The repeated parts of a network: outermost modules of a class that occurs several times.

    Classes of torch.nn do not count, nor do modules without others inside. ResNet's residual
    blocks, a transformer's encoder blocks.
    """
    classes = Counter(type(module) for module in model.modules())

    def search(module: nn.Module) -> Iterator[nn.Module]:
        for child in module.children():
            own = not type(child).__module__.startswith("torch.nn")
            if own and classes[type(child)] > 1 and any(child.children()):
                yield child
            else:
                yield from search(child)

    return list(search(model))
