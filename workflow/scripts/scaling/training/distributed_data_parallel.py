"""Strategies `ddp` and `zero1`: one process per GPU, which averages gradients by all-reduce.

Each rank of `zero1` updates a shard of the parameters and sends it to the others.
"""

from typing import Any

import torch
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel

from scaling.launch.ranks import Rank
from scaling.registry.update_rule import UpdateRule
from scaling.training.captured_steps import SideStream
from scaling.training.wrapped import Wrapped

BUCKET_MB = 8.0
"""MiB of float32 gradients in a message of recipe tuned."""


class Replica(Wrapped):
    """One rank's model under DistributedDataParallel."""

    model: DistributedDataParallel
    separable = True
    item_share = 1.0
    """Bytes of a number that is sent, as a share of those of a gradient."""
    low_rank: powerSGD_hook.PowerSGDState | None = None
    """What PowerSGD keeps, where it compresses gradients."""

    @property
    def sent_share(self) -> float:
        rate = self.low_rank.compression_stats()[0] if self.low_rank else 1.0
        return self.item_share / (rate or 1.0)

    @property
    def bucket_bytes(self) -> list[int]:
        """Return the bucket sizes, in the order of the backward pass; final after two steps."""
        logged = self.model._get_ddp_logging_data()
        sizes = logged.get("rebuilt_bucket_sizes") or logged.get("bucket_sizes") or ""
        return [int(size) for size in str(sizes).split(",") if size.strip()]

    def accumulate(self, more: bool) -> None:
        self.model.require_backward_grad_sync = self.sends and not more


def wrap(
    model: nn.Module,
    rank: Rank,
    gpus: int,
    *,
    bf16_compression: bool = False,
    powersgd_rank: int | None = None,
    **options: Any,
) -> Replica:
    """Return one rank's `model` under DistributedDataParallel with its and these options."""
    devices = [rank.device] if rank.device.type == "cuda" else None
    replica = Replica(DistributedDataParallel(model, device_ids=devices, **options))
    replica.item_share = 0.5 if bf16_compression else 1.0
    hook: Any = default_hooks.bf16_compress_hook if bf16_compression else None
    if powersgd_rank:
        # After the first step DistributedDataParallel orders its buckets anew.
        state = powerSGD_hook.PowerSGDState(None, powersgd_rank, start_powerSGD_iter=2)
        replica.low_rank, hook = state, powerSGD_hook.powerSGD_hook
        hook = default_hooks.bf16_compress_wrapper(hook) if bf16_compression else hook
    if hook:
        replica.model.register_comm_hook(replica.low_rank, hook)
    return replica


class Captured(Replica):
    """A replica whose steps a CUDA graph can capture: its rate is a tensor."""

    def __init__(
        self, forward: nn.Module, device: torch.device, half: bool, aside: SideStream
    ) -> None:
        torch._dynamo.config.optimize_ddp = False
        with aside.whole(device.type == "cuda"):
            model = DistributedDataParallel(
                forward,
                broadcast_buffers=False,
                bucket_cap_mb=BUCKET_MB,
                gradient_as_bucket_view=True,
            )
        super().__init__(model)
        self.aside, self.item_share = aside, 0.5 if half else 1.0
        if half:
            model.register_comm_hook(None, default_hooks.bf16_compress_hook)

    def start(self, options: dict[str, Any], rule: UpdateRule) -> None:
        parameters = list(self.model.parameters())
        self._rate = torch.tensor(options["lr"], device=parameters[0].device)
        self.optimizer = torch.optim.SGD(parameters, **options | {"lr": self._rate}, fused=True)

    def set_rates(self, rate: float, rest: float) -> None:
        self._rate.fill_(rate)


class ZeroReplica(Replica):
    """A replica of `zero1`, which sends its updates, too."""

    separable = False

    def start(self, options: dict[str, Any], rule: UpdateRule) -> None:
        parameters = self.model.parameters()
        self.optimizer = ZeroRedundancyOptimizer(parameters, torch.optim.SGD, **options)


def wrap_zero1(model: nn.Module, rank: Rank, gpus: int) -> ZeroReplica:
    """Return `model` under DistributedDataParallel, with a shard of the optimizer's state."""
    return ZeroReplica(wrap(model, rank, gpus).model)
