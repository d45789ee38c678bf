"""Which typed status an exception of a training process means, if any."""

import torch

from scaling.record import Status

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

    A loader worker that got SIGKILL is a failure here: why it did, only the supervisor can tell.
    """
    text = str(error)
    if isinstance(error, torch.OutOfMemoryError) or any(words in text for words in DEVICE_FULL):
        return "oom"
    if isinstance(error, MemoryError) or any(words in text for words in HOST_FULL):
        return "oom_host"
    return None


def first_sentence(error: BaseException) -> str:
    """The start of the error's text that says what was asked for, on one line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    telling = [line for line in lines if "allocate" in line or "memory" in line]
    return (telling or lines or [type(error).__name__])[0][:300]
