"""The kernel's own count of processes it ended for want of memory."""

import pytest

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
