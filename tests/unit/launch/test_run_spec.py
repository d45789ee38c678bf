"""A run's parameters, checked before a process starts."""

from dataclasses import replace
from pathlib import Path

import pytest

import train_single
from scaling.core.errors import UserError
from scaling.core.grid import Cell
from scaling.core.records.run import RUN
from scaling.core.statistics import drift
from scaling.launch import supervisor
from scaling.launch.run_spec import RunSpec

SPEC = RunSpec(device="cpu")
STUDY = Path(__file__).parents[3] / "studies/h100x2"


def changed(**options):
    return SPEC.model_copy(update=options)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (
            changed(engine="fast"),
            "'fast' is no engine; choose one of command, eager, resident",
        ),
        (
            changed(recipe_options={"workers": 2}),
            "--recipe-options is wrong: --recipe-options has the unknown key workers, perhaps "
            "loader_workers (allowed: loader_workers, bucket_cap_mb, gradient_as_bucket_view, "
            "static_graph, bf16_compression, powersgd_rank); --recipe-options lacks loader_workers",
        ),
    ],
)
def test_names_that_are_not_known_are_refused(spec, message):
    with pytest.raises(UserError) as caught:
        spec.resolved()
    assert str(caught.value) == message


def test_a_batch_that_does_not_divide_into_micro_batches_is_infeasible():
    reason = supervisor.infeasible_reason(changed(micro_batches=3), train_images=1000)
    assert reason == "a batch of 128 does not divide into 3 parts"


def test_the_digest_follows_every_parameter_and_the_cell():
    others = [changed(momentum=0.8), changed(cell=replace(SPEC.cell, seed=1))]
    assert len({spec.digest() for spec in (SPEC, *others)}) == 3


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
def test_epochs_have_settled_where_the_last_take_as_long_as_the_first(seconds, change, settled):
    assert drift(seconds) == (pytest.approx(change), settled)


def test_epochs_go_on_until_both_their_number_and_their_seconds_suffice():
    spec = changed(warmup_seconds=2, measured_seconds=5, max_measured_seconds=8)
    assert spec.next_role([1.5], []) == "warmup"
    assert spec.next_role([1.5, 1.5], []) == "measured"
    assert spec.next_role([9.0], [4.0, 4.0]) == "measured"  # one more: at least 3
    assert spec.next_role([9.0], [1.0, 1.0, 1.0]) == "measured"
    assert spec.next_role([9.0], [1.7, 1.7, 1.7]) is None
    assert spec.next_role([9.0], [1.5, 1.7, 2.0]) == "measured"
    assert spec.next_role([9.0], [1.5, 1.7, 2.0, 3.0]) is None
    assert SPEC.next_role([1.0], [1.5, 1.7, 2.0]) is None


def test_the_same_measurement_stands_under_both_strategies(tmp_path):
    measured = STUDY / Cell("plain", "ddp", 1, 128, 0).record_path(Path("runs"))
    output = tmp_path / "dp" / "run.json"
    train_single.main(["--record", str(measured), "--strategy", "dp", "--output", str(output)])
    record, shared = RUN.read(measured), RUN.read(output)
    assert shared["cell"] == {**record["cell"], "strategy": "dp"}
    assert (shared["measured_as"], shared["epochs"]) == ("ddp", record["epochs"])
