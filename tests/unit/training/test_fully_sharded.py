"""The optimizer of sharded parameters, in a group of one process."""

import pytest
import torch
import torch.distributed as dist
from torch import nn

from scaling.launch.ranks import Rank
from scaling.training import fully_sharded


@pytest.fixture
def one_rank(tmp_path):
    dist.init_process_group("gloo", f"file://{tmp_path}/store", rank=0, world_size=1)
    yield Rank(0, 0, 1, torch.device("cpu"))
    dist.destroy_process_group()


def test_no_gradient_is_held_while_the_next_step_needs_the_memory(one_rank):
    sharded = fully_sharded.wrap(nn.Linear(4, 2), one_rank, 1)
    optimizer = sharded.optimizer({"lr": 0.1})
    sharded.model(torch.ones(3, 4)).sum().backward()
    before = [parameter.detach().full_tensor().clone() for parameter in sharded.model.parameters()]
    optimizer.step()
    optimizer.zero_grad()
    parts = optimizer.param_groups[0]["params"]
    assert [part.grad for part in [*parts, *sharded.model.parameters()]] == [None] * 4
    for old, parameter in zip(before, sharded.model.parameters(), strict=True):
        assert torch.allclose(parameter.detach().full_tensor(), old - 0.3)
