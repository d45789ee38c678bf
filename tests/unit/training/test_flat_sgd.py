"""One flat array of weights: SGD, LARS and Muon by their definitions, on one and two processes."""

import copy

import pytest
import torch
import torch.distributed as dist
from torch import nn

from scaling.models.resnet import ResNet18
from scaling.registry.update_rule import UpdateRule
from scaling.training import update
from scaling.training.flat_sgd import FlatSGD, bucket_bytes
from scaling.training.flat_shards import FlatShards
from scaling.training.update import orthogonalized
from training_runs import in_ranks

RATES = {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01}


def resnet():
    torch.manual_seed(0)
    return ResNet18(width=2).to(memory_format=torch.channels_last)


def network():
    torch.manual_seed(1)
    return nn.Sequential(nn.Conv2d(2, 3, 2), nn.BatchNorm2d(3), nn.Flatten(), nn.Linear(12, 2))


def flat_sgd(model, *options, sgd=RATES, kind=FlatSGD, **rule):
    made = kind(model, *options)
    made.start(sgd, UpdateRule(**rule))
    return made


def loss_of(model, rank, step):
    torch.manual_seed(10 * step + rank + 1)
    return model(torch.randn(4, 3, 32, 32)).float().square().mean()


def gradients(model, step):
    torch.manual_seed(10 + step)
    return [torch.randn_like(parameter) for parameter in model.parameters()]


def take(flat, model, step):
    """A step of the optimizer whose gradients are these."""
    pairs = zip(model.parameters(), gradients(model, step), strict=True)
    flat.backward(sum((parameter * gradient).sum() for parameter, gradient in pairs), 1)
    flat.step()


def take_steps(optimizer, ranks, steps, forward=None):
    """Take steps on the mean of the losses of these ranks, in bf16 on a working copy."""
    forward = forward or optimizer.model
    low = optimizer.model.stages[0][0].conv1.weight.dtype == torch.bfloat16
    for step in range(steps):
        with torch.autocast("cpu", torch.bfloat16, enabled=low):
            loss = sum(loss_of(forward, rank, step) for rank in ranks)
        optimizer.backward(loss / len(ranks), 1)
        optimizer.step()


