"""The arithmetic of SGD and Muon, and initial scales of batch norms."""

import torch
from torch import Tensor, nn

from scaling.models.resnet import BasicBlock
from scaling.registry.update_rule import UpdateRule

NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)
"""Coefficients a, b, c of X ← aX + (bA + cA²)X with A = XXᵀ, as in torch.optim.Muon. They raise
small singular values fast; values end between 0.7 and 1.2 instead of at 1 (Jordan et al. 2024)."""


def sgd(
    weights: Tensor,
    momenta: Tensor,
    gradients: Tensor,
    working: Tensor | None,
    rate: Tensor,
    momentum: Tensor,
    decay: Tensor | float,
    nesterov: bool,
) -> None:
    """Update the flat array `weights` in place, as torch.optim.SGD does; copy it to `working`."""
    change = gradients + decay * weights
    momenta.mul_(momentum).add_(change)
    weights.sub_(rate * (change + momentum * momenta if nesterov else momenta))
    if working is not None:
        working.copy_(weights)


def hidden_convolutions(model: nn.Module) -> list[Tensor]:
    """Return the weights of convolutions without bias and groups, except the first convolution.

    A norm follows such a convolution, so the scale of its weights does not matter.
    """
    convolutions = [module for module in model.modules() if isinstance(module, nn.Conv2d)]
    return [one.weight for one in convolutions[1:] if one.bias is None and one.groups == 1]


def orthogonalized(matrices: Tensor, steps: int) -> Tensor:
    """Return `matrices` [n, rows, columns], with singular values changed to about 1.

    Very small singular values stay smaller. The method is `steps` Newton–Schulz steps, as in Muon,
    on all matrices at once; in bf16 on a GPU.
    """
    a, b, c = NEWTON_SCHULZ
    tall = matrices.size(1) > matrices.size(2)
    x = matrices.mT if tall else matrices
    x = x / (torch.linalg.matrix_norm(x, keepdim=True) + 1e-7)
    x = x.to(torch.bfloat16) if x.is_cuda else x
    for _ in range(steps):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return (x.mT if tall else x).to(matrices.dtype)


def prepare(model: nn.Module, rule: UpdateRule) -> None:
    """If `rule.zero_gamma`, set the last batch-norm scale of each residual block to 0, in place."""
    for module in model.modules():
        if rule.zero_gamma and isinstance(module, BasicBlock):
            nn.init.zeros_(module.bn2.weight)
