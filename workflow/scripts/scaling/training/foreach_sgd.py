"""Optimizers that update all parameters together, by operations on lists of tensors.

With one kernel per parameter and operation, kernel launches would limit a small model's speed.
"""

import copy
import math
from collections import Counter
from itertools import islice
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.parallel import DistributedDataParallel

from scaling.models.resnet import BasicBlock
from scaling.registry.update_rule import UpdateRule
from scaling.training import update
from scaling.training.captured_steps import SideStream
from scaling.training.strategies import Wrapped, buckets_of

NORMS = (_BatchNorm, nn.LayerNorm, nn.GroupNorm)
"""Modules whose parameters stay in float32 if the other parameters have a lower precision."""
ALIGNED_ELEMENTS = 64
"""Tensors in a flat array start at multiples of this many elements, as fast cuDNN kernels need."""
BUCKET_MB = 1.0
"""Maximum size of a gradient bucket in MiB. At 32 images per GPU, 1 is the fastest of 1 to 16."""


class ForeachSGD(Wrapped):
    """A model that SGD, LARS or Muon updates by operations that a CUDA graph can capture.

    The parameters of `model` become float32. If `working_dtype` is None, `self.model` is `model`.
    Otherwise `self.model` is a copy of `model` in this dtype. The copy shares the normalization
    layers of `model`, which stay float32. `ranks` processes average gradients. If `compiled`,
    torch.compile compiles the SGD update. Learning rates are tensors, so that they can change
    between replays of a captured step.

    LARS follows You et al. 2017 (arXiv:1708.03888, algorithm 1), with one trust ratio per parameter
    tensor. The ratio is 1 for vectors, as in MLPerf's reference. The ratio is also 1 for tensors
    whose weights or gradients are all 0, which would never change otherwise. Muon follows Jordan et
    al. 2024 (CIFAR-10). For each weight w of `update.hidden_convolutions`, w ← √(output channels) ·
    w / |w|, then w ← w - rate · `update.orthogonalized`(Nesterov momentum). SGD updates the rest.
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
        hidden = {id(weight) for weight in update.hidden_convolutions(model)}

        def matrix(one: Tensor) -> tuple[int, ...]:
            return (len(one), one[0].numel()) if id(one) in hidden else ()

        # Weights that Muon can update come last, in groups of one shape.
        self._parameters = sorted(model.parameters(), key=matrix)
        self._matrices = Counter(filter(None, map(matrix, self._parameters)))
        self._muon_momenta: list[Tensor] = []
        for one in self._parameters:  # A user's model can have other types, and gaps in memory.
            one.data = torch.empty_like(one, dtype=torch.float32).copy_(one.data)
        # Each tensor's elements in their order in memory: 1-D.
        self._weights = [one.data.as_strided((one.numel(),), (1,)) for one in self._parameters]
        self._momenta = [torch.zeros_like(one) for one in self._weights]
        self._working: list[Tensor] = []
        zeros, device = self._weights[0].new_zeros, self._weights[0].device
        self._adapted = torch.tensor([one.dim() > 1 for one in self._parameters], device=device)
        self._muon_rate, self._rate, self._momentum = zeros(()), zeros(()), zeros(())
        self._one, self._rates = self._weights[0].new_ones(()), (0.0, 0.0)
        self._trained = self._parameters
        if working_dtype is not None:
            self._working = [one.to(working_dtype) for one in self._weights]
            copied: dict[int, Any] = {id(m): m for m in model.modules() if isinstance(m, NORMS)}
            self.model = copy.deepcopy(model, copied)
            for parameter, working in zip(self._parameters, self._working, strict=True):
                if id(parameter) in copied:
                    view = working.as_strided(parameter.shape, parameter.stride())
                    copied[id(parameter)].data = view
            self._trained = [copied.get(id(one), one) for one in self._parameters]
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
        with self.aside.after(*self._weights, launched=True):
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
        """Set momenta to 0 and rates to their peaks. `options` are arguments of torch.optim.SGD."""
        self._rule, self._weight_decay = rule, options["weight_decay"]
        self._momentum.fill_(options["momentum"] if rule.momentum is None else rule.momentum)
        for module in self.model.modules():
            if rule.zero_gamma and isinstance(module, BasicBlock):
                nn.init.zeros_(module.bn2.weight)
        if rule.muon and not self._muon_momenta:
            zeros = self._weights[0].new_zeros
            self._muon_momenta = [zeros(n, *shape) for shape, n in self._matrices.items()]
        for momenta in self.momenta:
            momenta.zero_()
        self.set_rates(*rule.peaks(options["lr"]))

    @property
    def momenta(self) -> list[Tensor]:
        """Return the momenta of SGD and of Muon: the whole state of the optimizer."""
        return [*self._momenta, *self._muon_momenta]

    @property
    def state(self) -> list[Tensor]:
        return [*self._weights, *self.model.buffers(), *self.momenta]

    def refresh(self) -> None:
        """Copy the float32 weights to the copy of the model in `working_dtype`, if there is one."""
        if self._working:
            torch._foreach_copy_(self._working, self._weights)

    def set_rates(self, muon: float, rest: float) -> None:
        """Set the learning rates of the next updates: Muon's, and SGD's for all other weights."""
        if (muon, rest) != self._rates:
            self._muon_rate.fill_(muon)
            self._rate.fill_(rest)
            self._rates = muon, rest

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
        rule, rate = self._rule, self._rate
        gradients = self._gradients()
        weights, momenta, working = self._weights, self._momenta, self._working
        if rule.muon:
            rest = len(gradients) - self._matrices.total()
            self._muon(weights[rest:], gradients[rest:], working[rest:])
            lists = weights, momenta, gradients, working
            weights, momenta, gradients, working = (tensors[:rest] for tensors in lists)
        adapted = self._adapted[: len(weights)]
        decay: float | list[Tensor] = self._weight_decay
        if not rule.decay_batch_norm:
            decay = list((self._weight_decay * adapted).unbind())
        local_rates: list[Tensor] = []
        if rule.lars:
            trusted = self._local_rates(rule.lars, adapted, weights, gradients)
            local_rates, rate = list((rate * trusted).unbind()), self._one
        self._sgd(
            *(weights, momenta, gradients, working, rate, self._momentum),
            *(decay, local_rates, rule.nesterov),
        )

    def _gradients(self) -> list[Tensor]:
        """Return each gradient as 1-D, in its parameter's memory order; set `grad` to None."""
        self.aside.join()
        gradients: Any = [one.grad for one in self._trained]
        for one in self._trained:
            one.grad = None
        return list(map(in_order_of, gradients, self._trained))

    def _muon(self, weights: list[Tensor], gradients: list[Tensor], working: list[Tensor]) -> None:
        """Update the hidden convolutions by Muon. The lists have one tensor per convolution."""
        pairs, moved = zip(weights, gradients, strict=True), list[Tensor]()
        for momenta in self._muon_momenta:
            group = zip(*islice(pairs, len(momenta)), strict=True)
            old, gradient = (torch.stack(part).view_as(momenta).float() for part in group)
            momenta.mul_(self._rule.muon_momentum).add_(gradient)
            gradient.add_(momenta, alpha=self._rule.muon_momentum)
            step = update.orthogonalized(gradient, self._rule.newton_schulz_steps)
            scale = old.size(1) ** 0.5 / torch.linalg.matrix_norm(old, keepdim=True)
            moved += (old * scale - self._muon_rate * step).flatten(1).unbind()
        for arrays in filter(None, (weights, working)):
            torch._foreach_copy_(arrays, moved)

    def _local_rates(
        self, trust: float, adapted: Tensor, weights: list[Tensor], gradients: list[Tensor]
    ) -> Tensor:
        """Return LARS's ratio, trust · |w| / (|gradient| + decay · |w|) or 1, for each weight w."""
        of_weights, of_gradients = (
            torch.stack(torch._foreach_norm(arrays, dtype=torch.float32))
            for arrays in (weights, gradients)
        )
        local = trust * of_weights / (of_gradients + self._weight_decay * of_weights)
        return torch.where(adapted & (of_weights > 0) & (of_gradients > 0), local, 1.0)


