"""Part B's jobs compute on a device of their own."""

import os
import uuid

from scaling.core import environment
from scaling.quantization import commands


def test_two_jobs_of_part_b_never_share_a_gpu(monkeypatch):
    gpus = [f"GPU-{uuid.uuid4()}" for _ in range(2)]
    monkeypatch.setattr(environment, "visible_gpus", lambda: gpus)
    for name in ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"):
        monkeypatch.setenv(name, "")
    with commands.leased("cuda") as first:
        own = os.environ["CUDA_VISIBLE_DEVICES"]
        with commands.leased("cuda") as second:
            assert [own, os.environ["CUDA_VISIBLE_DEVICES"]] == gpus
    assert first.type == second.type == "cuda"
    with commands.leased("auto"):
        assert os.environ["CUDA_VISIBLE_DEVICES"] == gpus[0]
    with commands.leased("cpu") as device:
        assert device.type == "cpu"
