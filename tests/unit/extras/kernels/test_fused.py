"""Fused norms equal PyTorch's norms in float64. A ResNet with them equals one without."""

import copy
import itertools

import pytest
import torch
from torch import nn
from torch.nn import functional
from triton.runtime import interpreter

from extras.kernels.fused import SUMS, FusedNorm, FusedResNet
from scaling.models.resnet import ResNet18
from scaling.registry.update_rule import UpdateRule
from scaling.training.foreach_sgd import ForeachSGD
from training_runs import DEVICE, INTERPRET

ERROR = {torch.float32: 1e-5, torch.bfloat16: 1e-2}


@pytest.fixture(autouse=True)
def _float32_products_and_an_interpreter(monkeypatch):
    torch.manual_seed(0)
    for name, value in INTERPRET.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(interpreter, "_patch_lang_tensor", with_indices)
    with torch.backends.cudnn.flags(allow_tf32=False):
        yield


def with_indices(tensor, scope, patch=interpreter._patch_lang_tensor):
    """Convert indexes of Triton's interpreter: NumPy 2.4 refuses arrays of one element."""
    patch(tensor, scope)
    scope.set_attr(tensor, "__index__", lambda self: self.handle.data.item())


def near(found, wanted, error):
    return (found.double() - wanted).norm() <= error * wanted.norm()


def random(*shape, dtype=torch.float32, scale=1.0, shift=0.0):
    values = (torch.randn(*shape, device=DEVICE) * scale + shift).to(dtype)
    return values.to(memory_format=torch.channels_last).requires_grad_()


def fused_norm(channels):
    norm = nn.BatchNorm2d(channels, device=DEVICE)
    nn.init.normal_(norm.weight)
    nn.init.normal_(norm.bias)
    reference = copy.deepcopy(norm).double()
    return FusedNorm(norm, torch.zeros(SUMS * channels, device=DEVICE)), reference


RESIDUALS = ("none", "added", "normalized")
# Shapes decide over blocks, the other options over what one computes.
KINDS = [
    *itertools.product(ERROR, RESIDUALS, (1, 2), [(3, 24, 7, 5)]),
    *itertools.product(ERROR, RESIDUALS, [2], [(9, 128, 6, 6)]),
    # The gradients of a single channel's norm cancel out, in bf16 to few digits.
    *itertools.product(ERROR, RESIDUALS[:2], [2], [(2, 1, 90, 50)]),
]


@pytest.mark.parametrize(("dtype", "kind", "uses", "shape"), KINDS)
def test_fused_results_and_gradients_equal_batch_norms(dtype, kind, uses, shape):
    norms = [fused_norm(shape[1]) for _ in range(2 if kind == "normalized" else 1)]
    leaves = [random(*shape, dtype=dtype, scale=3.0, shift=2.0)]
    if kind != "none":
        leaves.append(random(*shape, dtype=dtype))
    weights = [random(*shape, dtype=dtype) for _ in range(uses)]
    results = norms[0][0](*leaves, *(fused for fused, _ in norms[1:]))
    sum((y * w).double().sum() for y, w in zip(results, weights, strict=False)).backward()

    exact = [leaf.detach().double().requires_grad_() for leaf in leaves]
    each = [reference(leaf) for (_, reference), leaf in zip(norms, exact, strict=False)]
    wanted = functional.relu(sum(each + exact[len(each) :]))
    (wanted * sum(weights).double()).sum().backward()

    pairs = [(result, wanted) for result in results]
    pairs += [(leaf.grad, other.grad) for leaf, other in zip(leaves, exact, strict=True)]
    for (norm, _), reference in norms:
        pairs += [(norm.weight.grad, reference.weight.grad), (norm.bias.grad, reference.bias.grad)]
        pairs += zip(norm.buffers(), reference.buffers(), strict=True)
    assert all(near(one, other, ERROR[dtype]) for one, other in pairs if one.dim())


def test_nan_passes_the_fused_rectifier():
    x = torch.ones(2, 8, 5, 5, device=DEVICE)  # Not in the order of channels-last images.
    x[0, 3, 0, 0] = torch.nan
    fused, _ = fused_norm(8)
    assert fused(x)[0].isnan().any(dim=(0, 2, 3)).tolist() == [channel == 3 for channel in range(8)]


def test_fused_micro_batches_equal_those_of_the_plain_model():
    """The second micro-batch fails if the sums of the first one remain in the shared buffer."""
    plain = ResNet18(6, 10).to(DEVICE, memory_format=torch.channels_last)
    with torch.no_grad():
        for parameter in plain.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    own = copy.deepcopy(plain)
    optimizer = ForeachSGD(own)
    optimizer.start({"lr": 1.0, "momentum": 0.0, "weight_decay": 0.0}, UpdateRule())
    fused = FusedResNet(optimizer.model, False, optimizer.aside)
    before = [parameter.detach().clone() for parameter in own.parameters()]
    for more in (True, False):
        images, labels = random(4, 3, 16, 16).detach(), torch.arange(4, device=DEVICE)
        wanted = functional.cross_entropy(plain(images), labels)
        wanted.backward()
        optimizer.accumulate(more)
        found = functional.cross_entropy(fused(images), labels)
        optimizer.backward(found, 1)
        assert found.item() == pytest.approx(wanted.item(), rel=1e-5)
    optimizer.step()
    # At a rate of 1, an update is the gradient. Rounding opens or shuts a rectifier here and there.
    for old, new, parameter in zip(before, own.parameters(), plain.parameters(), strict=True):
        assert near(old - new, parameter.grad, 0.15)
    for (name, one), other in zip(plain.named_buffers(), own.buffers(), strict=True):
        assert name.endswith("num_batches_tracked") or torch.allclose(one, other, atol=1e-4), name
