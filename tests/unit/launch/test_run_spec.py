"""A run's parameters, checked before a process starts."""

from dataclasses import replace

import pytest

from scaling.core.errors import UserError
from scaling.core.grid import Cell
from scaling.launch import supervisor
from scaling.launch.run_spec import RunSpec

SPEC = RunSpec(device="cpu")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (RunSpec(Cell("fast", "ddp", 1, 8, 0)), "'fast' is no recipe; choose one of course, tuned"),
        (
            RunSpec(Cell("course", "zero", 1, 8, 0)),
            "'zero' is no strategy; choose one of ddp, dp, fsdp, zero1",
        ),
        (
            replace(SPEC, recipe_options={"workers": 2}),
            "--recipe-options is wrong: --recipe-options has the unknown key workers, perhaps "
            "loader_workers (allowed: loader_workers); --recipe-options lacks loader_workers",
        ),
    ],
)
def test_names_that_are_not_known_are_refused(spec, message):
    with pytest.raises(UserError) as caught:
        spec.resolved()
    assert str(caught.value) == message


def test_a_batch_that_does_not_divide_into_micro_batches_is_infeasible():
    reason = supervisor.infeasible_reason(replace(SPEC, micro_batches=3), train_images=1000)
    assert reason == "a batch of 128 does not divide into 3 parts"


def test_the_digest_follows_every_parameter_and_the_cell():
    others = [replace(SPEC, momentum=0.8), replace(SPEC, cell=replace(SPEC.cell, seed=1))]
    assert len({spec.digest() for spec in (SPEC, *others)}) == 3
    assert SPEC.digest() == RunSpec(device="cpu").digest()
