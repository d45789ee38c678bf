"""SGD, LARS and Muon on one flat array against their definitions."""

import copy

import pytest
import torch
from torch import nn

from scaling.registry.update_rule import UpdateRule
from scaling.training import update
from scaling.training.flat_weights import FlatWeights, views_of
from scaling.training.update import Update, orthogonalized


def network():
    torch.manual_seed(1)
    return nn.Sequential(nn.Conv2d(2, 3, 2), nn.BatchNorm2d(3), nn.Flatten(), nn.Linear(12, 2))


def gradients(model, step):
    torch.manual_seed(10 + step)
    return [torch.randn_like(parameter) for parameter in model.parameters()]


def made(model, working=None, **rule):
    """An optimizer of `model` by this rule whose gradients are those of the parameters."""
    parameters = list(model.parameters())
    flat = FlatWeights(parameters)
    for parameter, view in zip(parameters, views_of(flat.gradients, parameters), strict=True):
        parameter.grad = view
    found = Update(model, flat, parameters, working)
    found.reset(UpdateRule(**rule), momentum=0.9, weight_decay=0.1)
    return found


def put(model, step):
    for parameter, gradient in zip(model.parameters(), gradients(model, step), strict=True):
        parameter.grad.copy_(gradient)


@pytest.mark.parametrize("nesterov", [False, True])
@pytest.mark.parametrize("decay_batch_norm", [False, True])
def test_it_is_torchs_sgd_with_a_rate_for_each_step(nesterov, decay_batch_norm):
    ours, theirs = network(), network()
    flat = made(ours)
    put(ours, 7)
    flat.step()  # At a rate of 0: momenta alone, which a reset forgets.
    flat.reset(UpdateRule(nesterov=nesterov, decay_batch_norm=decay_batch_norm), 0.9, 0.1)
    vectors = [parameter for parameter in theirs.parameters() if parameter.dim() == 1]
    others = [parameter for parameter in theirs.parameters() if parameter.dim() > 1]
    groups = [
        {"params": others, "weight_decay": 0.1},
        {"params": vectors, "weight_decay": 0.1 * decay_batch_norm},
    ]
    sgd = torch.optim.SGD(groups, lr=1.0, momentum=0.9, nesterov=nesterov)
    for step, rate in enumerate([0.1, 0.3, 0.2]):
        flat.set_rates(rate, 0.0)
        for group in sgd.param_groups:
            group["lr"] = rate
        put(ours, step)
        for other, gradient in zip(theirs.parameters(), gradients(ours, step), strict=True):
            other.grad = gradient
        flat.step()
        sgd.step()
    for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(mine, other)


def test_lars_is_the_algorithm_of_the_paper():
    """You et al. 2017, algorithm 1; vectors and a layer of zeros keep the global rate."""
    model = network()
    nn.init.zeros_(model[3].weight)
    expected = [parameter.detach().clone() for parameter in model.parameters()]
    momenta = [torch.zeros_like(parameter) for parameter in expected]
    flat = made(model, lars=0.02)
    for step, rate in enumerate([0.5, 2.0]):
        flat.set_rates(rate, 0.0)
        put(model, step)
        flat.step()
        for weights, velocity, gradient in zip(
            expected, momenta, gradients(model, step), strict=True
        ):
            local = 0.02 * weights.norm() / (gradient.norm() + 0.1 * weights.norm())
            if weights.dim() == 1 or weights.norm() == 0:
                local = torch.tensor(1.0)
            velocity.mul_(0.9).add_(rate * local * (gradient + 0.1 * weights))
            weights.sub_(velocity)
    for parameter, weights in zip(model.parameters(), expected, strict=True):
        torch.testing.assert_close(parameter.detach(), weights)


@pytest.mark.parametrize("shape", [(4, 3, 7), (2, 9, 5)])
def test_orthogonalizing_keeps_singular_vectors_and_brings_values_near_1(shape):
    torch.manual_seed(3)
    matrices = torch.randn(shape, dtype=torch.float64)
    u, values, v = torch.linalg.svd(matrices, full_matrices=False)
    expected = values / values.square().sum(1, keepdim=True).sqrt()
    a, b, c = update.NEWTON_SCHULZ
    for _ in range(3):
        expected = a * expected + b * expected**3 + c * expected**5
    torch.testing.assert_close(
        orthogonalized(matrices, 3), u @ torch.diag_embed(expected) @ v, atol=1e-5, rtol=1e-5
    )
    near = torch.linalg.svdvals(orthogonalized(matrices, 5))
    assert near.min() > 0.6 and near.max() < 1.3
    try:
        from torch.optim._muon import _zeropower_via_newtonschulz as of_torch
    except ImportError:
        return
    theirs = of_torch(matrices[0], update.NEWTON_SCHULZ, 5, 1e-7)
    # That one computes in bf16.
    torch.testing.assert_close(orthogonalized(matrices, 5)[0], theirs.double(), atol=0.05, rtol=0)


@pytest.mark.parametrize("layout", [torch.channels_last, torch.contiguous_format])
def test_muon_moves_hidden_convolutions_by_orthogonal_momentum_and_the_rest_by_sgd(layout):
    torch.manual_seed(1)
    layers = [nn.Conv2d(2, 6, 3), nn.Conv2d(6, 4, 3, bias=False), nn.Conv2d(4, 4, 1)]
    model = nn.Sequential(*layers, nn.Flatten(), nn.Linear(4, 2)).to(memory_format=layout)
    plain = copy.deepcopy(model)
    weight = model[1].weight.detach().clone()
    velocity = torch.zeros_like(weight)
    muon, sgd = made(model, muon=1.0, muon_momentum=0.6), made(plain)
    for step, (rate, rest) in enumerate([(0.2, 0.1), (0.05, 0.3)]):
        muon.set_rates(rate, rest)
        sgd.set_rates(rest, 0.0)
        for one, network_of in ((muon, model), (sgd, plain)):
            put(network_of, step)
            one.step()
        gradient = gradients(plain, step)[2]
        velocity = 0.6 * velocity + gradient
        direction = orthogonalized((gradient + 0.6 * velocity).reshape(1, 4, -1)).view_as(weight)
        weight = weight * 2 / weight.norm() - rate * direction
    for name, parameter in model.named_parameters():
        expected = weight if name == "1.weight" else plain.get_parameter(name)
        torch.testing.assert_close(parameter, expected)
    muon.reset(UpdateRule(muon=1.0), 0.9, 0.1)
    assert len(muon.momenta) == 2 and not any(one.any() for one in muon.momenta)


@pytest.mark.parametrize("hidden", [0, 1])
def test_with_muon_the_working_copy_follows_whether_or_not_it_moves_any_convolution(hidden):
    convolutions = [nn.Conv2d(2, 2, 1, bias=False) for _ in range(hidden)]
    model = nn.Sequential(nn.Conv2d(2, 2, 1), *convolutions, nn.Flatten(), nn.Linear(8, 2))
    working = torch.zeros(FlatWeights(list(model.parameters())).values.numel())
    flat = made(model, working, muon=1.0)
    flat.set_rates(0.1, 0.1)
    put(model, 0)
    flat.step()
    for parameter, copied in zip(
        model.parameters(), views_of(working, list(model.parameters())), strict=True
    ):
        torch.testing.assert_close(parameter.detach(), copied)
