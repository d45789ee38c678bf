"""What errors and the end of processes mean: a result of the study, or a failure and its cause."""

import signal

import pytest
import torch

from scaling.core.errors import UserError
from scaling.core.grid import Cell
from scaling.launch import rank_log
from scaling.launch.launcher import ProcessResult
from scaling.launch.outcome import classify, first_sentence, verdict
from scaling.launch.run_spec import RunSpec

SOUND = ProcessResult(0, timed_out=False)
FAILED = ProcessResult(1, timed_out=False)
OUT_OF_MEMORY = ProcessResult(1, timed_out=False, oom_kills=1)
ABORTED = "Fatal Python error: Aborted\n\nThread 0x1 (most recent call first):\n"
TRAINED = {"parameters_sha256": "equal"}
ENDED = "Current thread 0x1 (most recent call first):\n"


def spec(gpus, strategy="ddp"):
    """Three epochs on `gpus` GPUs."""
    return RunSpec(
        cell=Cell("course", strategy, gpus, 128, 0),
        device="cuda",
        measured_epochs=2,
        time_limit_seconds=60,
        collective_timeout_seconds=10,
    )


def rank(number, epochs, **last):
    """The lines of a rank that did so many epochs, and its last one: outcome, end or stacks."""
    lines = [{"kind": "startup", "rank": number}]
    for epoch in range(1, epochs + 1):
        lines.append({"kind": "epoch", "rank": number, "epoch": epoch, "train_loss": 1.0})
    return lines + [{"kind": kind, "rank": number, **line} for kind, line in last.items()]


def failed(message, time=1.0):
    return {"status": "failed", "time": time, "message": message}


def of(gpus, ending, *ranks, strategy="ddp"):
    lines = rank_log.by_kind([line for lines in ranks for line in lines])
    return verdict(spec(gpus, strategy), lines, ending)


def causes(gpus, ending, *ranks):
    """What stands in parentheses in the sentence about a failure."""
    with pytest.raises(UserError) as caught:
        of(gpus, ending, *ranks)
    sentence = str(caught.value)
    start = f"training of course/ddp, {gpus} GPU"
    assert sentence.startswith(start)
    assert sentence.endswith("): no record is written, the log above has the details")
    return sentence.partition(" (")[2].rpartition(")")[0]


def test_ranks_that_all_reach_their_end_are_ok():
    assert of(2, SOUND, rank(0, 3, end=TRAINED), rank(1, 3, end=TRAINED)) == (
        "ok",
        None,
    )


def test_a_rank_the_kernel_killed_for_its_memory_is_a_result():
    waiting = rank(0, 1, outcome=failed("Connection reset by peer"))
    status, message = of(2, OUT_OF_MEMORY, waiting, rank(1, 1))
    assert status == "oom_host"
    assert message == "the kernel ended rank 1 because memory had run out"


def test_a_loader_worker_the_kernel_killed_for_its_memory_is_a_result():
    message = "DataLoader worker (pid 7) is killed by signal: Killed. "
    single = rank(0, 1, outcome=failed(message))
    assert of(1, OUT_OF_MEMORY, single) == (
        "oom_host",
        "the kernel ended a loader worker of rank 0 because memory had run out",
    )
    assert causes(1, FAILED, single) == f"rank 0: {message}"


def test_a_killed_rank_without_the_kernels_word_is_a_failure():
    assert causes(2, FAILED, rank(0, 2, stacks={"text": ENDED}), rank(1, 2)) == (
        "rank 0 was still running in epoch 3; rank 1 ended without a word in epoch 3"
    )


def test_an_error_stays_a_failure_when_the_kernel_killed_another_jobs_process():
    bug, waiting = rank(1, 1, outcome=failed("'a bug'")), rank(0, 1, stacks={"text": ENDED})
    assert causes(2, OUT_OF_MEMORY, waiting, bug) == (
        "rank 1: 'a bug'; rank 0 was still running in epoch 2"
    )


def test_the_first_error_is_told_first():
    consequence = rank(0, 1, outcome=failed("Connection reset by peer", time=2.5))
    cause = rank(1, 1, outcome=failed("'a bug'", time=2.4))
    assert causes(2, FAILED, consequence, cause) == (
        "rank 1: 'a bug'; rank 0: Connection reset by peer"
    )


def test_the_one_rank_that_others_gave_up_waiting_for_hung():
    waiting = rank(0, 3, outcome=failed("Timed out waiting 10000ms for recv operation"))
    assert causes(2, FAILED, waiting, rank(1, 3, stacks={"text": ENDED})) == (
        "rank 0: Timed out waiting 10000ms for recv operation; "
        "rank 1 was still running in the steps after its last epoch; likely stuck: rank 1"
    )


def stalled(launched, finished):
    """The last words of a rank whose steps got no further."""
    steps = {"launched": launched, "finished": finished}
    return {**failed("timed out: waited 10 s for step 4 of epoch 2"), **steps}


