"""Gradients summed in buckets over two real processes."""

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn

from scaling.gradients import GradientBuckets
from scaling.resnet import ResNet18

RANKS = 2


def model_and_batch(rank):
    torch.manual_seed(0)
    model = ResNet18(width=2).to(memory_format=torch.channels_last)
    torch.manual_seed(rank + 1)
    return model, torch.randn(4, 3, 32, 32)


def local_gradients(rank):
    model, batch = model_and_batch(rank)
    model(batch).square().mean().backward()
    return [parameter.grad for parameter in model.parameters()]


def reduce_on(rank, folder):
    dist.init_process_group(
        "gloo", init_method=f"file://{folder}/store", rank=rank, world_size=RANKS
    )
    model, batch = model_and_batch(rank)
    buckets = GradientBuckets(model)
    for _ in range(2):
        model.zero_grad(set_to_none=True)
        model(batch).square().mean().backward()
        buckets.finish()
    torch.save([parameter.grad for parameter in model.parameters()], f"{folder}/{rank}.pt")
    dist.destroy_process_group()


def test_every_rank_has_the_sum_of_all_ranks_gradients_step_after_step(tmp_path):
    mp.spawn(reduce_on, (tmp_path,), nprocs=RANKS)
    expected = [sum(pair) for pair in zip(*map(local_gradients, range(RANKS)), strict=True)]
    for rank in range(RANKS):
        found = torch.load(tmp_path / f"{rank}.pt", weights_only=True)
        for gradient, sum_of_all in zip(found, expected, strict=True):
            assert torch.allclose(gradient, sum_of_all, atol=1e-6)


def test_the_buckets_hold_every_gradient_once():
    model = ResNet18()
    buckets = GradientBuckets(model).bucket_bytes
    assert sum(buckets) == 44_695_848
    assert len(buckets) > 1


def test_nothing_is_sent_while_buckets_are_disabled():
    model = nn.Linear(2, 1)
    buckets = GradientBuckets(model)
    buckets.enabled = False
    model(torch.ones(1, 2)).sum().backward()
    buckets.finish()
    assert model.weight.grad is not None
    assert model.weight.grad.tolist() == [[1.0, 1.0]]
