"""What tests share as it takes long to make, and what every one is kept from leaving behind."""

import subprocess
from types import SimpleNamespace

import pytest
import torch

from forked import ForkedPopen
from scaling.launch import launcher
from training_runs import run


@pytest.fixture(autouse=True, scope="module")
def own_threads():
    """Sums depend on the number of threads: a module that changes it does so for itself."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture(autouse=True, scope="session")
def forked_processes():
    """The launcher forks this process instead of starting Python anew, which takes seconds.

    Not where PyTorch sees a GPU: it cannot be used after a fork.
    """
    if not torch.cuda.is_available():
        parts = {"Popen": ForkedPopen, "TimeoutExpired": subprocess.TimeoutExpired}
        launcher.subprocess = SimpleNamespace(**parts)
    yield
    launcher.subprocess = subprocess


@pytest.fixture(scope="session")
def double(images, tmp_path_factory):
    """The record of a run of two processes."""
    return run(images, tmp_path_factory.mktemp("double") / "run.json", gpus=2)


@pytest.fixture(scope="session")
def quantized_digits(tmp_path_factory):
    """A folder with the digits, a network trained on them and its quantized stages."""
    # Imports scikit-learn, for which most modules need not wait.
    from examples import quantized_digits as digits

    folder = tmp_path_factory.mktemp("digits")
    digits.make(folder)
    return folder
