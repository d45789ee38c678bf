"""Strategy `dp`: one process that copies the model to every GPU in each step."""

import torch
from torch import nn
from torch.nn.parallel import DataParallel

from scaling.launch.ranks import Rank
from scaling.training.wrapped import Wrapped

MESSAGE_BYTES = 10 * 2**20
"""The largest message that several parameters share (`buffer_size` of torch.nn.parallel.comm)."""


class CopiedModel(Wrapped):
    """A model that is broadcast in each step, and whose gradients are reduced to GPU 0."""

    @property
    def bucket_bytes(self) -> list[int]:
        return message_bytes(self.model)


def message_bytes(model: nn.Module) -> list[int]:
    """Return the bytes of each broadcast of a step; those of gradients are reduced alike."""
    groups = torch._utils._take_tensors([*model.parameters()], MESSAGE_BYTES)
    return [sum(parameter.nbytes for parameter in group) for group in groups]


def wrap(model: nn.Module, rank: Rank, gpus: int) -> Wrapped:
    """Return `model` under DataParallel on the first `gpus` GPUs of this process."""
    return CopiedModel(DataParallel(model, device_ids=list(range(gpus))))
