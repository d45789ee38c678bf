"""A run that tests share, and what every unit test is kept from leaving behind."""

import pytest
import torch

from training_runs import run


@pytest.fixture(autouse=True, scope="module")
def own_threads():
    """Sums depend on the number of threads: a module that changes it does so for itself."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def double(images, tmp_path_factory):
    """The record of a run of two processes."""
    return run(images, tmp_path_factory.mktemp("double") / "run.json", gpus=2)
