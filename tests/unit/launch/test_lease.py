import os
import re
import signal
import subprocess
import sys
import time
import uuid

import psutil
import pytest

from scaling.core.errors import UserError
from scaling.launch import lease


@pytest.fixture(autouse=True)
def quick_polling(monkeypatch):
    monkeypatch.setattr(lease, "POLL_SECONDS", 0.02)


@pytest.fixture
def gpus():
    """Return the names of three GPUs that no other process of this machine locks."""
    return [f"GPU-{letter}-{uuid.uuid4()}" for letter in "abc"]


def test_two_jobs_lease_different_gpus(gpus):
    with lease.gpus(2, gpus) as first, lease.gpus(1, gpus) as second:
        assert (first, second) == (gpus[:2], gpus[2:])
    told = re.escape("4 GPUs are required, but this job may use 1 (GPU-a)")
    with pytest.raises(UserError, match=told), lease.gpus(4, ["GPU-a"]):
        pass


HOLDER = """
import subprocess, sys, time
from scaling.launch import lease
with lease.gpus(1, sys.argv[1:]):
    subprocess.Popen(["sh", "-c", "echo $$; exec sleep 600"], close_fds=False)
    time.sleep(600)
"""


def test_job_waits_for_a_gpu_while_its_holder_lives(gpus, monkeypatch, capfd):
    command = [sys.executable, "-c", HOLDER, gpus[0]]
    environment = {**os.environ, "PYTHONPATH": ":".join(sys.path)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True) as holder:
        assert holder.stdout is not None
        started = int(holder.stdout.readline())
        held = f"{gpus[0]} is held by process {holder.pid} of user {os.getuid()} "
        told = f"timed out after 0.1 s waiting for 1 of 1 GPUs: {held}({sys.executable} -c "
        with pytest.raises(UserError, match=re.escape(told)), lease.gpus(1, gpus[:1], 0.1):
            pass
        holder.kill()
        holder.wait()
        told = "another user's, or ended while what it started has not"
        with pytest.raises(UserError, match=told), lease.gpus(1, gpus[:1], 0.1):
            pass
        kill = psutil.Process(started).kill
        monkeypatch.setattr(lease.time, "sleep", lambda _: psutil.pid_exists(started) and kill())
        with lease.gpus(2, gpus[:2]) as names:
            assert names == gpus[:2]
    first, _, third = capfd.readouterr().err.splitlines()
    assert first.startswith(f"waits for 1 of 1 GPUs, for at most 0.1 s: {held}")
    assert third.startswith(f"waits for 2 of 2 GPUs, for at most 3600 s: {held}")
    assert third.endswith(f"; {gpus[1]} is free")


@pytest.mark.parametrize(("free", "says"), [(0, "waits for"), (1, "rank at work")])
def test_ended_job_leaves_no_lease_behind(gpus, tmp_path, free, says):
    program = (
        "import os, sys, time; from pathlib import Path; from scaling.launch import measure\n"
        "from scaling.launch.measure import Measurement\n"
        "os.register_at_fork(after_in_parent=lambda: time.sleep(0.5))\n"
        "measure.environment.visible_gpus = lambda: sys.argv[1:2]\n"
        "rank = ['sh', '-c', 'trap \"\" TERM; echo rank at work: $$ >&2; exec sleep 600']\n"
        "measure.launcher.command = lambda *_: rank\n"
        "path = Path(sys.argv[2]); options = Measurement(output=path, device='cuda')\n"
        "measure.launch_ranks('', {}, options, path, 1)"
    )
    command = [sys.executable, "-c", program, gpus[free], str(tmp_path / "run.json")]
    environment = {"PYTHONPATH": ":".join(sys.path), "PATH": os.environ["PATH"]}
    with lease.gpus(1, gpus):
        job = subprocess.Popen(command, stderr=subprocess.PIPE, env=environment, text=True)
        with job:
            assert job.stderr is not None
            said = job.stderr.readline()
            assert says in said and len(list(tmp_path.iterdir())) == free
            for _ in range(1 + free):
                job.terminate()
                time.sleep(0.5 * free)
    assert (job.returncode, list(tmp_path.iterdir())) == (128 + signal.SIGTERM, [])
    assert not free or not psutil.pid_exists(int(said.split()[-1]))


def test_timed_cpu_jobs_wait_unless_they_share(monkeypatch):
    monkeypatch.setenv("SLURMD_NODENAME", f"node-{uuid.uuid4()}")
    monkeypatch.setenv(lease.SHARE_VARIABLE, "")
    told = "timed out after 0.1 s waiting for 1 of 1 CPUs: the CPU of node-.* is held by process"
    with lease.cpu():
        assert lease.waits_for("cpu", 0).startswith("the CPU of node-")
        with pytest.raises(UserError, match=told), lease.cpu(0.1):
            pass
    assert lease.waits_for("cpu", 0) == ""
    monkeypatch.setenv(lease.SHARE_VARIABLE, "1")
    with lease.cpu(), lease.cpu(0.1):
        pass
