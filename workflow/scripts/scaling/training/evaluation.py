"""What a trained model is worth: loss and accuracy on the test images, and which model it is."""

import hashlib

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from scaling.training.trainer import Material, finite


def normalized(images: np.ndarray, mean: np.ndarray, std: np.ndarray) -> Tensor:
    """uint8 [n, 32, 32, 3] to float32 [n, 3, 32, 32]: what ToTensor and Normalize give."""
    scaled = (images.astype(np.float32) / 255 - mean) / std
    return torch.from_numpy(scaled.astype(np.float32).transpose(0, 3, 1, 2)).contiguous()


@torch.inference_mode()
def evaluate(
    model: nn.Module, material: Material, device: torch.device, batch_size: int = 500
) -> dict[str, float | None]:
    """`test_loss` (mean cross-entropy, null if not finite) and `test_accuracy` (0 to 1)."""
    model.eval()
    images, labels = material.data.test_images, material.data.test_labels
    loss = 0.0
    correct = 0
    for start in range(0, len(labels), batch_size):
        batch = slice(start, start + batch_size)
        logits = model(normalized(images[batch], material.mean, material.std).to(device))
        target = torch.from_numpy(labels[batch]).to(device)
        loss += functional.cross_entropy(logits, target, reduction="sum").item()
        correct += int((logits.argmax(1) == target).sum().item())
    return {"test_loss": finite(loss / len(labels)), "test_accuracy": correct / len(labels)}


def parameters_sha256(model: nn.Module) -> str:
    """SHA-256 over the bytes of all parameters: two ranks agree when all their gradients did."""
    digest = hashlib.sha256()
    for parameter in model.parameters():
        digest.update(parameter.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()
