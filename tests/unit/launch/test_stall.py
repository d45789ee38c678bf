"""When a rank gives up on steps that do not end, by a clock and positions made by hand."""

import threading

import pytest
import torch

from scaling.launch import stall
from scaling.launch.stall import REPORTS, Progress, StepProgress


def at(finished, training=1, launched=20, epoch=2):
    return Progress(training, epoch, launched, finished, awaited=finished + 2)


def stalled(timeout, *positions):
    """What is said of these positions, seen every 4 s from second 100 on; None for nothing."""
    looks = ((100 + 4 * number, position) for number, position in enumerate(positions))
    return next(stall.stalls(looks, timeout), None)


def test_steps_that_end_in_time_another_training_or_none_are_no_stall():
    assert stalled(10, at(0), at(0), at(0), at(2), at(2), at(2), at(4)) is None
    assert stalled(8, at(0), at(0), at(0, training=2), None, at(0, training=3)) is None
    assert stalled(8, *[None] * 4) is None


def test_no_step_for_the_timeout_is_a_stall_that_names_the_step():
    assert stalled(10, at(0), at(4), at(4), at(4)) is None
    error = stalled(10, at(0), at(4), at(4), at(4), at(4))
    assert str(error) == "timed out: waited 12 s for step 6 of epoch 2"
    assert error.position == at(4)


def test_launching_more_steps_is_no_progress_and_one_never_launched_is_told():
    error = stalled(8, *(at(4, launched=launched) for launched in (4, 8, 16)))
    assert error.position.launched == 16
    error = stalled(4, at(4, launched=4), at(4, launched=4))
    assert str(error) == "timed out: waited 4 s for step 6 of epoch 2, only 4 launched"


def test_the_instruments_steps_belong_to_no_epoch():
    error = stalled(4, at(0, epoch=0), at(0, epoch=0))
    assert str(error).endswith("for step 2 of the steps after the last epoch")


def test_the_watch_gives_up_once_from_a_thread_of_its_own(monkeypatch):
    monkeypatch.setattr(stall, "POLL_SECONDS", 0.01)
    given_up, errors = threading.Event(), []
    stall.watch(lambda: at(3), 0.05, lambda error: (errors.append(error), given_up.set()))
    assert given_up.wait(30)
    assert errors[0].position == at(3)


@pytest.mark.parametrize("steps", [1, 5, REPORTS, 10 * REPORTS + 1])
def test_progress_is_known_at_some_steps_and_not_between_trainings(steps):
    progress = StepProgress(steps, torch.device("cpu"))
    assert progress.position() is None
    progress.start(3, steps)
    assert progress.position() == Progress(1, 3, 0, 0, min(steps, -(-steps // REPORTS)))
    reports = set()
    for step in range(1, steps + 1):
        progress.launch(step)
        where = progress.position()
        assert where.launched == step
        assert where.finished <= step and where.finished < where.awaited <= steps
        reports.add(where.finished)
    assert len(reports) <= REPORTS + 1
    assert len(reports) >= min(steps - 1, REPORTS // 2)  # the last step is the end
    progress.end()
    assert progress.position() is None
    progress.start(4, 1)
    assert progress.position() == Progress(2, 4, 0, 0, 1)
