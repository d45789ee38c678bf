"""Parts of a study that are switched off, or stand alone."""

import pytest

from examples.configurations import changed
from scaling.config import config, stored
from scaling.config.keys import PARTS
from scaling.core.errors import UserError

ALONE = {
    "scaling": ["runs", "limits"],
    "accuracy": ["convergence", "full_trainings"],
    "proofs": ["synchronization"],
    "int8": ["quantization"],
}


@pytest.mark.parametrize(
    ("off", "path", "value"),
    [
        ("scaling", "recipes.plain.strategies", ["dp"]),
        ("accuracy", "convergence.recipes", ["tuned"] * 2),
        ("int8", "quantization.variants", [{"name": "float32"}]),
    ],
)
def test_what_is_wrong_with_a_part_that_is_off_is_not_looked_at(off, path, value):
    document = changed((path, value))
    with pytest.raises(UserError):
        config.check(document)
    document["parts"] = [part for part in PARTS if part != off]
    config.check(document)


@pytest.mark.parametrize("part", PARTS)
def test_a_part_alone_has_no_records_of_others(part):
    document = changed(("parts", [part]), ("time_to_accuracy.gpus", [1]))
    config.leave_out(document)
    found = stored.records(document)
    assert [kind for kind in found if found[kind]] == ALONE[part]
    config.check(document)


@pytest.mark.parametrize(
    ("parts", "own", "gpus"),
    [
        (["accuracy"], [], [1]),
        (["accuracy"], [1, 4], [1, 4]),
        (["accuracy", "proofs"], [1, 4], [1, 2]),
    ],
)
def test_a_study_of_accuracy_alone_asks_for_the_gpus_of_its_trainings(parts, own, gpus):
    document = changed(("parts", parts), ("time_to_accuracy.gpus", own))
    assert config.asked(document)["grid"]["gpus"] == gpus
