"""Runs over several nodes, where processes meet, and how many the kernel ended to have memory."""

import re
import socket
from contextlib import nullcontext
from pathlib import Path

import pytest
from torch.distributed import TCPStore

from scaling.config import config
from scaling.core.errors import UserError
from scaling.core.grid import Cell
from scaling.launch import launcher, supervisor
from scaling.launch.run_spec import RunSpec
from unit.config.test_config import changed

EVENTS = "low 0\nhigh 12\nmax 7\noom 5\noom_kill 4\noom_group_kill 1\n"


@pytest.mark.parametrize(
    ("membership", "place", "text", "kills"),
    [
        ("0::/jobs/7\n", "jobs/7", EVENTS, 4),
        ("9:name=systemd:/\n0::/docker/abc\n", ".", EVENTS, 4),
        ("0::/\n", "elsewhere", EVENTS, 0),
        ("4:memory:/jobs/7\n", "jobs/7", EVENTS, 0),
    ],
)
def test_kills_are_counted_in_the_groups_own_folder_or_at_the_root_of_a_container(
    tmp_path, membership, place, text, kills
):
    (tmp_path / "cgroup").write_text(membership)
    events = tmp_path / "mount" / place / "memory.events"
    events.parent.mkdir(parents=True)
    events.write_text(text)
    assert launcher.oom_kills_so_far(tmp_path / "cgroup", tmp_path / "mount") == kills
    assert launcher.oom_kills_so_far(tmp_path / "no such file", tmp_path) == 0


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


@pytest.mark.parametrize(("job", "processes"), [(None, 4), ("7", 5)])
def test_nodes_without_a_slurm_job_or_an_equal_share_are_refused(monkeypatch, job, processes):
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    if job:
        monkeypatch.setenv("SLURM_JOB_ID", job)
    with pytest.raises(UserError, match=f"{processes} processes are to be spread over 2 nodes"):
        launcher.command(Path("train.py"), [], processes, nodes=2)
