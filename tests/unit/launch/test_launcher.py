"""Runs over several nodes, and where processes meet."""

import re
import socket
from contextlib import nullcontext
from pathlib import Path

import pytest
from torch.distributed import TCPStore

from scaling.config import config
from scaling.core import environment
from scaling.core.errors import UserError
from scaling.core.grid import Cell
from scaling.launch import launcher, supervisor
from scaling.launch.run_spec import RunSpec
from unit.config.test_config import changed


def test_the_port_where_processes_meet_is_kept_from_all_others():
    port = launcher.reserve_port()
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind(("", port))
    store = TCPStore("127.0.0.1", port, 1, is_master=True)
    store.set("met", "here")
    assert (store.port, store.get("met")) == (port, b"here")


@pytest.mark.parametrize(
    ("gpus", "uneven"), [([1, 2, 4], ""), ([1, 8], ""), ([3, 12], ""), ([1, 4, 6, 10], "[6, 10]")]
)
def test_gpus_have_to_fill_whole_nodes(gpus, uneven):
    document = changed(("grid.gpus", gpus), ("machine.gpus_per_node", 4))
    said = f"grid.gpus has {uneven} (allowed: 4 of a node"
    with pytest.raises(UserError, match=re.escape(said)) if uneven else nullcontext():
        config.check(document)


def test_dataparallel_over_two_nodes_is_infeasible():
    spec = RunSpec(cell=Cell("plain", "dp", 4, 10, 0), device="cuda", nodes=2)
    reason = supervisor.infeasible_reason(spec, train_images=1000)
    assert reason == "DataParallel is one process and cannot reach the GPUs of 2 machines"


def test_nodes_without_a_slurm_job_are_refused(monkeypatch):
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    with pytest.raises(UserError, match="4 processes are to be spread over 2 nodes"):
        launcher.command(Path("train.py"), [], 4, nodes=2)


def test_a_job_whose_gpus_cannot_be_seen_does_not_train_on_the_cpu(monkeypatch):
    monkeypatch.setattr(environment, "visible_gpus", list)
    monkeypatch.setenv("SLURM_STEP_GPUS", "0,1")
    with pytest.raises(UserError, match=r"Slurm gave this job GPUs .*:0,1.* none of them is"):
        environment.resolve_device("auto")
    assert environment.resolve_device("cpu") == "cpu"
