"""A ResNet with fused norms against the same one without."""

import copy

import pytest
import torch
from torch.nn import functional

from extras.kernels.fused import FusedResNet, stem_convolution
from fused_kernels import DEVICE
from scaling.models.resnet import ResNet18
from scaling.registry.update_rule import UpdateRule
from scaling.training.flat_sgd import FlatSGD

pytestmark = pytest.mark.usefixtures("interpreter")


def models(width=6):
    """One model twice, in channels-last order, its gains and biases no longer 1 and 0."""
    torch.manual_seed(0)
    plain = ResNet18(width, 10).to(DEVICE, memory_format=torch.channels_last)
    with torch.no_grad():
        for parameter in plain.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return plain, copy.deepcopy(plain)


@pytest.fixture(autouse=True)
def _float32_products():
    with torch.backends.cudnn.flags(allow_tf32=False):
        yield


def batch(size):
    images = torch.randn(size, 3, 16, 16, device=DEVICE).to(memory_format=torch.channels_last)
    return images, torch.randint(0, 10, (size,), device=DEVICE)


def test_micro_batches_have_the_losses_gradients_and_statistics_of_the_plain_model():
    """The second shows whether the sums of the first are gone, which lie where it writes."""
    plain, own = models()
    optimizer = FlatSGD(own)
    optimizer.start({"lr": 1.0, "momentum": 0.0, "weight_decay": 0.0}, UpdateRule())
    fused = FusedResNet(optimizer.model, False, optimizer.aside)
    before = [parameter.detach().clone() for parameter in own.parameters()]
    for more in (True, False):
        images, labels = batch(4)
        wanted = functional.cross_entropy(plain(images), labels)
        wanted.backward()
        optimizer.accumulate(more)
        found = functional.cross_entropy(fused(images), labels)
        found.backward()
        assert found.item() == pytest.approx(wanted.item(), rel=1e-5)
    optimizer.step()
    # At a rate of 1, an update is the gradient. Rounding opens or shuts a rectifier here and there.
    moved = [one - parameter for one, parameter in zip(before, own.parameters(), strict=True)]
    for found, parameter in zip(moved, plain.parameters(), strict=True):
        assert (found - parameter.grad).norm() < 0.15 * parameter.grad.norm()
    for (name, one), other in zip(plain.named_buffers(), own.buffers(), strict=True):
        assert name.endswith("num_batches_tracked") or torch.allclose(one, other, atol=1e-4), name


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_stem_is_a_padded_convolution(dtype):
    images, _ = batch(2)
    images = images[:, :, :11, :6]
    weight = torch.randn(5, 3, 3, 3, device=DEVICE).to(dtype)
    weight = weight.to(memory_format=torch.channels_last).requires_grad_()
    found = stem_convolution(images, weight)
    upstream = torch.randn_like(found)
    (gradient,) = torch.autograd.grad(found, weight, upstream)
    wide = weight.detach().double().requires_grad_()
    wanted = functional.conv2d(images.to(dtype).double(), wide, padding=1)
    (wanted_gradient,) = torch.autograd.grad(wanted, wide, upstream.double())
    error = 1e-5 if dtype == torch.float32 else 1e-2
    assert found.is_contiguous(memory_format=torch.channels_last)
    assert (found.double() - wanted).norm() < error * wanted.norm()
    assert (gradient.double() - wanted_gradient).norm() < error * wanted_gradient.norm()