def likely(gpus, *ranks):
    """The last of the causes."""
    return causes(gpus, FAILED, *ranks).rpartition("; ")[2]


def test_a_rank_that_said_nothing_where_the_others_steps_got_no_further_is_likely_stuck():
    waiting = [rank(number, 1, outcome=stalled(8, 3)) for number in (0, 2)]
    assert causes(3, FAILED, *waiting, rank(1, 1)).endswith(
        "rank 1 ended without a word in epoch 2; likely stuck: rank 1"
    )
    two = [rank(number, 1, stacks={"text": ENDED}) for number in (0, 1)]
    assert likely(3, waiting[1], *two) == "likely stuck: rank 0 and rank 1"


def test_the_rank_that_launched_or_finished_the_fewest_steps_is_likely_stuck():
    waiting = [rank(number, 1, outcome=stalled(8, 3)) for number in (0, 2)]
    for own in (stalled(3, 3), stalled(8, 2)):
        assert likely(3, *waiting, rank(1, 1, outcome=own)) == "likely stuck: rank 1"


def test_of_ranks_that_got_equally_far_none_is_accused():
    ranks = [rank(number, 1, outcome=stalled(8, 3)) for number in (0, 1)]
    assert "stuck" not in causes(2, FAILED, *ranks)


def test_a_rank_that_a_library_aborted_is_named_with_the_signal():
    # NCCL's watchdog ends a rank whose collective timed out so, without an exception.
    aborted, stuck = rank(0, 1, stacks={"text": ABORTED}), rank(1, 1, stacks={"text": ENDED})
    assert causes(2, ProcessResult(-signal.SIGABRT, False), aborted, stuck) == (
        "rank 0: Fatal Python error: Aborted; rank 1 was still running in epoch 2; "
        "likely stuck: rank 1"
    )


def test_a_rank_that_never_reported_ended_in_its_start_up():
    assert causes(1, FAILED) == "rank 0 ended without a word in its start-up"


def test_lack_of_memory_on_one_rank_outweighs_the_errors_it_causes_on_others():
    consequence = rank(0, 1, outcome=failed("Connection reset by peer", time=1.0))
    full = {"status": "oom", "time": 1.1, "message": "CUDA out of memory."}
    assert of(2, FAILED, consequence, rank(1, 1, outcome=full)) == (
        "oom",
        "rank 1: CUDA out of memory.",
    )


def test_the_time_limit_names_the_ranks_that_were_behind():
    ranks = [rank(0, 2, stacks={"text": ENDED}), rank(1, 1, stacks={"text": ENDED})]
    assert of(2, ProcessResult(-signal.SIGKILL, timed_out=True), *ranks) == (
        "timeout",
        "stopped at the time limit of 60 s after 1 of 3 epochs; rank 1 did not finish epoch 2",
    )


def test_a_loss_that_is_not_finite_is_diverged_from_the_first_such_epoch():
    lines = rank(0, 3, end=TRAINED)
    lines[2]["train_loss"] = lines[3]["train_loss"] = None
    assert of(1, SOUND, lines) == (
        "diverged",
        "the loss was not finite in epoch 2",
    )


def test_ranks_that_end_with_different_parameters_are_a_failure():
    with pytest.raises(UserError, match="its ranks ended with different parameters"):
        of(
            2,
            SOUND,
            rank(0, 3, end=TRAINED),
            rank(1, 3, end={"parameters_sha256": "x"}),
        )


@pytest.mark.parametrize(
    ("ending", "last", "why"),
    [
        (FAILED, {"outcome": failed("no CUPTI")}, "rank 1: no CUPTI"),
        (ProcessResult(-9, timed_out=True), {}, "the time limit of 60 s was reached"),
        (FAILED, {}, "exit status 1"),
    ],
)
def test_what_was_measured_stays_measured_when_an_instrument_fails(ending, last, why):
    ranks = rank(0, 3, end=TRAINED), rank(1, 3, end=TRAINED, **last)
    told = f"communication was not read, all epochs were measured ({why})"
    assert of(2, ending, *ranks) == ("ok", told)


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
    ],
)
def test_a_lack_of_memory_is_a_result_and_anything_else_a_failure(error, status):
    assert classify(error) == status


def test_the_line_that_says_what_was_asked_for_is_kept():
    error = RuntimeError("Caught in replica 1\n  CUDA out of memory. Tried to allocate 2 GiB.\nend")
    assert first_sentence(error) == "CUDA out of memory. Tried to allocate 2 GiB."
    assert first_sentence(MemoryError()) == "MemoryError"


def test_an_error_that_came_from_a_lack_of_memory_is_one():
    full = torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
    error = RuntimeError("capture was invalidated")
    error.__context__ = full
    assert classify(error) == "oom"
    assert first_sentence(error) == "CUDA out of memory. Tried to allocate 2.00 GiB."
