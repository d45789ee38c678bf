"""A rank reports steps that do not end."""

from queue import SimpleQueue

import pytest

from scaling.launch import stall
from scaling.launch.stall import Progress


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
