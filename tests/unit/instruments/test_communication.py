"""What is read of communication, by made-up ranks."""

from pathlib import Path

import torch

from scaling.instruments import allreduce
from scaling.launch.measure import Sweep
from scaling.launch.ranks import Rank


def test_an_all_reduce_takes_the_slowest_ranks_time(monkeypatch):
    monkeypatch.setattr(allreduce.dist, "all_reduce", lambda message: None)
    slow = [100.0, 100.0, 100.0], True
    monkeypatch.setattr(Rank, "gather", lambda rank, own: [own, slow])
    sweep = Sweep(output=Path("x"), manifest=Path("x"), gpus=1, message_bytes=[8], repeats=3)
    assert allreduce._measure(sweep, Rank(0, 0, 1, torch.device("cpu")), 8) == slow
