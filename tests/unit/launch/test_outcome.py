"""Which errors of a training process are results of the study."""

import pytest
import torch

from scaling.launch.outcome import classify, first_sentence


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."), "oom"),
        (RuntimeError("CUDA error: out of memory"), "oom"),
        (RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"), "oom"),
        (MemoryError(), "oom_host"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), "oom_host"),
        (RuntimeError("DataLoader worker (pid 7) is killed by signal: Bus error."), "oom_host"),
        (RuntimeError("DataLoader worker (pid 7) is killed by signal: Killed."), None),
        (KeyError("a bug"), None),
    ],
)
def test_a_lack_of_memory_is_a_result_and_anything_else_a_failure(error, status):
    assert classify(error) == status


def test_the_line_that_says_what_was_asked_for_is_kept():
    error = RuntimeError("Caught in replica 1\n  CUDA out of memory. Tried to allocate 2 GiB.\nend")
    assert first_sentence(error) == "CUDA out of memory. Tried to allocate 2 GiB."
    assert first_sentence(MemoryError()) == "MemoryError"


def test_an_error_that_came_from_a_lack_of_memory_is_one():
    full = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
    error = RuntimeError("capture was invalidated")
    error.__context__ = full
    assert classify(error) == "oom"
    assert first_sentence(error) == "CUDA out of memory. Tried to allocate 2.00 GiB."
