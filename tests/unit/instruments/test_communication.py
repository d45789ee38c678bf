"""What is read of communication, by made-up ranks and logs."""

from pathlib import Path
from types import SimpleNamespace

import torch

from scaling.instruments import allreduce, communication
from scaling.instruments.options import Sweep
from scaling.launch.ranks import Rank


def test_an_all_reduce_takes_the_slowest_ranks_time(monkeypatch):
    monkeypatch.setattr(allreduce.dist, "all_reduce", lambda message: None)
    slow = [100.0, 100.0, 100.0], True
    monkeypatch.setattr(Rank, "gather", lambda rank, own: [own, slow])
    sweep = Sweep(output=Path("x"), manifest=Path("x"), gpus=1, message_bytes=[8], repeats=3)
    assert allreduce._measure(sweep, Rank(0, 0, 1, torch.device("cpu")), 8) == slow


def test_what_ddp_logs_in_nanoseconds_is_added_up_in_seconds(monkeypatch):
    times = {"backward_comm_time": 3e6, "backward_compute_comm_overlap_time": 1e6}
    model = SimpleNamespace(_get_ddp_logging_data=lambda: times)
    model._set_ddp_runtime_logging_sample_rate = lambda rate: None
    monkeypatch.setattr(communication, "DistributedDataParallel", SimpleNamespace)
    steps = SimpleNamespace(iterations=2)
    read = communication._ddp_log(SimpleNamespace(model=model), lambda count: steps, 2)
    read = {name: round(seconds, 9) for name, seconds in read.items() if "seconds" in name}
    assert list(read.values()) == [0.006, 0.004, 0.002]
