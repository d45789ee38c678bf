"""Strategy `dp`: one process that copies the model to every GPU in each step."""

from torch import nn
from torch.nn.parallel import DataParallel

from scaling.launch.ranks import Rank
from scaling.training.wrapped import Wrapped


def wrap(model: nn.Module, rank: Rank, gpus: int) -> Wrapped:
    """Return `model` under DataParallel on the first `gpus` GPUs of this process."""
    return Wrapped(DataParallel(model, device_ids=list(range(gpus))))
