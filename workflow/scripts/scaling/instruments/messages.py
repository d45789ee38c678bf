"""Record every message of a training step: kind, size in bytes, and the phase that sends it."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any
from unittest.mock import patch

import torch.distributed as dist
from torch import Tensor, nn
from torch._utils import _take_tensors
from torch.nn.parallel import comm
from torch.optim.optimizer import register_optimizer_step_pre_hook
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode

from scaling.training.strategies import MESSAGE_BYTES

KINDS = {"allreduce_": "all_reduce", "_reduce_scatter_base_": "reduce_scatter"}
KINDS |= dict.fromkeys(("allgather_", "_allgather_base_"), "all_gather")
"""Maps names of c10d operators to names of collectives. Other operators keep their names."""
SENT = {"tensors", "tensor", "input_tensors", "input_tensor", "inputs"}
"""Names of the arguments of c10d operators that hold the sent tensors."""


class Messages(TorchDispatchMode):
    """Recorder of messages. `rows` has a row for each message sent while `phase` is not None.

    In a `with` block, all collectives that PyTorch dispatches are recorded, also those of DDP.
    """

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[dict[str, Any]] = []
        self.step = 0
        self.phase: str | None = None

    def add(self, kind: str, tensors: Sequence[Tensor]) -> None:
        """Append a row for one message, which consists of `tensors`, to `rows`."""
        if self.phase is None or not tensors:
            return
        dtypes = dict.fromkeys(str(tensor.dtype).removeprefix("torch.") for tensor in tensors)
        row = {"step": self.step, "phase": self.phase, "kind": kind, "dtype": "+".join(dtypes)}
        row["elements"] = sum(tensor.numel() for tensor in tensors)
        self.rows.append(row | {"bytes": sum(tensor.nbytes for tensor in tensors)})

    @contextmanager
    def phases_of(self, model: nn.Module) -> Iterator[None]:
        """In a `with` block, keep `phase` up to date: `forward`, `backward` or `update`.

        Hooks of `model` and of all optimizers set `phase`.
        """

        def enter(phase: str, *_: object) -> None:
            self.phase = phase

        with (
            # This hook runs first: in another one, a sharded model gathers parameters.
            model.register_forward_pre_hook(partial(enter, "forward"), prepend=True),
            model.register_forward_hook(partial(enter, "backward")),
            register_optimizer_step_pre_hook(partial(enter, "update")),
        ):
            yield

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func.namespace == "c10d":
            tensors: list[Tensor] = []
            for argument, value in zip(func._schema.arguments, args, strict=False):
                if argument.name in SENT:
                    tensors += value if isinstance(value, list | tuple) else [value]
            name = func._schema.name.removeprefix("c10d::")
            self.add(KINDS.get(name, name.strip("_")), tensors)
        return func(*args, **(kwargs or {}))


@contextmanager
def collectives(messages: Messages) -> Iterator[None]:
    """In a `with` block, record all collectives of process groups in `messages`.

    With gloo, DDP's hooks call dist.all_reduce in threads without a dispatch mode, where `messages`
    does not see the calls. Therefore, a function that records them replaces dist.all_reduce.
    """
    name, original = "all_reduce", dist.all_reduce

    def all_reduce(tensor: Tensor, *args: Any, **kwargs: Any) -> Any:
        if _get_current_dispatch_mode() is None:
            messages.add(name, [tensor])
        return original(tensor, *args, **kwargs)

    with patch.object(dist, name, all_reduce), messages:
        yield


@contextmanager
def copies(messages: Messages) -> Iterator[None]:
    """In a `with` block, record the copies that DataParallel makes between GPU 0 and other GPUs.

    A scatter or gather counts as one message with the size of the whole batch. A broadcast or
    reduction counts as one message per group of tensors, with the size for one receiver or sender.
    """

    def recorded(original: Callable[..., Any], kind: str) -> Any:
        def function(sent: Any, *args: Any, **kwargs: Any) -> Any:
            tensors = [sent] if kind == "scatter" else sent[0] if kind == "reduce" else sent
            coalesced = kind in ("broadcast", "reduce")
            groups = _take_tensors(tensors, MESSAGE_BYTES) if coalesced else [tensors]
            for group in groups:
                messages.add(kind, group)
            return original(sent, *args, **kwargs)

        return function

    names = ("broadcast_coalesced", "reduce_add_coalesced", "scatter", "gather")
    functions = {name: recorded(getattr(comm, name), name.partition("_")[0]) for name in names}
    with patch.multiple(comm, **functions):
        yield
