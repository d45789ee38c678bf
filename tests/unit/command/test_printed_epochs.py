import json

import pytest

from scaling.command.printed_epochs import PrintedEpochs
from scaling.core.errors import UserError


def epochs_of(*lines, wanted=2, ranks=1):
    printed = PrintedEpochs(ranks)
    for now, line in enumerate(lines, start=1):
        printed.read(line if isinstance(line, str) else json.dumps(line), float(now))
    return printed.epochs(wanted)


def test_a_line_is_an_epoch():
    (first, second) = epochs_of(
        {"epoch": 0, "seconds": 0.5, "samples": 100, "loss": 2.0, "other": [1]},
        "Epoch 1: 100 %",
        {"epoch": 1, "seconds": 0.25, "samples": 100, "loss": 1.0, "test_accuracy": 0.5},
    )
    assert (first.seconds, first.samples, first.loss, first.end) == (0.5, 100, 2.0, 1.0)
    assert (second.seconds, second.test_accuracy, second.end) == (0.25, 0.5, 3.0)


def test_seconds_that_are_not_printed_are_those_since_the_line_before():
    assert [epoch.seconds for epoch in epochs_of({"epoch": 1}, "-", {"epoch": 2})] == [1.0, 2.0]


def test_of_several_ranks_the_slowest_counts():
    lines = [{"epoch": 1, "seconds": seconds, "samples": 8} for seconds in (0.1, 0.3, 0.2)]
    (only,) = epochs_of(*lines, ranks=3)
    assert (only.seconds, only.samples) == (0.3, 8)


def test_a_rank_may_be_a_step_behind():
    places = [(1, 0), (1, 1), (1, 0), (2, 0), (1, 1), (2, 1), (2, 0), (2, 1)]
    lines = [{"epoch": epoch, "step": step, "seconds": 0.1} for epoch, step in places]
    assert [epoch.steps for epoch in epochs_of(*lines, ranks=2)] == [2, 2]


def test_steps_of_an_epoch_are_added_up():
    lines = [
        {"epoch": epoch, "step": step, "seconds": 0.1, "samples": 4, "loss": step}
        for epoch in (1, 2)
        for step in range(3)
    ]
    first, _ = epochs_of(*lines)
    assert (round(first.seconds, 6), first.samples, first.loss, first.steps) == (0.3, 12, 1.0, 3)


def test_steps_alone_are_cut_into_equal_parts():
    parts = epochs_of(*({"step": step, "seconds": 1.0} for step in range(7)), wanted=3)
    assert [part.seconds for part in parts] == [2.0, 2.0, 2.0]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([{"epoch": 2}, {"epoch": 1}], "it comes after 2"),
        ([{"epoch": 1}, {"epoch": 2}, {"epoch": 1}], "each process has printed that before"),
        ([{"epoch": 1, "seconds": -1}], "seconds Input should be greater than 0"),
        ([{"epoch": 1, "seconds": "long"}], "seconds Input should be a valid number"),
        ([{"epoch": 1.5}], "epoch Input should be a valid integer"),
        ([{"epoch": 1, "samples": 0}], "samples Input should be greater than 0"),
        ([{"epoch": 1, "test_accuracy": 87}], "test_accuracy Input should be less than or equal"),
        ([{"epoch": 1}, {"step": 1}], "only some lines have an epoch"),
        (['{"epoch": 1, "seconds": }'], "Invalid JSON"),
        ([{"step": 1}], "1 steps, to be cut into 2 parts"),
    ],
)
def test_what_cannot_be_is_refused_with_its_line(lines, said):
    with pytest.raises(UserError, match=said):
        epochs_of(*lines)
