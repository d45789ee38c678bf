"""The optimizer of sharded parameters, in a group of one process."""

import torch
import torch.distributed as dist
from torch import nn

from scaling.launch.ranks import Rank
from scaling.training import fully_sharded
from training_runs import in_ranks


def take_a_step(rank, folder):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", f"file://{folder}/store", rank=rank, world_size=1)
    sharded = fully_sharded.wrap(nn.Linear(4, 2), Rank(0, 0, 1, torch.device("cpu")), 1)
    parameters = list(sharded.model.parameters())
    optimizer = sharded.optimizer({"lr": 0.1})
    sharded.model(torch.ones(3, 4)).sum().backward()
    before = [parameter.detach().full_tensor().clone() for parameter in parameters]
    optimizer.step()
    optimizer.zero_grad()
    for old, parameter in zip(before, parameters, strict=True):
        assert torch.allclose(parameter.detach().full_tensor(), old - 0.3)
    held = [*optimizer.param_groups[0]["params"], *parameters]
    assert [parameter.grad for parameter in held] == [None] * 4
    dist.destroy_process_group()


def test_no_gradient_is_held_while_the_next_step_needs_the_memory(tmp_path):
    in_ranks(take_a_step, tmp_path, count=1)
