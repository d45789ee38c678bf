"""Averaging gradients over ranks while the backward pass is still running."""

from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import Tensor, nn

BUCKET_BYTES = 8 * 1024 * 1024


class GradientBuckets:
    """Sums gradients over all ranks in buckets, each sent as soon as its last gradient is there.

    Gradients become ready from the last layer to the first, so buckets are filled in that order. A
    bucket is copied into one flat buffer, summed by one all-reduce on the communication stream, and
    copied back by `finish`. Divide the loss by the number of ranks to get means. All of it may be
    captured in a CUDA graph. With `enabled` False nothing is sent and gradients stay local.
    """

    def __init__(self, model: nn.Module) -> None:
        self.enabled = True
        self._buckets: list[list[nn.Parameter]] = [[]]
        for parameter in reversed(list(model.parameters())):
            if _bytes(self._buckets[-1]) >= BUCKET_BYTES:
                self._buckets.append([])
            self._buckets[-1].append(parameter)
        self._missing = [len(bucket) for bucket in self._buckets]
        self._sent: list[tuple[list[nn.Parameter], Tensor, dist.Work]] = []
        for number, bucket in enumerate(self._buckets):
            for parameter in bucket:
                parameter.register_post_accumulate_grad_hook(self._arrival(number))

    @property
    def bucket_bytes(self) -> list[int]:
        """The bytes of each bucket in the order of sending."""
        return [_bytes(bucket) for bucket in self._buckets]

    def _arrival(self, number: int) -> Callable[[Tensor], None]:
        def arrived(_: Tensor) -> None:
            self._missing[number] -= 1
            if self._missing[number] == 0:
                self._missing[number] = len(self._buckets[number])
                if self.enabled:
                    self._send(self._buckets[number])

        return arrived

    def _send(self, bucket: list[nn.Parameter]) -> None:
        flat = torch.cat([_gradient(parameter).flatten() for parameter in bucket])
        work = dist.all_reduce(flat, async_op=True)
        assert work is not None
        self._sent.append((bucket, flat, work))

    def finish(self) -> None:
        """Wait for all buckets on the device and put the sums into the gradients."""
        for bucket, flat, work in self._sent:
            work.wait()
            parts = flat.split([parameter.numel() for parameter in bucket])
            for parameter, part in zip(bucket, parts, strict=True):
                parameter.grad = _like(part, parameter)
        self._sent.clear()


def _gradient(parameter: nn.Parameter) -> Tensor:
    """The gradient in its memory order, so that flattening copies nothing."""
    gradient = parameter.grad
    assert gradient is not None
    return gradient.permute(0, 2, 3, 1) if _is_channels_last(parameter) else gradient


def _like(flat: Tensor, parameter: nn.Parameter) -> Tensor:
    """`flat` viewed with the parameter's shape and memory order."""
    if not _is_channels_last(parameter):
        return flat.view(parameter.shape)
    out, inward, height, width = parameter.shape
    return flat.view(out, height, width, inward).permute(0, 3, 1, 2)


def _is_channels_last(parameter: nn.Parameter) -> bool:
    return parameter.dim() == 4 and parameter.is_contiguous(memory_format=torch.channels_last)


def _bytes(bucket: list[nn.Parameter]) -> int:
    return sum(parameter.numel() * parameter.element_size() for parameter in bucket)
