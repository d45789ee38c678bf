"""Which typed status an exception of a training process means, if any."""

import textwrap
from collections.abc import Iterator

import torch

from scaling.core.records import Status

DEVICE_FULL = (
    "CUDA out of memory",
    "CUDA error: out of memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_ALLOC_FAILED",
    "Cuda failure 2 'out of memory'",
    "Failed to CUDA calloc",
)
HOST_FULL = (
    "DefaultCPUAllocator",
    "is killed by signal: Bus error",
    "unable to mmap",
    "Cannot allocate memory",
)


def classify(error: BaseException) -> Status | None:
    """`oom` when the device had no room, `oom_host` when the host had none, None for a failure.

    So it is with an error that came from one of these: ending a CUDA graph's capture for want of
    memory raises an error of its own. A loader worker that got SIGKILL is a failure here: why it
    did, only the supervisor can tell.
    """
    statuses = (_status(origin) for origin in _origins(error))
    return next((status for status in statuses if status is not None), None)


def first_sentence(error: BaseException) -> str:
    """What the error says, on one line: of its text, or that of the lack of memory behind it."""
    told = next((origin for origin in _origins(error) if _status(origin) is not None), error)
    lines = [line.strip() for line in str(told).splitlines() if line.strip()]
    telling = [line for line in lines if "allocate" in line or "memory" in line]
    return textwrap.shorten((telling or lines or [type(told).__name__])[0], 300, placeholder=" …")


def _origins(error: BaseException) -> Iterator[BaseException]:
    """The error, what it came from, and so on."""
    origin: BaseException | None = error
    while origin is not None:
        yield origin
        origin = origin.__cause__ or origin.__context__


def _status(error: BaseException) -> Status | None:
    text = str(error)
    if isinstance(error, torch.OutOfMemoryError) or any(words in text for words in DEVICE_FULL):
        return "oom"
    if isinstance(error, MemoryError) or any(words in text for words in HOST_FULL):
        return "oom_host"
    return None
