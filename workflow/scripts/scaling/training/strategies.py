"""Strategies: classes that wrap a rank's model, so that the backward pass averages gradients."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DataParallel, DistributedDataParallel

from scaling.launch.ranks import Rank
from scaling.models.build import blocks
from scaling.registry.update_rule import UpdateRule

MESSAGE_BYTES = 10 * 2**20
"""Maximum size in bytes of a message of parameters in DataParallel (`buffer_size` of
torch.nn.parallel.comm). A larger parameter is a message of its own."""


class Wrapped:
    """One rank's model, wrapped by a strategy that averages gradients in the backward pass.

    For each micro-batch, call `accumulate`, `model` and `backward`. Then call `step` once.
    """

    optimizer: torch.optim.Optimizer
    sends = True
    """Whether steps currently exchange gradients with other ranks."""
    separable = False
    """Whether a step can also run without an exchange of gradients."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model

    @property
    def bucket_bytes(self) -> list[int]:
        """Return the size in bytes of each gradient message in one step; [] by default."""
        return []

    @property
    def sent_share(self) -> float:
        """Return the ratio of bytes sent to `Strategy.busiest_bytes` for float32 gradients."""
        return 1.0

    @contextmanager
    def without_communication(self) -> Iterator[None]:
        """In a `with` block, exchange no gradients. Allowed only if `separable` is True."""
        self.sends = False
        try:
            yield
        finally:
            self.sends = True

    def accumulate(self, more: bool) -> None:
        """Prepare a backward pass; `more` is True if another pass follows before the update."""

    def backward(self, loss: Tensor, share: float) -> None:
        """Run the backward pass of `share` · `loss`, which adds to the gradients.

        `loss` is the mean over a micro-batch; `share` is the micro-batch's fraction of the batch.
        """
        (loss if share == 1 else loss * share).backward()

    def start(self, options: dict[str, Any], rule: UpdateRule) -> None:
        """Create the optimizer: plain SGD with `options`. Only subclasses use `rule`."""
        self.optimizer = torch.optim.SGD(self.model.parameters(), **options)

    def step(self) -> None:
        """Update the weights, then delete the gradients."""
        self.optimizer.step()
        self.optimizer.zero_grad()

    def set_rates(self, rate: float, rest: float) -> None:
        """Ignore both rates, as this optimizer's rate is constant. `ForeachSGD` applies them."""

    @property
    def state(self) -> list[Tensor]:
        """Return the tensors that a step changes. To undo a step, restore them; call `refresh`."""
        weights = [parameter.data for parameter in self.model.parameters()]
        return [*weights, *self.model.buffers()]

    def refresh(self) -> None:
        """Set momenta to 0 after trial steps, in place, because CUDA graphs use these tensors."""
        for momenta in self.optimizer.state.values():
            for momentum in filter(torch.is_tensor, momenta.values()):
                momentum.zero_()


def single(model: nn.Module, rank: Rank, gpus: int) -> Wrapped:
    """Return `model` wrapped for one GPU, without an exchange of gradients."""
    return Wrapped(model)


class CopiedModel(Wrapped):
    """A model under DataParallel. In each step, GPU 0 broadcasts weights and sums gradients."""

    @property
    def bucket_bytes(self) -> list[int]:
        return message_bytes(self.model)


def message_bytes(model: nn.Module) -> list[int]:
    """Return the size in bytes of each weight broadcast and gradient reduction of DataParallel."""
    groups = torch._utils._take_tensors([*model.parameters()], MESSAGE_BYTES)
    return [sum(parameter.nbytes for parameter in group) for group in groups]


def dp(model: nn.Module, rank: Rank, gpus: int) -> CopiedModel:
    """Return `model` under DataParallel: one process copies it to `gpus` GPUs in each step."""
    return CopiedModel(DataParallel(model, device_ids=list(range(gpus))))


