"""Evaluate a trained model: test loss and accuracy, hash of weights, FLOPs of a training step."""

import copy
import hashlib
from collections.abc import Iterable

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

from scaling.data.dataset import ImageDataset
from scaling.models.build import LEAST_BATCH
from scaling.training.step import algorithm_search
from scaling.training.trainer import finite


@torch.no_grad()
@algorithm_search(False)
def evaluate(
    model: nn.Module, dataset: ImageDataset, device: torch.device, batch_size: int = 500
) -> dict[str, float | None]:
    """Return `test_loss` (mean cross-entropy; None if not finite) and `test_accuracy` (0 to 1).

    torch.inference_mode is not used, because it prevents further training of a sharded model.
    """
    model.eval()
    images, labels = dataset.test_images, dataset.test_labels
    mean, std = (torch.from_numpy(part).to(device) for part in (dataset.mean, dataset.std))
    loss, correct = 0.0, 0
    for start in range(0, len(labels), batch_size):
        batch = slice(start, start + batch_size)
        scaled = torch.from_numpy(images[batch]).to(device).float() / 255
        inputs = ((scaled - mean) / std).float().permute(0, 3, 1, 2).contiguous()
        logits = model(inputs).float()
        target = torch.from_numpy(labels[batch]).to(device)
        loss += functional.cross_entropy(logits, target, reduction="sum").item()
        correct += int((logits.argmax(1) == target).sum().item())
    return {"test_loss": finite(loss / len(labels)), "test_accuracy": correct / len(labels)}


def sha256(tensors: Iterable[Tensor]) -> str:
    """Return the SHA-256 (hex) of the tensors' bytes. If tensors are sharded, call on all ranks."""
    digest = hashlib.sha256()
    for tensor in tensors:
        whole = tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor
        # It is copied, because NumPy's view would keep a sharded model from freeing the tensor.
        digest.update(whole.detach().to("cpu", copy=True).contiguous().numpy().tobytes())
    return digest.hexdigest()


def own_parts(model: nn.Module) -> list[Tensor]:
    """Return the parameters and buffers of `model`, uncopied; if sharded, this rank's shards."""
    held = model.state_dict().values()
    return [one.to_local() if hasattr(one, "to_local") else one for one in held]


def count_flops(
    model: nn.Module, image_shape: tuple[int, ...] = (3, 32, 32), device: str = "meta"
) -> int:
    """Return the floating-point operations per image of one training step of `model`.

    Convolutions and matrix products of the forward and backward pass are counted, except for the
    gradient with respect to the images. A multiply-add is two operations. A copy of the model runs
    on the meta device, or on a CPU if the model needs values of tensors.
    """
    copied = copy.deepcopy(model).to(device)
    try:
        with FlopCounterMode(display=False) as counter:
            copied(torch.zeros(LEAST_BATCH, *image_shape, device=device)).sum().backward()
    except (NotImplementedError, RuntimeError):
        if device == "meta":
            return count_flops(model, image_shape, "cpu")
        raise
    return counter.get_total_flops() // LEAST_BATCH
