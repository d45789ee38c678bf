"""When a rank gives up on steps that do not end, by a clock and positions made by hand."""

import pytest
import torch

from scaling.launch import stall
from scaling.launch.stall import REPORTS, Progress, StepProgress


def at(finished, training=1, launched=20, epoch=2):
    return Progress(training, epoch, launched, finished)


@pytest.mark.parametrize(
    ("timeout", "positions", "said"),
    [
        (10, [at(0), at(0), at(0), at(2), at(2), at(2), at(4)], None),
        (8, [at(0), at(0), at(0, training=2), None, at(0, training=3)], None),
        (8, [None] * 4, None),
        (10, [at(0), *[at(4)] * 4], "waited 12 s after step 4 of epoch 2, 20 launched"),
        (
            8,
            [at(4, launched=n) for n in (8, 12, 16)],
            "waited 8 s after step 4 of epoch 2, 16 laun",
        ),
        (4, [at(0, epoch=0)] * 2, "waited 4 s after step 0 of the steps after the last epoch, 20"),
    ],
)
def test_a_stall_is_no_finished_step_for_the_timeout_and_names_the_step(timeout, positions, said):
    looks = ((100 + 4 * number, position) for number, position in enumerate(positions))
    error = next(stall.stalls(looks, timeout), None)
    assert error is None if said is None else str(error).startswith(f"timed out: {said}")
    assert error is None or error.position == positions[-1]


@pytest.mark.parametrize("steps", [1, 5, REPORTS, 10 * REPORTS + 1])
def test_progress_is_known_at_some_steps_and_not_between_trainings(steps):
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
