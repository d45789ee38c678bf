"""Records and networks that several test modules read. Each is created once."""

import subprocess
from types import SimpleNamespace

import pytest

from examples import quantized_digits as digits
from forked import ForkedPopen
from scaling.launch import launcher
from training_runs import DEVICE


@pytest.fixture(autouse=True, scope="session")
def forked_processes():
    """Let the launcher fork this process, because starting Python takes seconds.

    With a GPU, it starts new processes, because a GPU cannot be used after a fork.
    """
    if DEVICE == "cpu":
        launcher.subprocess = SimpleNamespace(**{**vars(subprocess), "Popen": ForkedPopen})
    yield
    launcher.subprocess = subprocess


@pytest.fixture(scope="session")
def quantized_digits(tmp_path_factory):
    """Return a folder with digits, a network trained on them and its quantized variants."""
    folder = tmp_path_factory.mktemp("digits")
    digits.make(folder)
    return folder
