"""One flat array of weights: the same steps as torch.optim.SGD, alone and over two processes."""

import copy

import pytest
import torch
import torch.distributed as dist

from scaling.models.resnet import ResNet18
from scaling.training.flat_sgd import FlatSGD, bucket_bytes
from training_runs import in_ranks

RANKS = 2
RATES = {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01}


def make_model():
    torch.manual_seed(0)
    return ResNet18(width=2).to(memory_format=torch.channels_last)


def flat_sgd(model, ranks=1, working_dtype=None):
    return FlatSGD(model, *RATES.values(), ranks, working_dtype, compiled=False)


def batch(rank, step):
    torch.manual_seed(10 * step + rank + 1)
    return torch.randn(4, 3, 32, 32)


def loss(model, images):
    return model(images).float().square().mean()


def steps_of_torch(ranks, steps):
    """The weights after `steps` of torch.optim.SGD on the mean over `ranks` losses."""
    model = make_model()
    optimizer = torch.optim.SGD(model.parameters(), **RATES)
    for step in range(steps):
        optimizer.zero_grad()
        for rank in range(ranks):
            (loss(model, batch(rank, step)) / ranks).backward()
        optimizer.step()
    return list(model.parameters())


def test_three_steps_are_those_of_torch_sgd():
    model = make_model()
    optimizer = flat_sgd(model)
    for step in range(3):
        loss(optimizer.trained, batch(0, step)).backward()
        optimizer.step()
    for found, expected in zip(model.parameters(), steps_of_torch(1, 3), strict=True):
        assert torch.allclose(found, expected, atol=1e-6)
        assert found.stride() == expected.stride()


def train_on(rank, folder):
    torch.set_num_threads(1)
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/store", rank=rank, world_size=RANKS
    )
    model = make_model()
    optimizer = flat_sgd(model, RANKS)
    for step in range(2):
        (loss(optimizer.trained, batch(rank, step)) / RANKS).backward()
        optimizer.step()
    torch.save([parameter.detach().clone() for parameter in model.parameters()], folder / f"{rank}")
    dist.destroy_process_group()


def test_two_processes_take_the_steps_of_one_on_all_their_images(tmp_path):
    torch.set_num_threads(1)  # As the ranks: sums depend on it.
    in_ranks(train_on, tmp_path, count=RANKS)
    first, second = (torch.load(tmp_path / f"{rank}", weights_only=True) for rank in range(RANKS))
    for one, other, expected in zip(first, second, steps_of_torch(RANKS, 2), strict=True):
        assert torch.equal(one, other)
        assert torch.allclose(one, expected, atol=1e-6)


def test_nothing_is_sent_while_disabled():
    model = make_model()
    optimizer = flat_sgd(model, RANKS)
    optimizer.enabled = False
    loss(optimizer.trained, batch(0, 0)).backward()
    optimizer.step()
    for found, expected in zip(model.parameters(), steps_of_torch(1, 1), strict=True):
        assert torch.allclose(found, expected, atol=1e-6)


def test_the_messages_hold_every_gradient_and_less_than_a_thousandth_of_padding():
    messages = bucket_bytes(ResNet18())
    assert len(messages) == 2
    assert 44_695_848 <= sum(messages) < 44_695_848 * 1.001


def test_three_steps_on_a_working_copy_are_those_of_torch_sgd_with_autocast():
    model, expected = make_model(), make_model()
    optimizer = FlatSGD(model, 0.1, 0.9, 0.0, 1, torch.bfloat16, compiled=False)
    reference = torch.optim.SGD(expected.parameters(), lr=0.1, momentum=0.9)
    before = [parameter.detach().clone() for parameter in model.parameters()]
    for step in range(3):
        with torch.autocast("cpu", torch.bfloat16):
            ours, theirs = (loss(net, batch(0, step)) for net in (optimizer.trained, expected))
        ours.backward()
        optimizer.step()
        reference.zero_grad()
        theirs.backward()
        reference.step()
    for found, wanted, start in zip(model.parameters(), expected.parameters(), before, strict=True):
        moved = (wanted - start).norm()
        assert moved > 0
        assert (found - wanted).norm() < 0.02 * moved


@pytest.mark.parametrize("layout", [torch.channels_last, torch.contiguous_format])
def test_every_parameter_keeps_its_memory_order(layout):
    model = make_model().to(memory_format=layout)
    strides = [parameter.stride() for parameter in model.parameters()]
    flat_sgd(model)
    assert [parameter.stride() for parameter in model.parameters()] == strides


def test_a_working_copy_follows_the_weights_in_its_own_type_and_shares_the_batch_norms():
    model = make_model()
    optimizer = flat_sgd(model, working_dtype=torch.bfloat16)
    before = copy.deepcopy(model)
    images = batch(0, 0).bfloat16()
    with torch.autocast("cpu", torch.bfloat16):
        loss(optimizer.trained, images).backward()
    optimizer.step()
    weight, working = model.stages[0][0].conv1.weight, optimizer.trained.stages[0][0].conv1.weight
    assert working.dtype == torch.bfloat16
    assert torch.equal(working, weight.bfloat16())
    assert not torch.equal(weight, before.stages[0][0].conv1.weight)
    assert optimizer.trained.stem[1] is model.stem[1]
    assert optimizer.trained.stem[1].weight.dtype == torch.float32
