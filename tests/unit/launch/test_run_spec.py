"""Checks of a run's parameters, before a process starts."""

import pytest

from scaling.core import environment
from scaling.core.grid import Cell
from scaling.core.statistics import drift
from scaling.launch import supervisor
from scaling.launch.run_spec import RunSpec

SPEC = RunSpec(device="cpu", measured_epochs=3)


def changed(**options):
    return SPEC.model_copy(update=options)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"micro_batches": 3}, "a batch of 128 does not divide into 3 parts"),
        (
            {"cell": Cell("plain", "dp", 4, 10, 0), "nodes": 2},
            "DataParallel is one process and cannot reach the GPUs of 2 machines",
        ),
        ({"device": "cuda", "cell": Cell("plain", "ddp", 2, 10, 0)}, "and the machine has 0"),
    ],
)
def test_impossible_run_is_infeasible(monkeypatch, options, said):
    monkeypatch.setattr(environment, "gpu_names", list)
    assert said in supervisor.infeasible_reason(changed(**options), train_images=1000)


@pytest.mark.parametrize(
    ("seconds", "change", "settled"),
    [
        ([1.0, 9.0, 1.019], 0.019, True),
        # A trend is no noise: 3 steps of it in 4 epochs.
        ([1.0, 1.1, 1.2, 1.3], 0.3, False),
        ([1.0, 1.3, 0.9, 1.2, 1.1, 1.3], 1.2 / 1.15 - 1, True),
        # A sprint of a sixth of the epochs, and of a third of them.
        ([0.8, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0], 0.0, True),
        ([0.8, 0.8, 0.8, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0], 0.25, False),
        ([1.0, 0.5, 0.5], -0.5, False),
    ],
)
def test_epochs_settle_where_the_last_equal_the_first(seconds, change, settled):
    assert drift(seconds) == (pytest.approx(change), settled)


def test_epochs_continue_until_number_and_seconds_suffice():
    spec = changed(warmup_seconds=2, measured_seconds=5, max_measured_seconds=8)
    assert spec.next_role([1.5], []) == "warmup"
    assert spec.next_role([1.5, 1.5], []) == "measured"
    assert spec.next_role([9.0], [4.0, 4.0]) == "measured"  # one more: at least 3
    assert spec.next_role([9.0], [1.0, 1.0, 1.0]) == "measured"
    assert spec.next_role([9.0], [1.7, 1.7, 1.7]) is None
    assert spec.next_role([9.0], [1.5, 1.7, 2.0]) == "measured"
    assert spec.next_role([9.0], [1.5, 1.7, 2.0, 3.0]) is None
    assert SPEC.next_role([1.0], [1.5, 1.7, 2.0]) is None
