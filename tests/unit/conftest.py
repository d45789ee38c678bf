"""What every unit test is kept from leaving behind."""

import pytest
import torch


@pytest.fixture(autouse=True, scope="module")
def own_threads():
    """Sums depend on the number of threads: a module that changes it does so for itself."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)
