"""What a trained model is worth: loss, accuracy, which model it is, and what training it costs."""

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

from scaling.training.trainer import TrainingData, finite

COUNTED_IMAGES = 2
"""Batch normalisation refuses a single value per channel."""


def normalized(
    images: np.ndarray, mean: np.ndarray, std: np.ndarray, device: torch.device | str = "cpu"
) -> Tensor:
    """uint8 [n, S, S, 3] to float32 [n, 3, S, S] on `device`: what ToTensor and Normalize give."""
    own_mean, own_std = (torch.from_numpy(part).to(device) for part in (mean, std))
    scaled = torch.from_numpy(images).to(device).float() / 255
    return ((scaled - own_mean) / own_std).float().permute(0, 3, 1, 2).contiguous()


@contextmanager
def algorithm_search(on: bool) -> Iterator[None]:
    """Decide whether cuDNN times its algorithms for each new size, or takes the likely best.

    A search takes seconds, so it is for the size that nearly all updates have.
    """
    before = torch.backends.cudnn.benchmark
    torch.backends.cudnn.benchmark = on
    try:
        yield
    finally:
        torch.backends.cudnn.benchmark = before


@torch.no_grad()
@algorithm_search(False)
def evaluate(
    model: nn.Module, dataset: TrainingData, device: torch.device, batch_size: int = 500
) -> dict[str, float | None]:
    """`test_loss` (mean cross-entropy, null if not finite) and `test_accuracy` (0 to 1).

    Not in inference mode: what a sharded model gathers there could not be used in training again.
    Its few batches are not worth a search for the fastest convolutions.
    """
    model.eval()
    images, labels = dataset.data.test_images, dataset.data.test_labels
    loss = 0.0
    correct = 0
    for start in range(0, len(labels), batch_size):
        batch = slice(start, start + batch_size)
        logits = model(normalized(images[batch], dataset.mean, dataset.std, device))
        target = torch.from_numpy(labels[batch]).to(device)
        loss += functional.cross_entropy(logits, target, reduction="sum").item()
        correct += int((logits.argmax(1) == target).sum().item())
    return {"test_loss": finite(loss / len(labels)), "test_accuracy": correct / len(labels)}


def sha256(tensors: Iterable[Tensor]) -> str:
    """Hash the bytes of tensors, of a model's parameters say: SHA-256 in hexadecimal.

    All ranks have to call where they are sharded.
    """
    digest = hashlib.sha256()
    for tensor in whole(tensors):
        # A copy: NumPy's view of a tensor keeps a sharded model from letting go of it.
        own = tensor.detach().to("cpu", copy=True).contiguous()
        digest.update(own.numpy().tobytes())
    return digest.hexdigest()


def whole(tensors: Iterable[Tensor]) -> list[Tensor]:
    """Gather those that are sharded over ranks; all ranks have to call."""
    return [one.full_tensor() if hasattr(one, "full_tensor") else one for one in tensors]


def own_parts(model: nn.Module) -> list[Tensor]:
    """What `model` holds on this rank, parameters and buffers, to copy from and to."""
    held = model.state_dict().values()
    return [one.to_local() if hasattr(one, "to_local") else one for one in held]


def image_shape(dataset: TrainingData) -> tuple[int, int, int]:
    """The shape of one image as a model sees it, (3, S, S)."""
    side = dataset.data.train_images.shape[1]
    return 3, side, side


@dataclass(frozen=True)
class StepCosts:
    """What one image costs in a step."""

    flops: int
    """Floating-point operations of forward and backward: those of convolutions and matrix products,
    a multiplication and an addition as two, with the gradients of every parameter. The images
    themselves need no gradient. ResNet-18 for CIFAR costs 3.329e9."""
    activation_bytes: int
    """What autograd keeps of the forward pass for the backward pass, in float32 and uncompiled:
    each tensor once, without parameters and buffers."""


def count_step(model: nn.Module, image_shape: tuple[int, ...] = (3, 32, 32)) -> StepCosts:
    """Count what a step of `model` costs for each image of `image_shape`.

    It runs on shapes alone (PyTorch's meta device), or for a model that looks at values on zeros,
    where its own parameters are; `model` stays as it is.
    """
    tensors = dict([*model.named_parameters(), *model.named_buffers()])
    try:
        return _count(model, tensors, image_shape, torch.device("meta"))
    except (NotImplementedError, RuntimeError):
        return _count(model, tensors, image_shape, next(iter(tensors.values())).device)


def _count(
    model: nn.Module, tensors: dict[str, Tensor], image_shape: tuple[int, ...], device: torch.device
) -> StepCosts:
    fresh = {
        name: torch.zeros_like(tensor, device=device, requires_grad=tensor.requires_grad)
        for name, tensor in tensors.items()
    }
    images = torch.zeros(COUNTED_IMAGES, *image_shape, device=device)
    kept: dict[int, torch.UntypedStorage] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        kept[storage._cdata] = storage
        return tensor

    saving = torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor)
    with FlopCounterMode(display=False) as counter, saving:
        functional_call(model, fresh, (images,)).sum().backward()
    for tensor in fresh.values():
        kept.pop(tensor.untyped_storage()._cdata, None)
    activations = sum(storage.nbytes() for storage in kept.values())
    return StepCosts(counter.get_total_flops() // COUNTED_IMAGES, activations // COUNTED_IMAGES)
