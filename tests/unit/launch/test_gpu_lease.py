import subprocess
import sys

import pytest

from scaling.core.errors import UserError
from scaling.launch import gpu_lease


@pytest.fixture(autouse=True)
def quick_polling(monkeypatch):
    monkeypatch.setattr(gpu_lease, "POLL_SECONDS", 0.02)


def test_two_jobs_on_one_machine_never_get_the_same_gpu(tmp_path):
    gpus = ["GPU-a", "GPU-b", "GPU-c"]
    with gpu_lease.lease(2, gpus, tmp_path) as first, gpu_lease.lease(1, gpus, tmp_path) as second:
        assert first == ["GPU-a", "GPU-b"]
        assert second == ["GPU-c"]


def test_a_job_waits_for_a_gpu_that_another_process_holds_even_if_that_is_killed(tmp_path):
    holder = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys, time; from pathlib import Path; from scaling.launch import gpu_lease\n"
            "with gpu_lease.lease(1, ['GPU-a'], Path(sys.argv[1])):\n"
            "    print('held', flush=True); time.sleep(600)",
            str(tmp_path),
        ],
        stdout=subprocess.PIPE,
        env={"PYTHONPATH": ":".join(sys.path)},
        text=True,
    )
    assert holder.stdout is not None and holder.stdout.readline() == "held\n"

    def kill_holder_once(seconds):
        holder.kill()
        holder.wait()

    gpu_lease.time.sleep, sleep = kill_holder_once, gpu_lease.time.sleep
    try:
        with gpu_lease.lease(1, ["GPU-a"], tmp_path) as names:
            assert names == ["GPU-a"]
    finally:
        gpu_lease.time.sleep = sleep
    assert holder.returncode == -9


def test_more_gpus_than_there_are_is_one_clear_sentence(tmp_path):
    with (
        pytest.raises(UserError, match=r"4 GPUs are asked for but this job may use 1 \(GPU-a\)"),
        gpu_lease.lease(4, ["GPU-a"], tmp_path),
    ):
        pass
