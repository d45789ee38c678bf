"""SGD and LARS on one flat array against their definitions."""

import torch
from torch import nn

from scaling.convergence.flat_optimizer import FlatOptimizer


def network():
    torch.manual_seed(1)
    return nn.Sequential(nn.Conv2d(2, 3, 2), nn.BatchNorm2d(3), nn.Flatten(), nn.Linear(12, 2))


def gradients(model, step):
    torch.manual_seed(10 + step)
    return [torch.randn_like(parameter) for parameter in model.parameters()]


def test_it_is_torchs_sgd_with_a_rate_for_each_step():
    ours, theirs = network(), network()
    flat = FlatOptimizer(ours, momentum=0.9, weight_decay=0.1)
    for gradient in (parameter.grad for parameter in ours.parameters()):
        gradient.fill_(1.0)
    flat.step(trust=0.0)  # At a rate of 0: momenta alone, which a reset forgets.
    flat.reset(decay_batch_norm=False)
    vectors = [parameter for parameter in theirs.parameters() if parameter.dim() == 1]
    others = [parameter for parameter in theirs.parameters() if parameter.dim() > 1]
    groups = [{"params": others, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}]
    sgd = torch.optim.SGD(groups, lr=1.0, momentum=0.9)
    for step, rate in enumerate([0.1, 0.3, 0.2]):
        flat.zero_grad()
        flat.rate.fill_(rate)
        for group in sgd.param_groups:
            group["lr"] = rate
        for mine, other, gradient in zip(
            ours.parameters(), theirs.parameters(), gradients(ours, step), strict=True
        ):
            mine.grad.add_(gradient)
            other.grad = gradient
        flat.step(trust=0.0)
        sgd.step()
    for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(mine, other)


def test_lars_is_the_algorithm_of_the_paper():
    """You et al. 2017, algorithm 1; vectors and a layer of zeros keep the global rate."""
    model = network()
    nn.init.zeros_(model[3].weight)
    expected = [parameter.detach().clone() for parameter in model.parameters()]
    momenta = [torch.zeros_like(parameter) for parameter in expected]
    flat = FlatOptimizer(model, momentum=0.9, weight_decay=0.1)
    flat.reset(decay_batch_norm=True)
    for step, rate in enumerate([0.5, 2.0]):
        flat.zero_grad()
        flat.rate.fill_(rate)
        found = gradients(model, step)
        for parameter, gradient in zip(model.parameters(), found, strict=True):
            parameter.grad.add_(gradient)
        flat.step(trust=0.02)
        for weights, velocity, gradient in zip(expected, momenta, found, strict=True):
            local = 0.02 * weights.norm() / (gradient.norm() + 0.1 * weights.norm())
            if weights.dim() == 1 or weights.norm() == 0:
                local = torch.tensor(1.0)
            velocity.mul_(0.9).add_(rate * local * (gradient + 0.1 * weights))
            weights.sub_(velocity)
    for parameter, weights in zip(model.parameters(), expected, strict=True):
        torch.testing.assert_close(parameter.detach(), weights)
