"""What tests share as it takes long to make, and what every one is kept from leaving behind.

Imports no PyTorch: tests of what tells need none, and where there is none they are all there are.
"""

import json
import subprocess
import sys
from importlib.util import find_spec
from types import SimpleNamespace

import pytest

from examples import quantized_digits as digits
from forked import ForkedPopen
from fused_kernels import DEVICE
from scaling.launch import launcher
from training_runs import run

MEASURING = ["data", "instruments", "large_batches", "launch", "models"]
MEASURING += ["quantization", "synchronization", "training", "extras"]
collect_ignore = [] if find_spec("torch") else MEASURING


@pytest.fixture(autouse=True, scope="module")
def own_threads():
    """Sums depend on the number of threads: a module that changes it does so for itself."""
    torch = sys.modules.get("torch")
    before = torch and torch.get_num_threads()
    yield
    if torch:
        torch.set_num_threads(before)


@pytest.fixture(autouse=True, scope="session")
def forked_processes():
    """The launcher forks this process instead of starting Python anew, which takes seconds.

    Not where PyTorch sees a GPU: it cannot be used after a fork.
    """
    if DEVICE == "cpu":
        launcher.subprocess = SimpleNamespace(**{**vars(subprocess), "Popen": ForkedPopen})
    yield
    launcher.subprocess = subprocess


@pytest.fixture(scope="session")
def double_path(images, tmp_path_factory, torch):
    """Where the record of a run of two processes is."""
    path = tmp_path_factory.mktemp("double") / "run.json"
    run(images, path, gpus=2)
    return path


@pytest.fixture(scope="session")
def double(double_path):
    """The record of a run of two processes."""
    return json.loads(double_path.read_text())


@pytest.fixture(scope="session")
def quantized_digits(tmp_path_factory, torch):
    """A folder with the digits, a network trained on them and its quantized stages."""
    folder = tmp_path_factory.mktemp("digits")
    digits.make(folder)
    return folder
