"""The port where processes meet, and the kernel's count of those it ended for want of memory."""

import socket

import pytest
from torch.distributed import TCPStore

from scaling.launch import launcher

EVENTS = "low 0\nhigh 12\nmax 7\noom 5\noom_kill 4\noom_group_kill 1\n"


@pytest.mark.parametrize(
    ("membership", "place", "text", "kills"),
    [
        ("0::/jobs/7\n", "jobs/7", EVENTS, 4),
        ("9:name=systemd:/\n0::/docker/abc\n", ".", EVENTS, 4),
        ("0::/\n", ".", "oom 5\n", 0),
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


def test_without_control_groups_nothing_was_killed(tmp_path):
    assert launcher.oom_kills_so_far(tmp_path / "no such file", tmp_path) == 0


def test_the_port_where_processes_meet_is_kept_from_all_others():
    port = launcher.reserve_port()
    with socket.socket() as other, pytest.raises(OSError, match="in use"):
        other.bind(("", port))
    store = TCPStore("127.0.0.1", port, 1, is_master=True)
    store.set("met", "here")
    assert (store.port, store.get("met")) == (port, b"here")
