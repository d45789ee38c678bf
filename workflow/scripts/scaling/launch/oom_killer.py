"""How many processes of our control group the kernel has ended for want of memory."""

from pathlib import Path

MEMBERSHIPS = Path("/proc/self/cgroup")
MOUNT = Path("/sys/fs/cgroup")


def count(counters: str) -> int:
    """The value of `oom_kill` in the text of memory.events (cgroup v2) or memory.oom_control (v1).

    0 where the text has no such line, as before Linux 4.13.
    """
    values = dict(line.split() for line in counters.splitlines() if line.strip())
    return int(values.get("oom_kill", 0))


def kills_so_far(memberships: Path = MEMBERSHIPS, mount: Path = MOUNT) -> int:
    """The counter of this process's own control group; 0 where there is none to read.

    `memberships` has lines `id:controllers:path` (cgroups(7)). Without a cgroup namespace a
    container sees the path that the host uses, and its own group at the root of the mount.
    """
    try:
        groups = [line.split(":", 2) for line in memberships.read_text().splitlines()]
        paths = {name: path for _, names, path in groups for name in names.split(",")}
        if "memory" in paths:
            base, path, name = mount / "memory", paths["memory"], "memory.oom_control"
        else:
            base, path, name = mount, paths.get("", "/"), "memory.events"
        own = base / path.lstrip("/") / name
        return count((own if own.exists() else base / name).read_text())
    except OSError:
        return 0
