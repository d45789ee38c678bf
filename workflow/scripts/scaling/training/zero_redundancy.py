"""Strategy `zero1`: every rank has the whole model and a shard of the optimizer's state."""

from typing import Any

import torch
from torch import nn
from torch.distributed.optim import ZeroRedundancyOptimizer

from scaling.launch.ranks import Rank
from scaling.training import distributed_data_parallel
from scaling.training.distributed_data_parallel import Replica


class ZeroReplica(Replica):
    """One rank's model: updates a shard of the parameters and sends it to the others."""

    def without_communication(self) -> None:
        """Return None: updated parameters would still be sent."""

    def optimizer(self, options: dict[str, Any]) -> torch.optim.Optimizer:
        return ZeroRedundancyOptimizer(self.model.parameters(), torch.optim.SGD, **options)


def wrap(model: nn.Module, rank: Rank, gpus: int) -> ZeroReplica:
    """Return `model` on the device of `rank`, one of `gpus` ranks."""
    return ZeroReplica(distributed_data_parallel.wrap(model, rank, gpus).model)
