"""Bytes that DistributedDataParallel sends with each option."""

from threading import Thread

import pytest
import torch
import torch.distributed as dist

from scaling.instruments.messages import Messages, collectives
from scaling.launch.ranks import Rank
from scaling.models.resnet import ResNet18
from scaling.training.strategies import ddp

COMPRESSED = [
    {},
    {"bucket_cap_mb": 0.005, "gradient_as_bucket_view": True, "static_graph": True},
    {"bf16_compression": True},
    {"powersgd_rank": 1},
    {"powersgd_rank": 1, "bf16_compression": True},
]
ENDED = []
"""Process groups of this process. If a gloo thread dropped the last reference, it would abort."""


@pytest.fixture(autouse=True)
def one_rank(tmp_path):
    """Make this process the only rank of a process group."""
    dist.init_process_group("gloo", f"file://{tmp_path}/store", rank=0, world_size=1)
    ENDED.append(dist.group.WORLD)
    yield
    dist.destroy_process_group()


def test_all_reduces_of_every_thread_are_recorded_once():
    messages = Messages()
    messages.phase = "backward"
    with collectives(messages):
        dist.all_reduce(torch.ones(3))
        other = Thread(target=dist.all_reduce, args=(torch.ones(5),))
        other.start()
        other.join()
    assert [row["elements"] for row in messages.rows] == [3, 5]


@pytest.mark.parametrize("options", COMPRESSED)
def test_sent_share_equals_bytes_of_a_steps_messages(options):
    model, messages = ResNet18(1, 2), Messages()
    replica = ddp(model, Rank(0, 0, 1, torch.device("cpu")), 1, **options)
    for _ in range(4):
        messages.rows.clear()
        with messages.phases_of(replica.model), collectives(messages):
            replica.model(torch.ones(2, 3, 32, 32)).sum().backward()
            messages.phase = None
    sent = sum(row["bytes"] for row in messages.rows if row["phase"] == "backward")
    whole = sum(parameter.nbytes for parameter in model.parameters())
    assert replica.sent_share == pytest.approx(sent / whole)
    assert (replica.sent_share < 0.51) == any("bf16" in key or "rank" in key for key in options)
