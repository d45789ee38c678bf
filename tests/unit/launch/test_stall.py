"""When a rank gives up on steps that do not end."""

from queue import SimpleQueue

import pytest
import torch

from scaling.launch import stall
from scaling.launch.stall import REPORTS, Progress, StepProgress


def at(finished, training=1, launched=20, epoch=2):
    return Progress(training, epoch, launched, finished)


@pytest.mark.parametrize(
    ("positions", "said"),
    [
        ([at(0), at(2), at(4), at(4)], "after step 4 of epoch 2, 20 launched"),
        ([at(0), at(0, training=2), None, None, at(1), at(1)], "after step 1 of epoch 2"),
        ([at(4, launched=8), at(4, launched=12)], "after step 4 of epoch 2, 12 launched"),
        ([at(0, epoch=0)] * 2, "after step 0 of the steps after the last epoch, 20 launched"),
    ],
)
def test_stall_is_no_finished_step_between_two_looks(monkeypatch, positions, said):
    monkeypatch.setattr(stall, "POLL_SECONDS", 0.02)
    looks, told = iter(positions), SimpleQueue()
    stall.watch(lambda: next(looks), 0.01, told.put)
    error = told.get(timeout=30)
    assert str(error).partition(" s ")[2].startswith(said)
    assert error.position == positions[-1] and next(looks, None) is None


@pytest.mark.parametrize("steps", [1, 5, REPORTS, 10 * REPORTS + 1])
def test_progress_is_known_within_a_training(steps):
    progress = StepProgress(steps, torch.device("cpu"))
    assert progress.position() is None
    progress.start(3, steps)
    assert progress.position() == Progress(1, 3, 0, 0)
    reports = set()
    for step in range(1, steps + 1):
        progress.launch(step)
        where = progress.position()
        assert where.launched == step
        assert where.finished <= step
        reports.add(where.finished)
    assert min(steps - 1, REPORTS // 2) <= len(reports) <= REPORTS + 1  # the last step is the end
    progress.end()
    assert progress.position() is None
    progress.start(4, 1)
    assert progress.position() == Progress(2, 4, 0, 0)
