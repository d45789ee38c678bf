"""Parts of a study that are switched off, or stand alone."""

from contextlib import nullcontext

import pytest

from examples.configurations import changed
from scaling.config import config, stored
from scaling.config.keys import PARTS
from scaling.core.errors import UserError


@pytest.mark.parametrize("off", PARTS)
def test_what_is_wrong_with_a_part_that_is_off_is_not_looked_at(off):
    wrong = {
        "scaling": ("recipes.plain.strategies", ["dp"]),
        "accuracy": ("convergence.recipes", ["tuned"] * 2),
        "proofs": ("synchronization.seeds", []),
        "int8": ("quantization.histograms", "nothing"),
    }
    document = changed(wrong[off])
    with pytest.raises(UserError) if off != "proofs" else nullcontext():
        config.check(document)
    document["parts"] = [part for part in PARTS if part != off]
    config.check(document)


def test_a_part_alone_has_no_records_of_others():
    kinds = {
        "scaling": ["runs", "limits"],
        "accuracy": ["convergence", "full_trainings"],
        "proofs": ["synchronization"],
        "int8": ["quantization"],
    }
    for part in PARTS:
        document = changed(("parts", [part]), ("time_to_accuracy.gpus", [1]))
        config.leave_out(document)
        found = stored.records(document)
        assert [kind for kind in found if found[kind]] == kinds[part]
        config.check(document)


def test_a_study_of_accuracy_alone_asks_for_the_gpus_of_its_trainings():
    for parts, own, gpus in (
        (["accuracy"], [], [1]),
        (["accuracy"], [1, 4], [1, 4]),
        (["accuracy", "proofs"], [1, 4], [1, 2]),
    ):
        document = changed(("parts", parts), ("time_to_accuracy.gpus", own))
        assert config.asked(document)["grid"]["gpus"] == gpus
