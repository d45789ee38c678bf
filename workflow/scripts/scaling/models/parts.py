"""The parts of any network: its repeated blocks, and its parameters as gradients become ready."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from torch import nn

GROUP_BYTES = 25 * 2**20
"""As much of a model's gradients at least travels in one message: DistributedDataParallel's."""


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


def backward_groups(model: nn.Module) -> list[list[nn.Parameter]]:
    """Parameters whose gradients travel together, in the order in which the backward pass ends.

    A model's own `backward_order`, or its parameters from the last to the first by `GROUP_BYTES`.
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
