"""Errors and exit statuses of processes become results of a study, or failures with a cause."""

import signal
from dataclasses import replace

import pytest
import torch

from scaling.core.errors import UserError
from scaling.core.grid import Cell
from scaling.launch import supervisor
from scaling.launch.launcher import ProcessResult, by_kind
from scaling.launch.outcome import classify, first_sentence, of_output, verdict
from scaling.launch.run_spec import RunSpec

SOUND = ProcessResult(0, timed_out=False)
FAILED = ProcessResult(1, timed_out=False)
TRAINED = {"parameters_sha256": "equal"}


def spec(gpus):
    """Return a run of three epochs on `gpus` GPUs."""
    return RunSpec(cell=Cell("plain", "ddp", gpus, 128, 0), device="cuda", measured_epochs=2)


def rank(number, epochs, **last):
    """Return the log lines of a rank: its epochs, then `last` (outcome, end or stacks)."""
    lines = [{"kind": "startup", "rank": number}]
    for epoch in range(1, epochs + 1):
        lines.append({"kind": "epoch", "rank": number, "epoch": epoch, "train_loss": 1.0})
    return lines + [{"kind": kind, "rank": number, **line} for kind, line in last.items()]


def failed(message):
    return {"status": "failed", "time": 1.0, "message": message}


def of(ending, *ranks):
    lines = by_kind(line for lines in ranks for line in lines)
    return verdict(spec(len(ranks)), replace(ending, lines=lines))


STALLED = failed("timed out: waited 10 s for step 4 of epoch 2") | {"launched": 8, "finished": 3}
ALIVE = {"text": "Current thread 0x1 (most recent call first):\n"}
# NCCL's watchdog ends a rank whose collective timed out so, without an exception.
ABORTED = {"text": "Fatal Python error: Aborted\n\nThread 0x1 (most recent call first):\n"}
LATE = ProcessResult(-signal.SIGKILL, timed_out=True)


@pytest.mark.parametrize(
    ("ranks", "told"),
    [
        (
            [rank(0, 1, stacks=ALIVE), rank(1, 1, outcome=failed("'a bug'"))],
            r"rank 1: 'a bug'; rank 0 was still running after 1 epoch\)",
        ),
        (
            [rank(0, 1, stacks=ABORTED), rank(1, 1, stacks=ALIVE)],
            "rank 0: Fatal Python error: Aborted; rank 1 was still running after 1 epoch; "
            r"likely stuck: rank 1\)",
        ),
        ([rank(n, 1, outcome=STALLED) for n in range(2)], r"step 4 of epoch 2\): no record"),
    ],
)
def test_failure_names_each_rank_and_the_likely_stuck_one(ranks, told):
    with pytest.raises(UserError, match=rf"training of plain/ddp, 2 GPUs.* failed .*{told}"):
        of(FAILED, *ranks)


def test_run_starts_with_its_last_rank():
    lines = [{"kind": "startup", "total": 2.0 + n, "cudnn_search": n} for n in range(2)]
    made = supervisor.record_of(spec(2), replace(SOUND, lines=by_kind(lines)), "ok", None)
    assert made["startup"] == {"total": 3.0, "cudnn_search": 1}


def test_ranks_that_end_with_different_parameters_are_a_failure():
    with pytest.raises(UserError, match="its ranks ended with different parameters"):
        of(SOUND, rank(0, 3, end=TRAINED), rank(1, 3, end={"parameters_sha256": "x"}))


@pytest.mark.parametrize(
    ("ending", "last", "why"),
    [
        (FAILED, {"outcome": failed("no CUPTI")}, "rank 1: no CUPTI"),
        (LATE, {}, "its time limit"),
        (FAILED, {}, "exit status 1"),
    ],
)
def test_failed_instrument_keeps_measured_epochs(ending, last, why):
    ranks = rank(0, 3, end=TRAINED), rank(1, 3, end=TRAINED, **last)
    told = f"communication was not read, all epochs were measured ({why})"
    assert of(ending, *ranks) == ("ok", told)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."), "oom"),
        (RuntimeError("CUDA error: out of memory"), "oom"),
        (RuntimeError("cuDNN error: CUDNN_STATUS_ALLOC_FAILED"), "oom"),
        (MemoryError(), "oom_host"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), "oom_host"),
        (RuntimeError("DataLoader worker (pid 7) is killed by signal: Bus error."), "oom_host"),
        (RuntimeError("DataLoader worker (pid 7) is killed by signal: Killed."), None),
        (KeyError("a bug"), None),
        (AttributeError("module 'torch' has no attribute 'OutOfMemoryError'"), None),
    ],
)
def test_out_of_memory_is_a_result_other_errors_fail(error, status):
    assert classify(error) == status


@pytest.mark.parametrize("what", ["[Errno 28]", "In\nE: unable to map file </torch_7>:"])
def test_full_shared_memory_is_named_and_not_taken_for_a_disk(what):
    said = f"{what} No space left on device"
    assert "enlarge /dev/shm" in first_sentence(OSError(said))
    assert "/dev/shm" not in first_sentence(OSError(f"{said}: 'resources/x.py'"))


def test_error_caused_by_lack_of_memory_is_one():
    error = RuntimeError("capture was invalidated")
    text = "Caught in replica 1\n  CUDA out of memory. Tried to allocate 2 GiB.\nend"
    error.__context__ = torch.OutOfMemoryError(text)
    assert classify(error) == "oom"
    assert first_sentence(error) == "CUDA out of memory. Tried to allocate 2 GiB."
    assert first_sentence(MemoryError()) == "MemoryError"


OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB"
TRACEBACK = "Traceback (most recent call last):"
TORCHRUN = [
    "E1128 10:00 torch/distributed/elastic/multiprocessing/api.py:882] failed (exitcode: 1)",
    TRACEBACK,
    "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:",
    "  error_file: <N/A>",
    "============================================================",
]
DURING = "During handling of the above exception, another exception occurred:"


@pytest.mark.parametrize(
    ("lines", "status", "sentence"),
    [
        (["[rank1]: " + TRACEBACK, f"[rank1]: {OOM}", *TORCHRUN], "oom", OOM),
        ([OOM, DURING, "KeyError: 'x'", *TORCHRUN], None, "KeyError: 'x'"),
        ([OOM, "halved", '{"epoch": 0}', "Segmentation fault"], None, OOM),
        ([OOM, "RuntimeError: Connection closed by peer", *TORCHRUN], "oom", OOM),
        (["if you see CUDA out of memory", "KeyError: 'x'"], None, "KeyError: 'x'"),
        (["MemoryError"], "oom_host", "MemoryError"),
        (["numpy._core._exceptions._ArrayMemoryError: Unable"], "oom_host", "Unable"),
        (["terminate called", "  what():  CUDA error: out of memory".strip()], "oom", "what()"),
        (["RuntimeError: the real reason", "=" * 60], None, "RuntimeError: the real reason"),
        (["cannot find data", *TORCHRUN], None, "cannot find data"),
        (["torch.distributed.DistNetworkError: port 29517 in use"], None, "port 29517"),
        ([], None, "nothing was printed"),
        (["at work", '{"epoch": 0}'], None, "perhaps it was killed"),
    ],
)
def test_command_failure_is_its_last_exception(lines, status, sentence):
    found = of_output(lines)
    assert found[0] == status and sentence in found[1]
