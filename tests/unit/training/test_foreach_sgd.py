"""SGD, LARS and Muon on all tensors at once equal their definitions, with one and two processes."""

import copy
import itertools

import pytest
import torch
import torch.distributed as dist
from torch import nn

from scaling.models.resnet import ResNet18
from scaling.registry.update_rule import UpdateRule
from scaling.training import foreach_sgd as module
from scaling.training import update
from scaling.training.foreach_sgd import FlatShards, ForeachSGD, in_order_of, room_of
from scaling.training.update import orthogonalized
from training_runs import in_ranks

RATES = {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01}


def resnet():
    torch.manual_seed(0)
    return ResNet18(width=2).to(memory_format=torch.channels_last)


def network():
    torch.manual_seed(1)
    return nn.Sequential(nn.Conv2d(2, 3, 2), nn.BatchNorm2d(3), nn.Flatten(), nn.Linear(12, 2))


def foreach_sgd(model, *options, sgd=RATES, kind=ForeachSGD, **rule):
    made = kind(model, *options)
    made.start(sgd, UpdateRule(**rule))
    return made


def loss_of(model, rank, step):
    torch.manual_seed(10 * step + rank + 1)
    return model(torch.randn(4, 3, 32, 32)).float().square().mean()


def gradients(model, step):
    torch.manual_seed(10 + step)
    return [torch.randn_like(parameter) for parameter in model.parameters()]


def take(optimizer, model, step):
    """Take one step of the optimizer, with the gradients of step number `step`."""
    pairs = zip(model.parameters(), gradients(model, step), strict=True)
    optimizer.backward(sum((parameter * gradient).sum() for parameter, gradient in pairs), 1)
    optimizer.step()


def take_steps(optimizer, shares, steps, forward=None):
    """Take steps on the mean loss of micro-batches. A bf16 working copy is run under autocast."""
    low = optimizer.model.stages[0][0].conv1.weight.dtype == torch.bfloat16
    for step in range(steps):
        for place, share in enumerate(shares, start=1):
            optimizer.accumulate(place < len(shares))
            with torch.autocast("cpu", torch.bfloat16, enabled=low):
                loss = loss_of(forward or optimizer.model, share, step)
            optimizer.backward(loss, 1 / len(shares))
        optimizer.step()


RULES = {
    "sgd": {},
    "nesterov": {"nesterov": True, "decay_batch_norm": False},
    "lars": {"lars": 0.02},
    "muon": {"muon": 0.1},
}
CASES = [
    *((ForeachSGD, None, 1, rule) for rule in RULES),
    *((ForeachSGD, torch.bfloat16, 1, rule) for rule in RULES),
    *((FlatShards, dtype, 1, "sgd") for dtype in (None, torch.bfloat16)),
    *((kind, None, 2, "sgd") for kind in (ForeachSGD, FlatShards)),
]
"""Optimizer class, dtype of the working copy, micro-batches per rank, and rule of each case."""