def train_on(rank, folder, kind, ranks, working_dtype, steps):
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/store", rank=rank, world_size=ranks
    )
    model = resnet()
    optimizer = flat_sgd(model, ranks, working_dtype, kind=kind)
    forward = None if kind is FlatShards else optimizer.averaged(optimizer.model)
    take_steps(optimizer, [rank], steps, forward)
    kept, everything = optimizer.momenta[0].numel(), sum(bucket_bytes(model)) // 2
    assert kept == (-(-everything // (64 * ranks)) * 64 if kind is FlatShards else everything)
    torch.save(model.state_dict(), folder / f"{rank}")
    dist.destroy_process_group()


def trained_in(folder, ranks, *options):
    """The model of ranks that train together, whose weights are all the same."""
    torch.set_num_threads(1)  # As the ranks: sums depend on it.
    in_ranks(train_on, folder, *options, count=ranks)
    models = [resnet() for _ in range(ranks)]
    for rank, model in enumerate(models):
        model.load_state_dict(torch.load(folder / f"{rank}"))
        assert all(map(torch.equal, model.parameters(), models[0].parameters()))
    return models[0]


@pytest.mark.parametrize(("kind", "ranks"), [(FlatSGD, 2), (FlatShards, 2), (FlatShards, 3)])
def test_several_processes_take_the_steps_of_one_on_all_their_images(tmp_path, kind, ranks):
    found, expected = trained_in(tmp_path, ranks, kind, ranks, None, 2), resnet()
    optimizer = torch.optim.SGD(expected.parameters(), **RATES)
    for step in range(2):
        optimizer.zero_grad()
        sum(loss_of(expected, rank, step) / ranks for rank in range(ranks)).backward()
        optimizer.step()
    pair = [*found.parameters()], [*expected.parameters()]
    torch.testing.assert_close(*pair, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("kind", [FlatSGD, FlatShards])
def test_two_processes_send_bf16_gradients_of_a_working_copy_with_its_rounding(tmp_path, kind):
    found, model = trained_in(tmp_path, 2, kind, 2, torch.bfloat16, 1), resnet()
    take_steps(flat_sgd(model, 1, torch.bfloat16), range(2), 1)
    assert_moved_alike(found, model, 0.01)


def test_the_messages_hold_every_gradient_and_less_than_a_thousandth_of_padding():
    messages = bucket_bytes(ResNet18())
    assert len(messages) == 3 and messages[-1] < 0.07 * sum(messages)
    assert 22_347_924 <= sum(messages) < 22_347_924 * 1.001


def assert_moved_alike(found, expected, error):
    """Training has moved each parameter about as far and there, in the same memory order."""
    models = (model.parameters() for model in (found, expected, resnet()))
    for one, wanted, before in zip(*models, strict=True):
        moved = (wanted - before).norm()
        assert moved > 0 and (one - wanted).norm() < error * moved
        assert one.stride() == before.stride()


def test_three_steps_on_a_working_copy_are_those_of_torch_sgd_with_autocast():
    model, expected = resnet(), resnet()
    optimizer = flat_sgd(model, 1, torch.bfloat16, sgd={**RATES, "weight_decay": 0.0})
    reference = torch.optim.SGD(expected.parameters(), lr=0.1, momentum=0.9)
    take_steps(optimizer, [0], 3)
    for step in range(3):
        reference.zero_grad()
        with torch.autocast("cpu", torch.bfloat16):
            loss_of(expected, 0, step).backward()
        reference.step()
    assert_moved_alike(model, expected, 0.02)
    weight, working = model.stages[0][0].conv1.weight, optimizer.model.stages[0][0].conv1.weight
    assert working.dtype == torch.bfloat16 and torch.equal(working, weight.bfloat16())
    assert optimizer.model.stem[1] is model.stem[1]
    assert optimizer.model.stem[1].weight.dtype == torch.float32


@pytest.mark.parametrize("nesterov", [False, True])
@pytest.mark.parametrize("decay_batch_norm", [False, True])
def test_it_is_torchs_sgd_with_a_rate_for_each_step(nesterov, decay_batch_norm):
    ours, theirs = network(), network()
    flat = flat_sgd(ours)
    flat.set_rates(0.0, 0.0)
    take(flat, ours, 7)  # Momenta alone, which a start forgets.
    rule = UpdateRule(nesterov=nesterov, decay_batch_norm=decay_batch_norm)
    flat.start({**RATES, "weight_decay": 0.1}, rule)
    decays = [0.1 * decay_batch_norm, *3 * [0.1]]  # by the number of dimensions
    groups = [{"params": [p], "weight_decay": decays[p.dim() - 1]} for p in theirs.parameters()]
    sgd = torch.optim.SGD(groups, lr=1.0, momentum=0.9, nesterov=nesterov)
    for step, rate in enumerate([0.1, 0.3, 0.2]):
        if step:  # The first is that of the options.
            flat.set_rates(rate, 0.0)
        for group in sgd.param_groups:
            group["lr"] = rate
        take(flat, ours, step)
        for other, gradient in zip(theirs.parameters(), gradients(theirs, step), strict=True):
            other.grad = gradient
        sgd.step()
    torch.testing.assert_close([*ours.parameters()], [*theirs.parameters()])


def test_lars_is_the_algorithm_of_the_paper():
    """You et al. 2017, algorithm 1; vectors and a layer of zeros keep the global rate."""
    model = network()
    nn.init.zeros_(model[3].weight)
    expected = [parameter.detach().clone() for parameter in model.parameters()]
    momenta = [torch.zeros_like(parameter) for parameter in expected]
    flat = flat_sgd(model, lars=0.02)
    for step, rate in enumerate([0.5, 2.0]):
        flat.set_rates(rate, 0.0)
        take(flat, model, step)
        for weights, velocity, gradient in zip(
            expected, momenta, gradients(model, step), strict=True
        ):
            local = 0.02 * weights.norm() / (gradient.norm() + 0.01 * weights.norm())
            if weights.dim() == 1 or weights.norm() == 0:
                local = torch.tensor(1.0)
            velocity.mul_(0.9).add_(rate * local * (gradient + 0.01 * weights))
            weights.sub_(velocity)
    torch.testing.assert_close([one.detach() for one in model.parameters()], expected)


@pytest.mark.parametrize("shape", [(4, 3, 7), (2, 9, 5)])
def test_orthogonalizing_keeps_singular_vectors_and_brings_values_near_1(shape):
    torch.manual_seed(3)
    matrices = torch.randn(shape, dtype=torch.float64)
    u, values, v = torch.linalg.svd(matrices, full_matrices=False)
    expected = values / values.square().sum(1, keepdim=True).sqrt()
    a, b, c = update.NEWTON_SCHULZ
    for _ in range(3):
        expected = a * expected + b * expected**3 + c * expected**5
    wanted = u @ torch.diag_embed(expected) @ v
    torch.testing.assert_close(orthogonalized(matrices, 3), wanted, atol=1e-5, rtol=1e-5)
    near = torch.linalg.svdvals(orthogonalized(matrices, 5))
    assert near.min() > 0.6 and near.max() < 1.3


@pytest.mark.parametrize("layout", [torch.channels_last, torch.contiguous_format])
def test_muon_moves_hidden_convolutions_by_orthogonal_momentum_and_the_rest_by_sgd(layout):
    torch.manual_seed(1)
    layers = [nn.Conv2d(2, 6, 3), nn.Conv2d(6, 4, 3, bias=False), nn.Conv2d(4, 4, 1)]
    model = nn.Sequential(*layers, nn.Flatten(), nn.Linear(4, 2)).to(memory_format=layout)
    plain = copy.deepcopy(model)
    weight = model[1].weight.detach().clone()
    velocity = torch.zeros_like(weight)
    muon = flat_sgd(model, muon=1.0, muon_momentum=0.6, newton_schulz_steps=2)
    sgd = flat_sgd(plain)
    for step, (rate, rest) in enumerate([(0.2, 0.1), (0.05, 0.3)]):
        muon.set_rates(rate, rest)
        sgd.set_rates(rest, 0.0)
        take(muon, model, step)
        take(sgd, plain, step)
        gradient = gradients(plain, step)[2]
        velocity = 0.6 * velocity + gradient
        momentum = (gradient + 0.6 * velocity).reshape(1, 4, -1)
        direction = orthogonalized(momentum, 2).view_as(weight)
        weight = weight * 2 / weight.norm() - rate * direction
    for name, parameter in model.named_parameters():
        expected = weight if name == "1.weight" else plain.get_parameter(name)
        torch.testing.assert_close(parameter, expected)
    muon.start(RATES, UpdateRule(muon=1.0))
    assert len(muon.momenta) == 2 and not any(one.any() for one in muon.momenta)
