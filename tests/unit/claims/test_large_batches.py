"""Claims on loss and accuracy of large batches at one rate, and on what few updates do to them."""

import pytest

from examples import remedy_claims, report_tables
from examples.convergence_records import record, seeds, study, swept
from examples.remedy_claims import without
from scaling.claims import large_batches, techniques
from scaling.claims.claim_tables import ClaimTables
from scaling.models.resnet import ResNet18


@pytest.fixture
def claims(tmp_path):
    """A function from records to the claims by id."""
    return lambda records: remedy_claims.claims(tmp_path, records)


def test_a_study_without_runs_of_techniques_claims_nothing(claims):
    found = claims([])
    assert {each.verdict for each in found.values()} == {"undecided"}
    assert set(found) == {"Q4.1", "Q4.2", "Q4.2-time"}


def test_the_largest_batch_has_learned_less(claims):
    found = claims(study())["Q4.1-largest"]
    assert found.verdict == "supported"
    figures = found.evidence[0].figures
    assert figures["test_accuracy_difference"] == pytest.approx(-0.5)
    assert (figures["largest_global_batch"], figures["updates"]) == (8192, 10)
    assert (figures["seeds"], figures["reference_seeds"]) == (3, 3)


@pytest.mark.parametrize(
    ("accuracies", "verdict"), [((0.8, 0.81, 0.82), "refuted"), ((0.2,), "undecided")]
)
def test_seeds_above_refute_it_and_one_seed_leaves_it_undecided(claims, accuracies, verdict):
    largest = record("none", 8192, seeds(*accuracies), factors=[1])
    found = claims([*without("none", 8192), largest])
    assert found["Q4.1-largest"].verdict == found["Q4.1-every-batch"].verdict == verdict


def test_every_batch_is_told_with_its_accuracy(claims):
    found = claims(study())["Q4.1-every-batch"]
    assert found.verdict == "supported"
    assert found.evidence[0].figures["train_accuracy_at_512"] == pytest.approx(0.61)


def test_without_techniques_the_timed_cells_seeds_answer():
    known = report_tables.make()
    tables = {name: known[name] for name in ("timing", "accuracy")}
    found = large_batches.claims(ClaimTables(report_tables.STUDY, tables))
    assert found and all(each.id.startswith("Q4.1-") for each in found)


def test_a_weight_of_the_start_of_the_statistics_is_that_of_the_models_batch_norms():
    assert ResNet18(1, 10).stem[1].momentum == techniques.MOMENTUM
    assert techniques.weight_of_start(10) == pytest.approx(0.9**10)
    assert techniques.weight_of_start(22) == 0  # 0.098


@pytest.mark.parametrize(
    ("accuracies", "verdict"),
    [
        ((0.44, 0.45, 0.46), "supported"),
        ((0.36, 0.37, 0.38), "refuted"),
        ((0.31, 0.45, 0.56), "undecided"),
    ],
)
def test_statistics_computed_anew_tell_what_their_start_does(claims, accuracies, verdict):
    """Plain SGD has 61 % at 512 and 41 % at 8192; 10 updates are few at both."""
    options = {"scaling": "sqrt", "precise_batch_norm": True}
    precise = [
        record("precise", 512, swept(0.66, 0.67, 0.68), **options),
        record("precise", 8192, swept(*accuracies), **options),
    ]
    found = claims([*study(), *precise])["Q4.2-running-statistics"]
    assert found.verdict == verdict
    figures = found.evidence[0].figures
    assert figures["confidence_to_refute"] == 0.975
    assert figures["gain_at_512_difference"] == pytest.approx(0.06)
    assert figures["weight_of_start_at_8192"] == pytest.approx(0.9**10)


def test_nothing_is_said_of_statistics_after_many_updates_or_at_other_rates(claims):
    assert claims(study())["Q4.2-running-statistics"].verdict == "undecided"
    options = {"scaling": "sqrt", "precise_batch_norm": True}
    other = [each | {"learning_rate": 0.05} for each in swept(0.66, 0.67, 0.68)]
    precise = [record("precise", batch, other, **options) for batch in (512, 8192)]
    assert not claims([*study(), *precise])["Q4.2-running-statistics"].evidence[0].figures
    many = study()
    for each in many:
        for run in each["result"]["runs"]:
            run["planned_updates"] = 22
    found = claims(many)["Q4.2-running-statistics"]
    assert found.verdict == "undecided" and "cannot be said: at no" in found.sentence
