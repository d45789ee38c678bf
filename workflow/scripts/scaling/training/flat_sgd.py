"""SGD on one flat array of all weights, with gradient all-reduces during the backward pass.

Casts and an update of each tensor make a small model's step launch-bound; one array has few. The
gradients of each part of the model are one message, sent in the backward pass of those before it.
"""

import copy
import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.utils.hooks import RemovableHandle

from scaling.models.build import backward_groups
from scaling.registry.update_rule import UpdateRule
from scaling.training import update
from scaling.training.captured_steps import SideStream
from scaling.training.wrapped import Wrapped

NORMS = (_BatchNorm, nn.LayerNorm, nn.GroupNorm)
"""Modules whose parameters stay float32 in every working precision."""
ALIGNED_ELEMENTS = 64
"""Every tensor starts at a multiple of this, as cuDNN's fast kernels need aligned weights."""


@dataclass
class Bucket:
    """Parameters whose gradients are sent together, and their range of the flat arrays."""

    parameters: list[nn.Parameter]
    range: slice
    missing: int
    sent: dist.Work | None = None


class FlatSGD(Wrapped):
    """A model and its update by SGD, LARS or Muon in few kernels, which a CUDA graph can capture.

    The parameters of the model become float32 views of one array. `model`, on which forward and
    backward run, is the given one, or a copy that shares its norms and has all other parameters in
    `working_dtype`, in which `ranks` average gradients. Rates are tensors, so that a captured step
    follows a schedule.

    LARS is as in You et al. 2017 (arXiv:1708.03888, algorithm 1), by parameter tensor; the trust
    ratio is 1 for vectors, as in MLPerf's reference, and where weights or gradients are 0, which
    would never learn. Muon is as Jordan et al. 2024 train CIFAR-10: the weights of
    `update.hidden_convolutions` are scaled to the norm √(output channels), then moved by rate ·
    `update.orthogonalized` Nesterov momentum, and the rest by SGD at the rate `rest`.
    """

    early = True
    """Whether messages are sent as soon as their gradients are there, or by `step`."""

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
        self.aside = SideStream()
        self._hooks: list[RemovableHandle] = []
        groups = backward_groups(model)
        self._parameters = [parameter for group in groups for parameter in group]
        groups = groups if ranks > 1 else [self._parameters]  # One rank sends no messages.
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
        if working_dtype is not None:
            self._working = self._weights.to(working_dtype)
            copied: dict[int, Any] = {id(m): m for m in model.modules() if isinstance(m, NORMS)}
            self.model = copy.deepcopy(model, copied)
            views = views_of(self._working, self._parameters)
            for parameter, view in zip(self._parameters, views, strict=True):
                if id(parameter) in copied:
                    copied[id(parameter)].data = view
            groups = [[copied.get(id(one), one) for one in group] for group in groups]
        self._collect = torch.compile(_collect, dynamic=False) if compiled else _collect
        self._sgd = torch.compile(update.sgd, dynamic=False) if compiled else update.sgd
        self._buckets: list[Bucket] = []
        end = 0
        for group in groups:
            start, end = end, end + sum(map(room_of, group))
            self._buckets.append(Bucket(group, slice(start, end), len(group)))
            arrived = self._arrival(self._buckets[-1])
            self._hooks += [one.register_post_accumulate_grad_hook(arrived) for one in group]

    def start(self, options: dict[str, Any], rule: UpdateRule) -> None:
        """Begin a training by `rule` with SGD's options: zero momenta, and the rates' peaks."""
        self._rule, self._weight_decay = rule, options["weight_decay"]
        self._momentum.fill_(options["momentum"] if rule.momentum is None else rule.momentum)
        update.prepare(self.model, rule)
        if rule.muon and not self._groups:
            # Matrices of one shape as a batch: their places, and momenta [n, out, rest].
            matrices, groups = self._matrices(self._weights), defaultdict(list)
            for place, one in enumerate(self._parameters):
                if id(one) in self._hidden:
                    groups[matrices[place].shape].append(place)
            zeros = self._weights.new_zeros
            self._groups = [(own, zeros(len(own), *shape)) for shape, own in groups.items()]
        for momenta in self.momenta:
            momenta.zero_()
        self.set_rates(*rule.peaks(options["lr"]))

    @property
    def momenta(self) -> list[Tensor]:
        """Return all state of earlier updates except the weights."""
        return [self._momenta, *(momenta for _, momenta in self._groups)]

    @property
    def state(self) -> list[Tensor]:
        return [self._weights, *self.model.buffers(), *self.momenta]

    def refresh(self) -> None:
        """Copy the weights to the working copy."""
        if self._working is not None:
            self._working.copy_(self._weights)

    def set_rates(self, rate: float, rest: float) -> None:
        """Set the rate of the next updates, and with Muon the rate of all other parameters."""
        if (rate, rest) != self._rates:
            self._rate.fill_(rate)
            self._rest.fill_(rest)
            self._rates = rate, rest

    @property
    def bucket_bytes(self) -> list[int]:
        sent = self._buckets if self._ranks > 1 else []
        return [self._weights[bucket.range].nbytes for bucket in sent]

    @property
    def sent_share(self) -> float:
        return self.gradients.itemsize / self._weights.itemsize if self._ranks > 1 else 1.0

    def accumulate(self, more: bool) -> None:
        self._more = more
        self.aside.join()

    def backward(self, loss: Tensor, share: float) -> None:
        # Ranks sum their gradients: to the mean.
        loss.backward(loss.new_full((), share / self._ranks))

    def release(self) -> None:
        for hook in self._hooks:
            hook.remove()

    def step(self) -> None:
        """Update the weights of a message when it has come, or by LARS and Muon all at once."""
        self.aside.join()
        whole = self._rule.lars or self._rule.muon
        for bucket in self._buckets:
            if bucket.sent:
                bucket.sent.wait()
                bucket.sent = None
            if not whole:
                self._update(bucket.range)
        if whole:
            self._update(slice(None))

    def _update(self, part: slice) -> None:
        rule, gradients = self._rule, self.gradients[part]
        working = None if self._working is None else self._working[part]
        moved = self._muon() if rule.muon else {}
        rate = self._rest if rule.muon else self._rate
        decay: Tensor | float = self._weight_decay
        if not rule.decay_batch_norm:
            decay = decay * self._in_adapted[part]
        if rule.lars:
            gradients = gradients + decay * self._weights
            local = self._local_rates(rule.lars) * rate
            torch._foreach_mul_(views_of(gradients, self._parameters), list(local.unbind()))
            rate, decay = self._one, 0.0
        self._sgd(
            *(self._weights[part], self._momenta[part], gradients, None if moved else working),
            *(rate, self._momentum, decay, rule.nesterov),
        )
        if moved:
            matrices = self._matrices(self._weights)
            torch._foreach_copy_([matrices[place] for place in moved], list(moved.values()))
            self.refresh()

    def _muon(self) -> dict[int, Tensor]:
        """Return the weights of all groups after the step, by their places."""
        weights, gradients = map(self._matrices, (self._weights, self.gradients))
        found: dict[int, Tensor] = {}
        for places, momenta in self._groups:
            gradient = torch.stack([gradients[place] for place in places]).float()
            momenta.mul_(self._rule.muon_momentum).add_(gradient)
            gradient.add_(momenta, alpha=self._rule.muon_momentum)
            step = update.orthogonalized(gradient, self._rule.newton_schulz_steps)
            old = torch.stack([weights[place] for place in places])
            scale = old.size(1) ** 0.5 / torch.linalg.matrix_norm(old, keepdim=True)
            found |= zip(places, (old * scale - self._rate * step).unbind(), strict=True)
        return found

    def _matrices(self, flat: Tensor) -> list[Tensor]:
        """Return the tensors of `flat` as matrices whose first dimension is outermost in memory."""
        views = views_of(flat, self._parameters)
        return [one.as_strided((len(one), one[0].numel()), (one[0].numel(), 1)) for one in views]

    def _local_rates(self, trust: float) -> Tensor:
        """Return LARS's rate of each parameter tensor: η · |w| / (|g| + decay · |w|), or 1."""
        weights, gradients = (
            torch.stack(torch._foreach_norm(views_of(flat, self._parameters)))
            for flat in (self._weights, self.gradients.float())
        )
        local = trust * weights / (gradients + self._weight_decay * weights)
        return torch.where(self._adapted & (weights > 0) & (gradients > 0), local, 1.0)

    def _arrival(self, bucket: Bucket) -> Callable[[Tensor], None]:
        def arrived(parameter: Tensor) -> None:
            grad = parameter.grad
            # The gradient may be a view of an array that the next forward pass overwrites.
            if self._more and grad is not None and grad.untyped_storage().nbytes() > grad.nbytes:
                parameter.grad = grad.clone()
            bucket.missing -= 1
            if bucket.missing == 0:
                bucket.missing = len(bucket.parameters)
                if not self._more:
                    self._send(bucket)

        return arrived

    def _send(self, bucket: Bucket) -> None:
        """Copy the gradients to the flat array and start their all-reduce."""
        flat = self.gradients[bucket.range]
        gradients = [one.grad for one in bucket.parameters if one.grad is not None]
        with self.aside.after(*gradients):
            self._collect(views_of(flat, bucket.parameters), gradients)
            if self.sends and self.early:
                bucket.sent = dist.all_reduce(flat, async_op=True)
        for parameter in bucket.parameters:
            parameter.grad = None


def _collect(views: list[Tensor], gradients: list[Tensor]) -> None:
    torch._foreach_copy_(views, gradients)


def room_of(tensor: Tensor) -> int:
    """Return the elements that a tensor takes up in the flat array, with padding."""
    return math.ceil(tensor.numel() / ALIGNED_ELEMENTS) * ALIGNED_ELEMENTS


def views_of(flat: Tensor, like: Sequence[Tensor]) -> list[Tensor]:
    """Split `flat` into consecutive views with the shapes and memory formats of `like`."""
    parts = zip(flat.split([room_of(tensor) for tensor in like]), like, strict=True)
    return [part.as_strided(tensor.shape, tensor.stride()) for part, tensor in parts]


def bucket_bytes(model: nn.Module) -> list[int]:
    """Return the bytes of each message of a step in bf16, in sending order, with padding."""
    return [sum(map(room_of, group)) * torch.bfloat16.itemsize for group in backward_groups(model)]
