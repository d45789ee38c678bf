"""Records and networks that several modules of tests read, each made once."""

import json
import subprocess
from types import SimpleNamespace

import pytest
import torch

from examples import quantized_digits as digits
from forked import ForkedPopen
from scaling.launch import launcher
from training_runs import DEVICE, run


@pytest.fixture(autouse=True, scope="module")
def own_threads():
    """A module that changes the number of threads, on which sums depend, does so for itself."""
    before = torch.get_num_threads()
    yield
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
def double_path(images, tmp_path_factory):
    """Where the record of a run of two processes is."""
    path = tmp_path_factory.mktemp("double") / "run.json"
    run(images, path, gpus=2)
    return path


@pytest.fixture(scope="session")
def double(double_path):
    """The record of a run of two processes."""
    return json.loads(double_path.read_text())


@pytest.fixture(scope="session")
def quantized_digits(tmp_path_factory):
    """A folder with the digits, a network trained on them and its quantized stages."""
    folder = tmp_path_factory.mktemp("digits")
    digits.make(folder)
    return folder
