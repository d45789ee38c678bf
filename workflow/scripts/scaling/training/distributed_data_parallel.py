"""Strategy `ddp`: one process per GPU, which averages gradients by all-reduce."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from torch import nn
from torch.nn.parallel import DistributedDataParallel

from scaling.launch.ranks import Rank
from scaling.training.trainer import Wrapped


class Replica(Wrapped):
    """One rank's model under DistributedDataParallel."""

    model: DistributedDataParallel
    _sends = True

    @property
    def bucket_bytes(self) -> list[int]:
        """Return the bucket sizes, which are final after the first steps.

        They are in the order in which gradients become ready.
        """
        logged = self.model._get_ddp_logging_data()
        sizes = logged.get("rebuilt_bucket_sizes") or logged.get("bucket_sizes") or ""
        return [int(size) for size in str(sizes).split(",") if size.strip()]

    @contextmanager
    def _local(self) -> Iterator[None]:
        self._sends = False
        try:
            with self.model.no_sync():
                yield
        finally:
            self._sends = True

    def without_communication(self) -> AbstractContextManager[None] | None:
        return self._local()

    def accumulate(self, more: bool) -> None:
        self.model.require_backward_grad_sync = self._sends and not more


def wrap(model: nn.Module, rank: Rank, gpus: int, **ddp_kwargs: Any) -> Replica:
    """Return `model` under DistributedDataParallel on the device of `rank`, one of `gpus` ranks.

    `ddp_kwargs` are further arguments of DistributedDataParallel.
    """
    devices = [rank.device] if rank.device.type == "cuda" else None
    return Replica(DistributedDataParallel(model, device_ids=devices, **ddp_kwargs))