class Replica(Wrapped):
    """A rank's model under DistributedDataParallel."""

    model: DistributedDataParallel
    separable = True
    item_share = 1.0
    """Bytes per gradient element when sent / bytes in memory: 0.5 with bf16 compression, else 1."""
    low_rank: powerSGD_hook.PowerSGDState | None = None
    """State of PowerSGD; None if PowerSGD does not compress the gradients."""

    @property
    def sent_share(self) -> float:
        rate = self.low_rank.compression_stats()[0] if self.low_rank else 1.0
        return self.item_share / (rate or 1.0)

    @property
    def bucket_bytes(self) -> list[int]:
        return buckets_of(self.model)

    def accumulate(self, more: bool) -> None:
        self.model.require_backward_grad_sync = self.sends and not more


def buckets_of(model: DistributedDataParallel) -> list[int]:
    """Return the size in bytes of each DDP bucket, in backward order; final after two steps."""
    logged = model._get_ddp_logging_data()
    sizes = logged.get("rebuilt_bucket_sizes") or logged.get("bucket_sizes") or ""
    return [int(size) for size in str(sizes).split(",") if size.strip()]


def ddp(
    model: nn.Module,
    rank: Rank,
    gpus: int,
    *,
    bf16_compression: bool = False,
    powersgd_rank: int | None = None,
    **options: Any,
) -> Replica:
    """Return `model` under DistributedDataParallel with `options` and optional compression."""
    devices = [rank.device] if rank.device.type == "cuda" else None
    replica = Replica(DistributedDataParallel(model, device_ids=devices, **options))
    replica.item_share = 0.5 if bf16_compression else 1.0
    hook: Any = default_hooks.bf16_compress_hook if bf16_compression else None
    if powersgd_rank:
        # DDP changes the order of buckets after the first step.
        state = powerSGD_hook.PowerSGDState(None, powersgd_rank, start_powerSGD_iter=2)
        replica.low_rank, hook = state, powerSGD_hook.powerSGD_hook
        hook = default_hooks.bf16_compress_wrapper(hook) if bf16_compression else hook
    if hook:
        replica.model.register_comm_hook(replica.low_rank, hook)
    return replica


class ZeroReplica(Replica):
    """A rank's model in strategy `zero1`: each rank updates and broadcasts part of the weights."""

    separable = False

    def start(self, options: dict[str, Any], rule: UpdateRule) -> None:
        parameters = self.model.parameters()
        self.optimizer = ZeroRedundancyOptimizer(parameters, torch.optim.SGD, **options)


def zero1(model: nn.Module, rank: Rank, gpus: int) -> ZeroReplica:
    """Return `model` under DistributedDataParallel, with the optimizer's state split over ranks."""
    return ZeroReplica(ddp(model, rank, gpus).model)


class Sharded(Wrapped):
    """A rank's model under fully_shard: the rank stores a shard of each parameter."""

    def accumulate(self, more: bool) -> None:
        assert isinstance(self.model, FSDPModule)
        self.model.set_requires_gradient_sync(not more)

    def start(self, options: dict[str, Any], rule: UpdateRule) -> None:
        # On DTensors, PyTorch dispatches each operation from Python: tens of milliseconds a step.
        parameters: Any = self.model.parameters()
        parts = [whole.data.to_local() for whole in parameters]
        self.optimizer = torch.optim.SGD(parts, **options)

    def step(self) -> None:
        parts, parameters = self.optimizer.param_groups[0]["params"], self.model.parameters()
        sharded: Any = zip(parts, parameters, strict=True)
        for part, whole in sharded:
            part.grad = None if whole.grad is None else whole.grad.to_local()
            whole.grad = None
        super().step()


def fsdp(model: nn.Module, rank: Rank, gpus: int) -> Sharded:
    """Return `model` sharded over `gpus` ranks. FSDP units are its blocks and one for the rest."""
    mesh = init_device_mesh(rank.device.type, (gpus,))
    for block in blocks(model):
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    return Sharded(model)
