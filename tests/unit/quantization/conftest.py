"""What the tests of quantization share."""

import pytest
import torch

from scaling.models.tutorial_cnn import tutorial_cnn


@pytest.fixture
def images():
    """40 images of noise."""
    return torch.randn(40, 3, 32, 32, generator=torch.Generator().manual_seed(1))


@pytest.fixture
def network():
    """An untrained tutorial CNN."""
    torch.manual_seed(0)
    return tutorial_cnn().eval()
