"""Strategy `ddp`: one process per GPU, which averages gradients by all-reduce."""

from contextlib import AbstractContextManager
from typing import Any

from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.nn.parallel import DistributedDataParallel

from scaling.launch.ranks import Rank
from scaling.training.wrapped import Wrapped


class Replica(Wrapped):
    """One rank's model under DistributedDataParallel."""

    model: DistributedDataParallel
    low_rank: powerSGD_hook.PowerSGDState | None = None
    """What PowerSGD keeps, where it compresses gradients."""

    def __init__(self, model: DistributedDataParallel, bytes_share: float = 1.0) -> None:
        super().__init__(model)
        self._bytes_share = bytes_share

    @property
    def sent_share(self) -> float:
        rate = self.low_rank.compression_stats()[0] if self.low_rank else 1.0
        return self._bytes_share / (rate or 1.0)

    @property
    def bucket_bytes(self) -> list[int]:
        """Return the bucket sizes, which are final after the first steps.

        They are in the order in which gradients become ready.
        """
        logged = self.model._get_ddp_logging_data()
        sizes = logged.get("rebuilt_bucket_sizes") or logged.get("bucket_sizes") or ""
        return [int(size) for size in str(sizes).split(",") if size.strip()]

    def without_communication(self) -> AbstractContextManager[None] | None:
        return self._local()

    def accumulate(self, more: bool) -> None:
        self.model.require_backward_grad_sync = self.sends and not more


SETTLED = 2
"""Steps before PowerSGD: DistributedDataParallel orders its buckets anew after the first."""


def wrap(
    model: nn.Module,
    rank: Rank,
    gpus: int,
    *,
    bf16_compression: bool = False,
    powersgd_rank: int | None = None,
    **options: Any,
) -> Replica:
    """Return `model` under DistributedDataParallel on the device of `rank`, one of `gpus` ranks.

    `options` are arguments of DistributedDataParallel. Gradients are sent in bf16 with
    `bf16_compression`, and as factors of rank `powersgd_rank` by PowerSGD where that is given.
    """
    devices = [rank.device] if rank.device.type == "cuda" else None
    wrapped = DistributedDataParallel(model, device_ids=devices, **options)
    replica = Replica(wrapped, 0.5 if bf16_compression else 1.0)
    if powersgd_rank:
        replica.low_rank = powerSGD_hook.PowerSGDState(
            None, powersgd_rank, start_powerSGD_iter=SETTLED
        )
        hook: Any = powerSGD_hook.powerSGD_hook
        hook = default_hooks.bf16_compress_wrapper(hook) if bf16_compression else hook
        wrapped.register_comm_hook(replica.low_rank, hook)
    elif bf16_compression:
        hook = default_hooks.bf16_compress_hook
        wrapped.register_comm_hook(None, hook)
    return replica
