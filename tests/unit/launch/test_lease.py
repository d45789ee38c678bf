import os
import re
import signal
import subprocess
import sys
import time
import uuid
from contextlib import contextmanager

import psutil
import pytest

from scaling.core.errors import UserError
from scaling.launch import lease


@pytest.fixture(autouse=True)
def quick_polling(monkeypatch):
    monkeypatch.setattr(lease, "POLL_SECONDS", 0.02)


@pytest.fixture
def gpus():
    """Three GPUs that no other process leases: leases are those of the whole machine."""
    return [f"GPU-{letter}-{uuid.uuid4()}" for letter in "abc"]


@contextmanager
def holder_of(leased, then="print('held', flush=True); time.sleep(600)", **variables):
    """Another process that holds what it leased, and the line that it says then."""
    program = "import os, subprocess, time; from scaling.launch import lease\n"
    command = [sys.executable, "-c", f"{program}with lease.{leased}: {then}"]
    environment = {**os.environ, "PYTHONPATH": ":".join(sys.path), **variables}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True) as holder:
        assert holder.stdout is not None
        yield holder, holder.stdout.readline()
        holder.kill()


def test_two_jobs_get_other_gpus_and_more_than_there_are_is_one_clear_sentence(gpus):
    with lease.gpus(2, gpus) as first, lease.gpus(1, gpus) as second:
        assert (first, second) == (gpus[:2], gpus[2:])
    told = re.escape("4 GPUs are asked for but this job may use 1 (GPU-a)")
    with pytest.raises(UserError, match=told), lease.gpus(4, ["GPU-a"]):
        pass


def test_a_job_waits_for_a_while_for_a_gpu_that_another_holds_even_if_that_is_killed(
    gpus, tmp_path, monkeypatch, capfd
):
    with holder_of(f"gpus(1, {gpus[:1]})", TMPDIR=str(tmp_path)) as (holder, said):
        assert said == "held\n"
        told = rf"waited 0\.1 s for 1 of 1 GPUs: {gpus[0]} is held by process {holder.pid} of"
        with pytest.raises(UserError, match=told), lease.gpus(1, gpus[:1], 0.1):
            pass

        def kill_holder(seconds):
            holder.kill()
            holder.wait()

        monkeypatch.setattr(lease.time, "sleep", kill_holder)
        with lease.gpus(2, gpus[:2]) as names:
            assert names == gpus[:2]
    assert holder.returncode == -9
    of = f"{gpus[0]} is held by process {holder.pid} of user {os.getuid()} ({sys.executable} -c "
    first, second = capfd.readouterr().err.splitlines()
    assert first.startswith(f"waits for 1 of 1 GPUs, for at most 0.1 s: {of}")
    assert second.startswith(f"waits for 2 of 2 GPUs, for at most 3600 s: {of}")
    assert second.endswith(f"; {gpus[1]} is free")


@pytest.mark.parametrize(("free", "says"), [(0, "waits for"), (1, "rank at work")])
def test_a_job_that_is_ended_while_it_waits_or_twice_at_work_leaves_nothing_behind(
    gpus, tmp_path, free, says
):
    program = (
        "import os, sys, time; from pathlib import Path; from scaling.launch import measure\n"
        "from scaling.core.training_options import Limits\n"
        "os.register_at_fork(after_in_parent=lambda: time.sleep(0.5))\n"
        "measure.environment.visible_gpus = lambda: sys.argv[1:2]\n"
        "rank = ['sh', '-c', 'trap \"\" TERM; echo rank at work: $$ >&2; exec sleep 600']\n"
        "measure.launch_ranks(rank, Path(sys.argv[2]), 'cuda', 1, Limits())"
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


@pytest.fixture
def own_machine(monkeypatch):
    """Timed jobs of this test share the CPU with no other test's."""
    monkeypatch.setenv(lease.SHARE_VARIABLE, "")
    monkeypatch.setenv("SLURMD_NODENAME", f"node-{uuid.uuid4()}")


def test_timed_jobs_on_a_cpu_wait_for_one_another_and_all_that_a_killed_one_started(
    own_machine, capfd
):
    start = "subprocess.Popen(['sh', '-c', 'echo $$; exec sleep 600'], close_fds=False)"
    with holder_of("cpu()", f"{start}; time.sleep(600)") as (holder, started):
        held = "waited 0.1 s for 1 of 1 CPUs: the CPU of node-.* is held by process"
        for told in (
            f"{held} {holder.pid} of",
            "another user's, or ended while what it started has not",
        ):
            with pytest.raises(UserError, match=told), lease.cpu(0.1):
                pass
            holder.kill()
            holder.wait()
        assert "waits for 1 of 1 CPUs, for at most 0.1 s: the CPU of" in capfd.readouterr().err
        os.kill(int(started), signal.SIGKILL)
        with lease.cpu(10):
            pass
