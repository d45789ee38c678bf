"""Optimizers that keep all weights in one flat array. DistributedDataParallel averages gradients.

With a kernel per tensor and operation, launches would limit the speed of a small model.
"""

import copy
import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.parallel import DistributedDataParallel

from scaling.registry.update_rule import UpdateRule
from scaling.training import update
from scaling.training.captured_steps import SideStream
from scaling.training.strategies import Wrapped, buckets_of

NORMS = (_BatchNorm, nn.LayerNorm, nn.GroupNorm)
"""Modules whose parameters stay in float32 if the other parameters have a lower precision."""
ALIGNED_ELEMENTS = 64
"""Each tensor starts at a multiple of this many elements, because fast cuDNN kernels require it."""
BUCKET_MB = 1.0
"""Maximum MiB of a gradient bucket. Of 1 to 16 MiB, 1 was the fastest at 32 images per GPU."""


class FlatSGD(Wrapped):
    """A model that SGD, LARS or Muon updates in few kernels, which a CUDA graph can capture.

    The parameters of `model` become views of one flat float32 array. `self.model` runs the forward
    and backward passes. Without `working_dtype`, it is `model`. With `working_dtype`, it is a copy
    of this dtype that shares the normalization layers of `model`, which stay float32. With several
    `ranks`, the flat array of gradients also has this dtype. Learning rates are tensors, so that
    they can change between replays of a captured step.

    LARS follows You et al. 2017 (arXiv:1708.03888, algorithm 1), with one trust ratio per parameter
    tensor. The ratio is 1 for vectors, as in MLPerf's reference. It is also 1 for tensors whose
    weights or gradients are all 0, because these would never change otherwise. Muon follows Jordan
    et al. 2024 (CIFAR-10). For each weight w of `update.hidden_convolutions`, w ← √(output
    channels) · w / |w|, then w ← w - rate · `update.orthogonalized`(Nesterov momentum). SGD updates
    all other parameters.
    """

    def __init__(
        self,
        model: nn.Module,
        ranks: int = 1,
        working_dtype: torch.dtype | None = None,
        compiled: bool = False,
    ) -> None:
        super().__init__(model)
        self.sends = self.separable = ranks > 1
        self._ranks, self._more = ranks, False
        self._ddp: DistributedDataParallel | None = None
        self.aside = SideStream()
        self._parameters = list(model.parameters())
        size, device = sum(map(room_of, self._parameters)), self._parameters[0].device
        self._weights = torch.zeros(size, device=device)
        self._momenta = torch.zeros_like(self._weights)
        sent_dtype = working_dtype if ranks > 1 else None
        self.gradients = torch.zeros_like(self._weights, dtype=sent_dtype)
        views = views_of(self._weights, self._parameters)
        for parameter, view in zip(self._parameters, views, strict=True):
            parameter.data = view.copy_(parameter.detach())
        self._hidden = {id(weight) for weight in update.hidden_convolutions(model)}
        self._groups: list[tuple[list[int], Tensor]] = []
        adapted = torch.tensor([one.dim() > 1 for one in self._parameters])
        of_each = adapted.repeat_interleave(torch.tensor(list(map(room_of, self._parameters))))
        self._adapted, self._in_adapted = adapted.to(device), of_each.to(device)
        self._rate, self._rest, self._momentum = (self._weights.new_zeros(()) for _ in range(3))
        self._one, self._rates = self._weights.new_ones(()), (0.0, 0.0)
        self._working: Tensor | None = None
        self._trained = self._parameters
        if working_dtype is not None:
            self._working = self._weights.to(working_dtype)
            copied: dict[int, Any] = {id(m): m for m in model.modules() if isinstance(m, NORMS)}
            self.model = copy.deepcopy(model, copied)
            views = views_of(self._working, self._parameters)
            for parameter, view in zip(self._parameters, views, strict=True):
                if id(parameter) in copied:
                    copied[id(parameter)].data = view
            self._trained = [copied.get(id(one), one) for one in self._parameters]
        self._collect = torch.compile(_collect, dynamic=False) if compiled else _collect
        self._sgd = torch.compile(update.sgd, dynamic=False) if compiled else update.sgd

    def parallel(self, forward: nn.Module) -> nn.Module:
        """Return `forward` under DistributedDataParallel. On one rank, return it unchanged.

        `forward` is a module that runs `self.model`. DDP is constructed on the side stream, so its
        hooks copy gradients to buckets on that stream. Ranks do not synchronize buffers.
        """
        if self._ranks == 1:
            return forward
        torch._dynamo.config.optimize_ddp = False  # Else it splits compiled parts.
        torch.autograd.graph.set_warn_on_accumulate_grad_stream_mismatch(False)
        with self.aside.after(self._weights, launched=True):
            self._ddp = DistributedDataParallel(
                forward, bucket_cap_mb=BUCKET_MB, gradient_as_bucket_view=True
            )
        self.aside.join()
        # As an option of the constructor, its name would depend on PyTorch's version.
        self._ddp.broadcast_buffers = False
        # DDP would time one step in 100 with events, which a capture forbids.
        self._ddp._set_ddp_runtime_logging_sample_rate(2**31 - 1)
        return self._ddp

    def start(self, options: dict[str, Any], rule: UpdateRule) -> None:
        """Set momenta to 0 and learning rates to their peaks. `options` are torch.optim.SGD's."""
        self._rule, self._weight_decay = rule, options["weight_decay"]
        self._momentum.fill_(options["momentum"] if rule.momentum is None else rule.momentum)
        update.prepare(self.model, rule)
        if rule.muon and not self._groups:
            # A group has the n matrices of one shape: indexes and momenta [n, out, rest].
            matrices, groups = self._matrices(self._weights), defaultdict(list)
            for place, one in enumerate(self._parameters):
                if id(one) in self._hidden:
                    groups[matrices[place].shape].append(place)
            zeros = self._weights.new_zeros
            self._groups = [
                (places, zeros(len(places), *shape)) for shape, places in groups.items()
            ]
        for momenta in self.momenta:
            momenta.zero_()
        self.set_rates(*rule.peaks(options["lr"]))

    @property
    def momenta(self) -> list[Tensor]:
        """Return the momenta of SGD and of Muon: the whole state of the optimizer."""
        return [self._momenta, *(momenta for _, momenta in self._groups)]

    @property
    def state(self) -> list[Tensor]:
        return [self._weights, *self.model.buffers(), *self.momenta]

    def refresh(self) -> None:
        """Copy the weights to the model of `working_dtype`, if there is one."""
        if self._working is not None:
            self._working.copy_(self._weights)

    def set_rates(self, rate: float, rest: float) -> None:
        """Set the learning rate of the next updates to `rate`. With Muon, SGD's rate is `rest`."""
        if (rate, rest) != self._rates:
            self._rate.fill_(rate)
            self._rest.fill_(rest)
            self._rates = rate, rest

    @property
    def bucket_bytes(self) -> list[int]:
        return buckets_of(self._ddp) if self._ddp else []

    @property
    def sent_share(self) -> float:
        whole = sum(one.nbytes for one in self._parameters)
        return sum(self.bucket_bytes) / whole if self._ddp else 1.0

    def accumulate(self, more: bool) -> None:
        self._more = more
        self.aside.join()
        if self._ddp:
            self._ddp.require_backward_grad_sync = self.sends and not more

    def backward(self, loss: Tensor, share: float) -> None:
        loss.backward(loss.new_full((), share))
        if self._more:
            # A gradient may be a view of an array that the next forward pass overwrites.
            for one in self._trained:
                if one.grad is not None and one.grad.untyped_storage().nbytes() > one.grad.nbytes:
                    one.grad = one.grad.clone()

    def step(self) -> None:
        self._gather()
        rule, gradients = self._rule, self.gradients
        moved = self._muon() if rule.muon else {}
        rate = self._rest if rule.muon else self._rate
        decay: Tensor | float = self._weight_decay
        if not rule.decay_batch_norm:
            decay = decay * self._in_adapted
        if rule.lars:
            gradients = gradients + decay * self._weights
            local = self._local_rates(rule.lars) * rate
            torch._foreach_mul_(views_of(gradients, self._parameters), list(local.unbind()))
            rate, decay = self._one, 0.0
        self._sgd(
            *(self._weights, self._momenta, gradients, None if moved else self._working),
            *(rate, self._momentum, decay, rule.nesterov),
        )
        if moved:
            matrices = self._matrices(self._weights)
            torch._foreach_copy_([matrices[place] for place in moved], list(moved.values()))
            self.refresh()

    def _gather(self) -> None:
        """Copy all gradients to the flat array, and delete the originals."""
        self.aside.join()
        gradients: Any = [one.grad for one in self._trained]
        self._collect(views_of(self.gradients, self._trained), gradients)
        for one in self._trained:
            one.grad = None

    def _muon(self) -> dict[int, Tensor]:
        """Update Muon's momenta. Return the new weights as matrices, by index of the parameter."""
        weights, gradients = map(self._matrices, (self._weights, self.gradients))
        moved: dict[int, Tensor] = {}
        for places, momenta in self._groups:
            gradient = torch.stack([gradients[place] for place in places]).float()
            momenta.mul_(self._rule.muon_momentum).add_(gradient)
            gradient.add_(momenta, alpha=self._rule.muon_momentum)
            step = update.orthogonalized(gradient, self._rule.newton_schulz_steps)
            old = torch.stack([weights[place] for place in places])
            scale = old.size(1) ** 0.5 / torch.linalg.matrix_norm(old, keepdim=True)
            moved |= zip(places, (old * scale - self._rate * step).unbind(), strict=True)
        return moved

    def _matrices(self, flat: Tensor) -> list[Tensor]:
        """Return each parameter p in `flat` as a matrix view [len(p), p[0].numel()] of `flat`."""
        views = views_of(flat, self._parameters)
        return [one.as_strided((len(one), one[0].numel()), (one[0].numel(), 1)) for one in views]

    def _local_rates(self, trust: float) -> Tensor:
        """Return trust · |w| / (|gradient| + decay · |w|) of tensors w; 1 for vectors and zeros."""
        weights, gradients = (
            torch.stack(torch._foreach_norm(views_of(flat, self._parameters)))
            for flat in (self._weights, self.gradients.float())
        )
        local = trust * weights / (gradients + self._weight_decay * weights)
        return torch.where(self._adapted & (weights > 0) & (gradients > 0), local, 1.0)


