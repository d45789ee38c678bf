"""The project's networks: ResNet-18, and the tutorial CNN with its weights file."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from scaling.core.errors import UserError
from scaling.models.resnet import ResNet18
from scaling.models.tutorial_cnn import load_weights, save_weights, tutorial_cnn

TRAINING = """
import torch
from scaling.models.resnet import ResNet18
torch.set_num_threads(1)
for width in (1, 2, 4):
    model = ResNet18(width).to(memory_format=torch.channels_last)
    for _ in range(60):
        model(torch.randn(6, 32, 32, 3).permute(0, 3, 1, 2)).square().sum().backward()
"""
# Where the C library has them, its checks find each write beyond an array when that is freed.
CHECKED = {
    "PYTHONPATH": os.pathsep.join(sys.path),
    "LD_PRELOAD": "libc_malloc_debug.so.0",
    "MALLOC_CHECK_": "3",
}


def test_resnet18_has_11173962_parameters():
    assert ResNet18(4, 3)(torch.zeros(2, 3, 32, 32)).shape == (2, 3)
    assert sum(parameter.numel() for parameter in ResNet18().parameters()) == 11_173_962


def test_narrow_networks_train_on_channels_last_images():
    """In PyTorch, strided 1×1 convolutions of few channels corrupted the heap."""
    made = subprocess.run([sys.executable, "-c", TRAINING], env=os.environ | CHECKED)
    assert made.returncode == 0


def test_narrow_convolution_equals_a_strided_one():
    shortcut, images = ResNet18(4).stages[1][0].shortcut[0], torch.randn(2, 4, 6, 6)
    plain = torch.nn.functional.conv2d(images, shortcut.weight, stride=2)
    torch.testing.assert_close(shortcut(images), plain)


def test_tutorial_cnn_weights_are_loaded_unchanged(tmp_path):
    network, paths = tutorial_cnn(), (tmp_path / "new/one.pt", tmp_path / "another.pt")
    assert sum(parameter.numel() for parameter in network.parameters()) == 62_006
    for path in paths:
        save_weights(network, path)
    loaded, images = load_weights(paths[0]), torch.randn(4, 3, 32, 32)
    assert loaded(images).shape == (4, 10) and torch.equal(loaded(images), network(images))
    assert not loaded.training
    assert paths[0].read_bytes() == paths[1].read_bytes()


class Trap:
    """Creates a file when it is unpickled."""

    def __reduce__(self):
        return Path.touch, (Path("sprung"),)


OTHERS = [{"conv1.weight": torch.zeros(6, 3, 3, 3)}, [1.0], {1: 2}, {"conv1.weight": Trap()}]


def test_invalid_weights_file_is_refused_and_runs_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path, network = tmp_path / "weights.pt", tutorial_cnn()
    save_weights(network, path)
    whole = path.read_bytes()
    path.unlink()
    told = "weights.pt is missing, damaged, or of another network than the tutorial CNN; train it"
    for content in (None, b"", whole[:1000], whole[:-1000], *OTHERS):
        if isinstance(content, bytes):
            path.write_bytes(content)
        elif content:
            torch.save(content, path)
        with pytest.raises(UserError, match=told):
            load_weights(path)
    assert not Path("sprung").exists()
    network.get_parameter("fc1.bias").data[3] = float("nan")
    save_weights(network, path)
    with pytest.raises(UserError, match="infinite or not a number"):
        load_weights(path)
