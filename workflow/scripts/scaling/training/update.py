"""The arithmetic of SGD and Muon."""

from typing import Any

import torch
from torch import Tensor, nn

NEWTON_SCHULZ = (3.4445, -4.7750, 2.0315)
"""Coefficients a, b, c of X ← aX + (bA + cA²)X with A = XXᵀ, as in torch.optim.Muon. Small singular
values grow fast. All singular values end between 0.7 and 1.2, not at 1 (Jordan et al. 2024)."""


def sgd(
    weights: list[Tensor],
    momenta: list[Tensor],
    gradients: list[Tensor],
    working: list[Tensor],
    rate: Tensor,
    momentum: Tensor,
    decay: Any,
    local_rates: list[Tensor],
    nesterov: bool,
) -> None:
    """Update `weights` in place as torch.optim.SGD does; then copy them to `working`, if not [].

    `decay` is a number, or a list with a scalar tensor for each tensor of `weights`. `local_rates`
    is such a list of factors of (gradient + decay · weight), as in LARS; [] if all are 1.
    """
    change = torch._foreach_add(torch._foreach_mul(weights, decay), gradients)
    if local_rates:
        change = torch._foreach_mul(change, local_rates)
    torch._foreach_mul_(momenta, momentum)
    torch._foreach_add_(momenta, change)
    step = (
        torch._foreach_add(change, torch._foreach_mul(momenta, momentum)) if nesterov else momenta
    )
    torch._foreach_sub_(weights, torch._foreach_mul(step, rate))
    if working:
        torch._foreach_copy_(working, weights)


def hidden_convolutions(model: nn.Module) -> list[Tensor]:
    """Return the weights of convolutions without bias and groups, except the first convolution.

    A norm is assumed to follow such a convolution, so that the scale of its weights has no effect.
    """
    convolutions = [module for module in model.modules() if isinstance(module, nn.Conv2d)]
    return [one.weight for one in convolutions[1:] if one.bias is None and one.groups == 1]


def orthogonalized(matrices: Tensor, steps: int) -> Tensor:
    """Return `matrices` [n, rows, columns], with singular values changed to about 1.

    Very small singular values stay smaller than 1. The method is `steps` Newton–Schulz steps for
    all matrices together, as in Muon. On a GPU, the steps compute in bf16.
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
