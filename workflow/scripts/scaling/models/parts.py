"""Split a network into its repeated blocks, and its parameters into communication groups."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from torch import nn

GROUP_BYTES = 25 * 2**20
"""Minimum gradient bytes of a message: DistributedDataParallel's default."""


def blocks(model: nn.Module) -> list[nn.Module]:
    """Return a network's repeated parts: outermost modules whose class occurs several times.

    Classes of torch.nn do not count, nor do modules without submodules. Examples are ResNet's
    residual blocks and a transformer's encoder blocks.
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


def backward_groups(model: nn.Module) -> list[list[nn.Parameter]]:
    """Return groups of parameters to send together, in the order of the backward pass.

    They are the model's `backward_order`, or its parameters from last to first by `GROUP_BYTES`.
    """
    if hasattr(model, "backward_order"):
        own: Any = model.backward_order
        return list(own)
    groups: list[list[nn.Parameter]] = [[]]
    for parameter in reversed(list(model.parameters())):
        if sum(one.numel() * one.itemsize for one in groups[-1]) >= GROUP_BYTES:
            groups.append([])
        groups[-1].append(parameter)
    return groups
