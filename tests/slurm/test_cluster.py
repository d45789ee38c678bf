"""The Slurm of these tests is gone when they end."""

import subprocess
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
