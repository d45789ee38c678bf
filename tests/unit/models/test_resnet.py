import os
import subprocess
import sys

import torch

from scaling.models.resnet import ResNet18

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


def test_the_model_of_the_literature_has_11173962_parameters():
    assert ResNet18(4, 3)(torch.zeros(2, 3, 32, 32)).shape == (2, 3)
    assert sum(parameter.numel() for parameter in ResNet18().parameters()) == 11_173_962


def test_narrow_networks_train_on_channels_last_images():
    """Strided 1×1 convolutions of few channels used to corrupt the heap."""
    made = subprocess.run([sys.executable, "-c", TRAINING], env=os.environ | CHECKED)
    assert made.returncode == 0


def test_narrow_convolution_equals_a_strided_one():
    shortcut, images = ResNet18(4).stages[1][0].shortcut[0], torch.randn(2, 4, 6, 6)
    plain = torch.nn.functional.conv2d(images, shortcut.weight, stride=2)
    torch.testing.assert_close(shortcut(images), plain)
