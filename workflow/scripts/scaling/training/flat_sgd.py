"""SGD on one flat array of all weights, with gradient all-reduces during the backward pass.

A step of a small model is launch-bound: a cast for each weight, another for each gradient, an
update for each tensor. With all weights in one array a step has one update, which also writes the
weights in the working precision. The gradients of each half of the model are sent in one message,
the first while the backward pass is still in the other half.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.utils.hooks import RemovableHandle

from scaling.models.parts import backward_groups
from scaling.registry.update_rule import UpdateRule
from scaling.training.flat_weights import FlatWeights, room_of, views_of
from scaling.training.update import Update

NORMS = (_BatchNorm, nn.LayerNorm, nn.GroupNorm)
"""Modules whose parameters stay float32 in every working precision."""
PLAIN = UpdateRule()


@dataclass
class Bucket:
    """Parameters whose gradients are sent together, and their place in `flat`."""

    parameters: list[nn.Parameter]
    views: list[Tensor]
    flat: Tensor
    missing: int


class FlatSGD:
    """Optimizer of `model` by `rule`; the default is SGD with momentum as in torch.optim.SGD.

    The parameters of `model` become float32 views of one array. Run forward and backward on
    `trained`: `model` itself, or with `working_dtype` a copy that shares its norms and has all
    other parameters in that type; `step` updates it. With several `ranks` gradients are summed:
    divide the loss by their number for the mean. With `enabled` False nothing is sent. CUDA graphs
    can capture everything.
    """

    def __init__(
        self,
        model: nn.Module,
        learning_rate: float,
        momentum: float,
        weight_decay: float,
        ranks: int,
        working_dtype: torch.dtype | None,
        compiled: bool,
        rule: UpdateRule = PLAIN,
    ) -> None:
        self.enabled = ranks > 1
        self._sent: list[dist.Work] = []
        self._hooks: list[RemovableHandle] = []
        self._more = False
        groups = backward_groups(model)
        order = [parameter for group in groups for parameter in group]
        self._flat = FlatWeights(order)
        self.trained = model
        self._working: Tensor | None = None
        if working_dtype is not None:
            self._working = self._flat.values.to(working_dtype)
            shared = {id(m): m for m in model.modules() if isinstance(m, NORMS)}
            self.trained = copy.deepcopy(model, shared)
            groups = backward_groups(self.trained)
            own = [parameter for group in groups for parameter in group]
            views = views_of(self._working, order)
            for parameter, mine, view in zip(order, own, views, strict=True):
                if mine is not parameter:
                    mine.data = view
        self._collect = torch.compile(_collect, dynamic=False) if compiled else _collect
        self._update = Update(model, self._flat, order, self._working, compiled)
        self._update.reset(rule, momentum, weight_decay)
        self._peaks = (rule.muon or learning_rate), learning_rate
        self.follow(1.0)
        parts = self._flat.gradients.split([sum(map(room_of, group)) for group in groups])
        self._buckets = [
            Bucket(group, views_of(flat, group), flat, len(group))
            for group, flat in zip(groups, parts, strict=True)
        ]
        for bucket in self._buckets:
            for parameter in bucket.parameters:
                hook = parameter.register_post_accumulate_grad_hook(self._arrival(bucket))
                self._hooks.append(hook)

    @property
    def state(self) -> list[Tensor]:
        """Return weights and momenta; call `refresh` after changing them."""
        return [self._flat.values, *self._update.momenta]

    def refresh(self) -> None:
        """Copy the weights to `trained`."""
        if self._working is not None:
            self._working.copy_(self._flat.values)

    def follow(self, share: float) -> None:
        """Set the learning rate of the next updates to this share of its peak."""
        self._update.set_rates(*(share * peak for peak in self._peaks))

    def accumulate(self, more: bool) -> None:
        """Set whether `more` backward passes of the same update follow the next one."""
        self._more = more

    def release(self) -> None:
        """Detach from the model, so that another optimizer can take it."""
        for hook in self._hooks:
            hook.remove()

    def step(self) -> None:
        """Wait on the device for the all-reduces, then update all weights."""
        for work in self._sent:
            work.wait()
        self._sent.clear()
        self._update.step()

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
        gradients = [
            parameter.grad for parameter in bucket.parameters if parameter.grad is not None
        ]
        self._collect(bucket.views, gradients)
        for parameter in bucket.parameters:
            parameter.grad = None
        if self.enabled:
            work = dist.all_reduce(bucket.flat, async_op=True)
            assert work is not None
            self._sent.append(work)


def _collect(views: list[Tensor], gradients: list[Tensor]) -> None:
    torch._foreach_copy_(views, gradients)


def bucket_bytes(model: nn.Module) -> list[int]:
    """Return the bytes of each message of a step, in sending order, with padding."""
    groups = backward_groups(model)
    return [sum(map(room_of, group)) * torch.float32.itemsize for group in groups]
