"""Training runs that cannot start, or in which a process fails."""

import time

import psutil
import pytest

from scaling.core.errors import UserError
from scaling.launch import launcher, ranks
from training_runs import KILLED, run, supervise_faulty, tuned


@pytest.fixture(autouse=True)
def nothing_left_behind(monkeypatch):
    """End hanging ranks early. Check that all processes of a test have ended."""
    monkeypatch.setattr(ranks, "GRACE_SECONDS", 1.0)
    launcher.adopt_orphans()
    before = psutil.Process().children(recursive=True)
    yield
    assert not [one for one in psutil.Process().children(recursive=True) if one not in before]


def test_infeasible_run_is_recorded_without_a_process(images, tmp_path, monkeypatch):
    monkeypatch.setattr(launcher, "launch", lambda *_: pytest.fail("a process was started"))
    record = run(images, tmp_path / "run.json", gpus=2, **{"batch-size": 21})
    assert record["status"] == "infeasible" and "2·21 = 42 samples" in record["message"]
    assert record["epochs"] == record["environment"]["device_ids"] == []
    assert record["run_seconds"] is record["startup"] is None


ONE_STEP = {"batch-size": 40, "warmup-epochs": 0, "measured-epochs": 1}


@pytest.mark.parametrize(
    ("changed", "epochs", "message"),
    [
        ({}, 5, "the loss was not finite in epoch "),
        (ONE_STEP, 1, "the loss on the test set was not finite after the last epoch"),
    ],
)
def test_diverged_run_keeps_its_times(images, tmp_path, changed, epochs, message):
    record = run(images, tmp_path / "run.json", **changed, **{"learning-rate": 1e9})
    assert record["status"] == "diverged" and record["message"].startswith(message)
    assert len(record["epochs"]) == epochs


def test_no_memory_on_one_rank_ends_all_ranks_as_a_result(images, tmp_path, monkeypatch):
    record = supervise_faulty(images, tmp_path / "run.json", monkeypatch, "oom:1:2")
    assert record["status"] == "oom"
    assert record["message"] == "rank 1: CUDA out of memory. Tried to allocate 2.00 GiB."
    assert min(record["memory"]["peak_bytes"]) > 0
    assert {row["epoch"] for row in record["epochs"]} == {1, 2}
    assert record["startup"]["total"] < record["run_seconds"]
    assert record["model"]["flops_per_image"] is None


STUCK = {"collective-timeout-seconds": 3}
WAITED = r"\(rank 0: .*[Tt]imed out.*; likely stuck: rank 1\)"
INSIDE = r"rank 0: timed out: waited \d s after step \d of epoch 2.*; likely stuck: rank 1\)"


@pytest.mark.parametrize(
    ("fault", "options", "why", "said"),
    [
        *((f"killed:{rank}:1", {}, said, "") for rank, said in KILLED.items()),
        *((f"killed:{rank}:1", tuned(), said, "") for rank, said in KILLED.items()),
        ("stuck:1:1", STUCK, WAITED, "Rank 1, when a signal ended it:"),
        # The backend sees no wait; both ranks write their stacks at once.
        ("stuck:1:1", tuned() | STUCK, INSIDE, "Rank 1 made no progress; stacks of all threads:"),
    ],
)
def test_failed_or_hanging_rank_ends_the_run_and_is_named(
    images, tmp_path, monkeypatch, capfd, fault, options, why, said
):
    with pytest.raises(UserError, match=why):
        supervise_faulty(images, tmp_path / "run.json", monkeypatch, fault, **options)
    assert said in capfd.readouterr().err
    assert not list(tmp_path.iterdir())


def test_timeout_keeps_epochs_and_shows_each_ranks_stack(images, tmp_path, monkeypatch, capfd):
    popen = launcher.subprocess.Popen

    def started(*arguments, **options):
        """Start the run. Its time limit begins when both ranks have reported two epochs."""
        process = popen(*arguments, **options)
        wait = process.wait

        def wait_from_there(timeout):
            while sum('"epoch": 2' in log.read_text() for log in tmp_path.rglob("*.jsonl")) < 2:
                time.sleep(0.05)
            return wait(timeout=timeout)

        process.wait = wait_from_there
        return process

    monkeypatch.setattr(launcher.subprocess, "Popen", started)
    limit = {"time-limit-seconds": 3}
    record = supervise_faulty(images, tmp_path / "run.json", monkeypatch, "stuck:1:2", **limit)
    assert record["status"] == "timeout"
    assert record["message"] == "stopped at the time limit of 3 s after 2 of 5 epochs"
    assert {row["epoch"] for row in record["epochs"]} == {1, 2}
    assert record["run_seconds"] > 3
    waiting, _, stuck = capfd.readouterr().err.partition("Rank 1, when a signal ended it:")
    assert "in barrier" in waiting.partition("Rank 0, when a signal ended it:")[2]
    assert "faulty_worker.py" in stuck and "in fail" in stuck
