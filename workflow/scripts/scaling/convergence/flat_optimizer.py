"""Optimize by SGD with momentum or LARS on one flat array: a few kernels, fit for a CUDA graph.

The rate is a tensor on the device, so that a schedule needs no new graph.
"""

import torch
from torch import Tensor, nn

from scaling.training.flat_weights import FlatWeights, views_of


class FlatOptimizer:
    """Updates all parameters of `model`, which become views of one array.

    Gradients are added to by each backward pass and cleared by `zero_grad`. SGD is as
    torch.optim.SGD defines it; LARS as You et al. 2017 (arXiv:1708.03888, algorithm 1) do, where a
    layer is a parameter tensor. Vectors (batch norms and biases) have no rate of their own (ratio
    1), as in MLPerf's reference and in BYOL (Grill et al. 2020, arXiv:2006.07733), nor have weights
    or gradients that are all zero, which would never learn.
    """

    def __init__(self, model: nn.Module, momentum: float, weight_decay: float) -> None:
        self._parameters = list(model.parameters())
        self._momentum, self._weight_decay = momentum, weight_decay
        device = self._parameters[0].device
        flat = FlatWeights(self._parameters)
        self._weights, self._gradients, self._momenta = flat.values, flat.gradients, flat.momenta
        self._decay = torch.zeros_like(self._weights)
        self._weight_views = flat.views
        self._gradient_views = views_of(self._gradients, self._parameters)
        self._decay_views = views_of(self._decay, self._parameters)
        self._decay_of_tensor = torch.zeros(len(self._parameters), device=device)
        adapted = [parameter.dim() > 1 for parameter in self._parameters]
        self._adapted = torch.tensor(adapted, device=device)
        self.rate = torch.zeros((), device=device)
        for parameter, gradients in zip(self._parameters, self._gradient_views, strict=True):
            parameter.grad = gradients

    def reset(self, decay_batch_norm: bool) -> None:
        """Forget the momenta; vectors (batch norms and biases) have weight decay or not."""
        self._momenta.zero_()
        for index, parameter in enumerate(self._parameters):
            decays = parameter.dim() > 1 or decay_batch_norm
            self._decay_views[index].fill_(self._weight_decay if decays else 0.0)
            self._decay_of_tensor[index] = self._weight_decay if decays else 0.0

    def zero_grad(self) -> None:
        """Clear the gradients."""
        self._gradients.zero_()

    def step(self, trust: float) -> None:
        """Update all weights by the gradients; `trust` is η of LARS, 0 for SGD."""
        change = self._gradients + self._decay * self._weights
        if trust:
            for part, ratio in zip(
                views_of(change, self._parameters), self._local_rates(trust).unbind(), strict=True
            ):
                part.mul_(ratio * self.rate)
            self._momenta.mul_(self._momentum).add_(change)
            self._weights.sub_(self._momenta)
        else:
            self._momenta.mul_(self._momentum).add_(change)
            self._weights.sub_(self.rate * self._momenta)

    def _local_rates(self, trust: float) -> Tensor:
        """Compute LARS's rate of each parameter tensor: η · |w| / (|g| + decay · |w|), or 1."""
        weights = torch.stack(torch._foreach_norm(self._weight_views))
        gradients = torch.stack(torch._foreach_norm(self._gradient_views))
        local = trust * weights / (gradients + self._decay_of_tensor * weights)
        return torch.where(self._adapted & (weights > 0) & (gradients > 0), local, 1.0)
