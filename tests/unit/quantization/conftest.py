"""What the tests of quantization share."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from scaling.config.scheme import MISTAKES, Scheme
from scaling.data.batches import Images, read_images
from scaling.models.tutorial_cnn import load_weights, tutorial_cnn
from scaling.quantization.variant import make, measure

Trained = tuple[nn.Sequential, Images, Images]


@pytest.fixture
def images() -> Tensor:
    """40 images of noise."""
    return torch.randn(40, 3, 32, 32, generator=torch.Generator().manual_seed(1))


@pytest.fixture
def network() -> nn.Sequential:
    """An untrained tutorial CNN."""
    torch.manual_seed(0)
    return tutorial_cnn().eval()


@pytest.fixture(scope="session")
def trained(quantized_digits: Path) -> Trained:
    """The network trained on the digits, their training and their test images."""
    paths = quantized_digits / "images.npz", quantized_digits / "manifest.json"
    training, test, _ = read_images(*paths, torch.device("cpu"))
    return load_weights(quantized_digits / "weights.pt"), training, test


@pytest.fixture(scope="session")
def mistakes(trained: Trained) -> dict[str | None, dict[str, Any]]:
    """The record of the plain variant of `trained` (None), and of each mistaken one."""
    network, training, test = trained
    variants = {
        mistake: make(network, Scheme(mistake=mistake), training, test, seed=0)
        for mistake in (None, *MISTAKES)
    }
    return {name: measure(network, each, training, test) for name, each in variants.items()}
