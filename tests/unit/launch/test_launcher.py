"""The kernel's own count of processes it ended for want of memory."""

import pytest

from scaling.launch import launcher

V1 = "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"
V2 = "low 0\nhigh 12\nmax 7\noom 5\noom_kill 4\noom_group_kill 1\n"


@pytest.mark.parametrize(("text", "kills"), [(V1, 3), (V2, 4), ("under_oom 0\n", 0), ("", 0)])
def test_both_versions_of_control_groups_count_the_processes_killed(text, kills):
    assert launcher.count_oom_kills(text) == kills


def system(folder, memberships, files):
    """A /proc/self/cgroup and a mount with these files; what is read there."""
    (folder / "cgroup").write_text(memberships)
    for name, text in files.items():
        path = folder / "mount" / name
        path.parent.mkdir(parents=True)
        path.write_text(text)
    return launcher.oom_kills_so_far(folder / "cgroup", folder / "mount")


def test_version_2_is_read_in_the_groups_own_folder(tmp_path):
    assert system(tmp_path, "0::/jobs/7\n", {"jobs/7/memory.events": V2}) == 4


def test_version_1_is_read_where_both_are_mounted(tmp_path):
    memberships = "9:name=systemd:/\n4:cpu,memory:/jobs/7\n3:cpuset:/\n0::/\n"
    assert system(tmp_path, memberships, {"memory/jobs/7/memory.oom_control": V1}) == 3


def test_a_container_finds_its_own_group_at_the_root_of_the_mount(tmp_path):
    assert system(tmp_path, "4:memory:/docker/abc\n", {"memory/memory.oom_control": V1}) == 3


def test_without_a_counter_nothing_was_killed(tmp_path):
    assert system(tmp_path, "0::/\n", {}) == 0
    assert launcher.oom_kills_so_far(tmp_path / "no such file", tmp_path) == 0