class FlatShards(ForeachSGD):
    """Strategy `zero1`: each rank updates one part of all weights, and has this part's momenta.

    The weights are in one flat array, whose parts have the same size. A reduce-scatter gives each
    rank the summed gradients of its part. After the update, an all-gather sends the weights to all
    ranks. This is stage 1 of ZeRO (arXiv:1910.02054). It sends as many bytes as an all-reduce.
    """

    def __init__(
        self, model: nn.Module, ranks: int, dtype: torch.dtype | None = None, compiled: bool = False
    ) -> None:
        super().__init__(model, ranks, dtype, compiled)
        self._collect = torch.compile(_collect, dynamic=False) if compiled else _collect
        self._used = sum(map(room_of, self._parameters))
        size = math.ceil(self._used / ranks / ALIGNED_ELEMENTS) * ALIGNED_ELEMENTS
        flat = self._weights[0].new_zeros(size * ranks)
        self._flat = flat, torch.zeros_like(flat, dtype=dtype)
        before, (self._weights, self._gathered) = self._weights, map(self._parts_of, self._flat)
        torch._foreach_copy_(self._weights, before)
        for parameter, part in zip(self._parameters, self._weights, strict=True):
            parameter.data = part.as_strided(parameter.shape, parameter.stride())
        self._own = [whole.split(size)[dist.get_rank()] for whole in self._flat]
        self._momenta = [torch.zeros_like(self._own[0])]

    def _parts_of(self, flat: Tensor) -> list[Tensor]:
        """Return a 1-D view of the array `flat` for each parameter: its elements, unpadded."""
        parts = flat[: self._used].split([room_of(one) for one in self._parameters])
        return [part[: one.numel()] for part, one in zip(parts, self._parameters, strict=True)]

    def parallel(self, forward: nn.Module) -> nn.Module:
        return forward  # `step` sends the gradients.

    @property
    def bucket_bytes(self) -> list[int]:
        return [self._used * self._weights[0].itemsize]

    @property
    def sent_share(self) -> float:
        # 2 messages are sent, where `Strategy.busiest_bytes` assumes 3 in float32.
        return sum(flat.itemsize for flat in self._flat) / (3 * self._weights[0].itemsize)

    def backward(self, loss: Tensor, share: float) -> None:
        super().backward(loss, share / self._ranks)  # The sum over ranks is the mean.

    def step(self) -> None:
        self._collect(self._gathered, self._gradients())
        (weights, gradients), (own_weights, own_gradients) = self._flat, self._own
        if self.sends:
            dist.reduce_scatter_tensor(own_gradients, gradients)
        self._sgd(
            *([own_weights], self._momenta, [own_gradients], [], self._rate, self._momentum),
            *(self._weight_decay, [], self._rule.nesterov),
        )
        if self.sends:
            dist.all_gather_into_tensor(weights, own_weights)
        self.refresh()


def _collect(parts: list[Tensor], gradients: list[Tensor]) -> None:
    torch._foreach_copy_(parts, gradients)


def room_of(tensor: Tensor) -> int:
    """Return the number of elements that `tensor` occupies in a flat array, padding included."""
    return math.ceil(tensor.numel() / ALIGNED_ELEMENTS) * ALIGNED_ELEMENTS


def in_order_of(tensor: Tensor, like: Tensor) -> Tensor:
    """Return the elements of `tensor` in the memory order of `like`: 1-D, a view if possible.

    Strides can differ although the order is the same, because dimensions of size 1 have any stride.
    """
    order = sorted(range(like.dim()), key=like.stride, reverse=True)
    return tensor.permute(order).reshape(-1)
