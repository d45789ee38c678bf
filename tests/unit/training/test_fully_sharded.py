"""The optimizer of sharded parameters, in a group of one process."""

import torch
import torch.distributed as dist
from torch import nn

from scaling.launch.ranks import Rank
from scaling.registry.update_rule import UpdateRule
from scaling.training import fully_sharded
from training_runs import in_ranks

RATES = {"lr": 0.1, "momentum": 0.5}


def take_steps(rank, folder):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", f"file://{folder}/store", rank=rank, world_size=1)
    sharded = fully_sharded.wrap(nn.Linear(4, 2), Rank(0, 0, 1, torch.device("cpu")), 1)
    sharded.start(RATES, UpdateRule())
    parameters = list(sharded.model.parameters())

    def moved():
        before = [parameter.detach().full_tensor().clone() for parameter in parameters]
        sharded.model(torch.ones(3, 4)).sum().backward()
        sharded.step()
        assert all(parameter.grad is None for parameter in parameters)
        after = [parameter.detach().full_tensor() for parameter in parameters]
        return torch.cat([(new - old).flatten() for new, old in zip(after, before, strict=True)])

    for expected in (-0.3, -0.45):
        torch.testing.assert_close(moved(), torch.full((10,), expected))
    kept = [state["momentum_buffer"] for state in sharded._optimizer.state.values()]
    sharded.refresh()
    assert len(kept) == 2 and not any(momentum.any() for momentum in kept)
    torch.testing.assert_close(moved(), torch.full((10,), -0.3))
    dist.destroy_process_group()


def test_each_shard_is_updated_by_sgd_and_holds_no_gradient_until_the_next_step(tmp_path):
    in_ranks(take_steps, tmp_path, count=1)