def train_on(rank, folder, ranks, cases):
    """Save the model of each case after its first steps. Check that bucket sizes do not matter."""
    dist.init_process_group("gloo", f"file://{folder}/store", rank=rank, world_size=ranks)
    for place, (kind, dtype, parts, rule) in enumerate(cases):
        shares, models, messages = range(rank * parts, (rank + 1) * parts), [], []
        for module.BUCKET_MB in (25.0, 0.01):
            models.append(resnet())
            optimizer = foreach_sgd(models[-1], ranks, dtype, kind=kind, **RULES[rule])
            forward = optimizer.parallel(optimizer.model)
            take_steps(optimizer, shares, 1 if dtype else 2, forward)
            torch.save(models[-1].state_dict(), folder / f"{place}-{rank}")
            take_steps(optimizer, shares, 2, forward)
            messages.append(len(optimizer.bucket_bytes))
        parameters = [*models[0].parameters()]
        whole = sum(one.numel() for one in parameters)
        part = -(-sum(map(room_of, parameters)) // (64 * ranks)) * 64
        held = sum(one.numel() for one in optimizer.momenta[: len(parameters)])
        assert held == (part if kind is FlatShards else whole)
        # Norms stay float32, and messages have one type.
        assert messages[0] == (2 if dtype and kind is ForeachSGD else 1)
        assert (messages[1] > messages[0]) == (kind is ForeachSGD)
        torch.testing.assert_close(*([*model.parameters()] for model in models))
    dist.destroy_process_group()


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Return the folder with the models that two ranks have trained in all cases."""
    folder = tmp_path_factory.mktemp("ranks")
    in_ranks(train_on, folder, 2, CASES)
    return folder


@pytest.mark.parametrize("place", range(len(CASES)))
def test_two_ranks_take_the_steps_of_one(saved, place):
    (_, dtype, parts, rule), expected, pair = CASES[place], resnet(), (resnet(), resnet())
    for rank, model in enumerate(pair):
        model.load_state_dict(torch.load(saved / f"{place}-{rank}"))
    assert all(map(torch.equal, *(model.parameters() for model in pair)))
    optimizer = foreach_sgd(expected, 1, dtype, **RULES[rule])
    take_steps(optimizer, range(2 * parts), 1 if dtype else 2)
    if dtype:
        assert_moved_alike(pair[0], expected, 0.01)
    else:
        both = [[*model.parameters()] for model in (pair[0], expected)]
        torch.testing.assert_close(*both, atol=1e-6, rtol=1e-5)


def assert_moved_alike(found, expected, error):
    """Check that training changed each parameter as expected, and kept its memory order."""
    models = (model.parameters() for model in (found, expected, resnet()))
    for one, wanted, before in zip(*models, strict=True):
        moved = (wanted - before).norm()
        assert moved > 0 and (one - wanted).norm() < error * moved
        assert one.stride() == before.stride()


def test_foreach_sgd_steps_equal_torch_sgd_with_autocast():
    model, expected = resnet(), resnet()
    optimizer = foreach_sgd(model, 1, torch.bfloat16, sgd={**RATES, "weight_decay": 0.0})
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
def test_foreach_sgd_equals_torch_sgd_with_a_rate_for_each_step(nesterov, decay_batch_norm):
    ours, theirs = network(), network()
    optimizer = foreach_sgd(ours)
    optimizer.set_rates(0.0, 0.0)
    take(optimizer, ours, 7)  # Momenta alone, which a start forgets.
    rule = UpdateRule(nesterov=nesterov, decay_batch_norm=decay_batch_norm)
    optimizer.start({**RATES, "weight_decay": 0.1}, rule)
    decays = [0.1 * decay_batch_norm, *3 * [0.1]]  # by the number of dimensions
    groups = [{"params": [p], "weight_decay": decays[p.dim() - 1]} for p in theirs.parameters()]
    sgd = torch.optim.SGD(groups, lr=1.0, momentum=0.9, nesterov=nesterov)
    for step, rate in enumerate([0.1, 0.3, 0.2]):
        if step:  # The first is that of the options.
            optimizer.set_rates(0.0, rate)
        for group in sgd.param_groups:
            group["lr"] = rate
        take(optimizer, ours, step)
        for other, gradient in zip(theirs.parameters(), gradients(theirs, step), strict=True):
            other.grad = gradient
        sgd.step()
    torch.testing.assert_close([*ours.parameters()], [*theirs.parameters()])


@pytest.mark.parametrize("layout", [torch.channels_last, torch.contiguous_format])
def test_gradients_can_have_another_memory_order(layout):
    layers = [nn.Conv2d(2, 4, (3, 2)), nn.Conv2d(4, 6, 1)]
    before = nn.Sequential(*layers).to(memory_format=layout)
    expected = copy.deepcopy(before)
    take(foreach_sgd(expected), expected, 0)
    for order in itertools.permutations(range(4)):
        model = copy.deepcopy(before)
        optimizer = foreach_sgd(model)
        for parameter, gradient in zip(model.parameters(), gradients(model, 0), strict=True):
            if gradient.dim() == 4:
                back = [order.index(place) for place in range(4)]
                gradient = gradient.permute(order).contiguous().permute(back)
            parameter.grad = gradient
        optimizer.step()
        torch.testing.assert_close([*model.parameters()], [*expected.parameters()])
        assert all(parameter.grad is None for parameter in model.parameters())


def test_equal_memory_orders_are_read_in_place():
    one = torch.arange(24.0).view(4, 6, 1, 1)
    assert one.stride() != one.to(memory_format=torch.channels_last).stride()
    assert in_order_of(one, one.to(memory_format=torch.channels_last)).data_ptr() == one.data_ptr()


def test_strided_or_float64_weights_become_dense_float32():
    expected = nn.Linear(3, 2)
    model = copy.deepcopy(expected)
    model.weight.data = expected.weight.data.double().repeat_interleave(2, dim=1)[:, ::2]
    for one in (model, expected):
        take(foreach_sgd(one), one, 0)
    assert model.weight.dtype == torch.float32
    torch.testing.assert_close([*model.parameters()], [*expected.parameters()])


def test_lars_is_the_algorithm_of_the_paper():
    """The algorithm is algorithm 1 of You et al. 2017. Vectors and zeros keep the global rate."""
    model = network()
    nn.init.zeros_(model[3].weight)
    expected = [parameter.detach().clone() for parameter in model.parameters()]
    momenta = [torch.zeros_like(parameter) for parameter in expected]
    optimizer = foreach_sgd(model, lars=0.02)
    for step, rate in enumerate([0.5, 2.0]):
        optimizer.set_rates(0.0, rate)
        take(optimizer, model, step)
        steps = zip(expected, momenta, gradients(model, step), strict=True)
        for weights, velocity, gradient in steps:
            local = 0.02 * weights.norm() / (gradient.norm() + 0.01 * weights.norm())
            if weights.dim() == 1 or weights.norm() == 0:
                local = torch.tensor(1.0)
            velocity.mul_(0.9).add_(rate * local * (gradient + 0.01 * weights))
            weights.sub_(velocity)
    torch.testing.assert_close([one.detach() for one in model.parameters()], expected)


@pytest.mark.parametrize("shape", [(4, 3, 7), (2, 9, 5)])
def test_orthogonalized_keeps_singular_vectors(shape):
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
def test_muon_updates_hidden_convolutions_and_sgd_the_rest(layout):
    torch.manual_seed(1)
    layers = [nn.Conv2d(2, 6, 3), nn.Conv2d(6, 4, 3, bias=False), nn.Conv2d(4, 4, 1)]
    model = nn.Sequential(*layers, nn.Flatten(), nn.Linear(4, 2)).to(memory_format=layout)
    plain = copy.deepcopy(model)
    weight = model[1].weight.detach().clone()
    velocity = torch.zeros_like(weight)
    muon = foreach_sgd(model, muon=1.0, muon_momentum=0.6, newton_schulz_steps=2)
    sgd = foreach_sgd(plain)
    for step, (rate, rest) in enumerate([(0.2, 0.1), (0.05, 0.3)]):
        muon.set_rates(rate, rest)
        sgd.set_rates(0.0, rest)
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
    assert len(muon.momenta) == 8 and not any(one.any() for one in muon.momenta)
