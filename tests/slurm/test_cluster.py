"""The Slurm of these tests is gone when they end."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import cluster
import psutil

DAEMONS = ("munged", "slurmctld", "slurmd", "slurmstepd")


def traces():
    """What a cluster may leave: daemons, files of its configuration, folders."""
    return {
        "daemons": cluster.running(*DAEMONS),
        "links": set(cluster.ETC.glob("*")),
        "folders": set(Path(tempfile.gettempdir()).glob("slurm-*")),
    }


def test_taking_the_cluster_down_ends_its_jobs_and_leaves_nothing():
    before = traces()
    with cluster.cluster() as folder:
        pid_file = folder / "pid"
        script = f"echo $$ > {pid_file}; exec sleep 3600"
        command = ["sbatch", "--gpus=1", "--mem=100", "--output=/dev/null"]
        subprocess.run([*command, f"--wrap=srun sh -c '{script}'"], check=True)
        cluster.wait_for(lambda: pid_file.exists() and pid_file.read_text(), "a job", folder)
        job = int(pid_file.read_text())
        during = traces()
        assert all(before[kind] < during[kind] for kind in before)
        assert psutil.pid_exists(job)
    assert traces() == before
    assert not psutil.pid_exists(job)


KILLED_WITH_ITS_DAEMONS = """
import os, signal
import cluster, psutil
with cluster.cluster():
    assert "another test" in cluster.reason_not_to_start()
    for daemon in psutil.Process().children(recursive=True):
        daemon.kill()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_test_left_is_removed_and_a_slurm_of_the_machine_is_not():
    before = traces()
    folder = Path(cluster.__file__).parent
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    subprocess.run([sys.executable, "-c", KILLED_WITH_ITS_DAEMONS], env=environment)
    cluster.wait_for(lambda: not cluster.running(*DAEMONS), "the daemons to end")
    assert traces() != before
    assert cluster.reason_not_to_start() is None
    assert traces() == before

    own = cluster.ETC / "slurm.conf"
    own.symlink_to("/nowhere/slurm.conf")
    try:
        assert f"{own} exists" in cluster.reason_not_to_start()
        assert own.is_symlink()
    finally:
        own.unlink()