class FlatShards(FlatSGD):
    """Strategy `zero1`: each rank updates one part of the flat array, and has this part's momenta.

    All parts have the same size. A reduce-scatter gives each rank the summed gradients of its part.
    After the update, an all-gather sends the weights to all ranks. This is stage 1 of ZeRO
    (arXiv:1910.02054). It sends as many bytes as an all-reduce.
    """

    def __init__(self, model: nn.Module, ranks: int, *options: Any) -> None:
        super().__init__(model, ranks, *options)
        size = math.ceil(len(self._weights) / ranks / ALIGNED_ELEMENTS) * ALIGNED_ELEMENTS
        self._padded = [resized(flat, size * ranks) for flat in (self._weights, self.gradients)]
        self._own = [flat.split(size)[dist.get_rank()] for flat in self._padded]
        self._momenta = resized(self._momenta, size)

    def parallel(self, forward: nn.Module) -> nn.Module:
        return forward  # `step` sends the gradients.

    @property
    def bucket_bytes(self) -> list[int]:
        return [self._weights.nbytes]

    @property
    def sent_share(self) -> float:
        # 2 messages are sent, where `Strategy.busiest_bytes` assumes 3 in float32.
        return sum(flat.itemsize for flat in self._padded) / (3 * self._weights.itemsize)

    def backward(self, loss: Tensor, share: float) -> None:
        super().backward(loss, share / self._ranks)  # The sum over ranks is the mean.

    def step(self) -> None:
        self._gather()
        (weights, gradients), (own_weights, own_gradients) = self._padded, self._own
        if self.sends:
            dist.reduce_scatter_tensor(own_gradients, gradients)
        self._sgd(
            *(own_weights, self._momenta, own_gradients, None, self._rate, self._momentum),
            *(self._weight_decay, self._rule.nesterov),
        )
        if self.sends:
            dist.all_gather_into_tensor(weights, own_weights)
        self.refresh()


def _collect(views: list[Tensor], gradients: list[Tensor]) -> None:
    torch._foreach_copy_(views, gradients)


def room_of(tensor: Tensor) -> int:
    """Return the number of elements that a tensor occupies in the flat array, including padding."""
    return math.ceil(tensor.numel() / ALIGNED_ELEMENTS) * ALIGNED_ELEMENTS


def views_of(flat: Tensor, like: Sequence[Tensor]) -> list[Tensor]:
    """Return a view of `flat` for each tensor of `like`, with this tensor's shape and strides."""
    parts = zip(flat.split([room_of(tensor) for tensor in like]), like, strict=True)
    return [part.as_strided(tensor.shape, tensor.stride()) for part, tensor in parts]


def resized(flat: Tensor, size: int) -> Tensor:
    """Resize the storage of `flat`; return a view of all `size` elements. Old views stay valid."""
    flat.untyped_storage().resize_(size * flat.itemsize)
    return flat.as_strided((size,), (1,))
