"""Runs over several nodes of a Slurm job, as far as they can be decided on one machine."""

import platform
import sys
from contextlib import nullcontext
from pathlib import Path

import pytest

from scaling.config import config
from scaling.core.errors import UserError
from scaling.core.grid import Cell
from scaling.launch import launcher, supervisor
from scaling.launch.run_spec import RunSpec
from unit.config.test_config import changed


@pytest.mark.parametrize(
    ("gpus", "uneven"), [([1, 2, 4], ""), ([1, 8], ""), ([3, 12], ""), ([1, 4, 6, 10], "6, 10")]
)
def test_gpus_have_to_fill_whole_nodes(gpus, uneven):
    document = changed(("grid.gpus", gpus), ("machine.gpus_per_node", 4))
    with pytest.raises(UserError) if uneven else nullcontext() as raised:
        config.check(document)
    said = f"grid.gpus has {uneven} and machine.gpus_per_node is 4 "
    assert not uneven or said in str(raised.value)


def test_dataparallel_over_two_nodes_is_infeasible():
    spec = RunSpec(Cell("plain", "dp", 4, 10, 0), device="cuda", nodes=2)
    reason = supervisor.infeasible_reason(spec, train_images=1000)
    assert reason == "DataParallel is one process and cannot reach the GPUs of 2 machines"


def test_srun_starts_one_torchrun_a_node_with_the_nodes_share_of_the_processes(monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    monkeypatch.setattr(launcher, "reserve_port", lambda: 12345)
    line = launcher.command(Path("train.py"), ["--note", "two words"], processes=8, nodes=2)
    assert line[:4] == ["srun", "--nodes=2", "--ntasks=2", "--ntasks-per-node=1"]
    agent = line[-1]
    assert agent.startswith(f"exec {sys.executable} -m torch.distributed.run --nproc-per-node=4 ")
    assert f" --master-addr={platform.node()} --master-port=12345 " in agent
    assert "--node-rank=\"$SLURM_NODEID\" train.py --note 'two words'" in agent


@pytest.mark.parametrize(("job", "processes"), [(None, 4), ("7", 5)])
def test_nodes_without_a_slurm_job_or_an_equal_share_are_refused(monkeypatch, job, processes):
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    if job:
        monkeypatch.setenv("SLURM_JOB_ID", job)
    with pytest.raises(UserError, match=f"{processes} processes are to be spread over 2 nodes"):
        launcher.command(Path("train.py"), [], processes, nodes=2)
