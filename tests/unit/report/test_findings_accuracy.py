"""The sentences of the summary on accuracy: large batches and quantization."""

import pytest

from examples import quantization_example, report_tables
from examples.findings_study import only, study
from scaling.report import summary
from scaling.tables.schema import StudyTables


@pytest.fixture(scope="module")
def example(tmp_path_factory) -> StudyTables:
    return study(tmp_path_factory.mktemp("study"), report_tables.make())


def test_the_largest_batch_is_held_against_the_reference(example):
    # Shares fall with the fourth root of the global batch: 0.75 at 128, 0.2792 at 16384.
    found = summary.large_batch_accuracy(example).text
    assert "largest global batch with an accuracy, 16384" in found
    assert "test accuracy is 27.9 %, against 75.0 % at batch 128 on one GPU: −47.08" in found
    assert "3 infeasible" in found


def test_a_single_seed_has_no_spread_to_judge_by(tmp_path):
    found = summary.large_batch_accuracy(study(tmp_path, only(report_tables.make(), seed=0)))
    assert "with fewer than two seeds, its spread is unknown" in found.text


def test_quantization_is_the_mean_over_the_seeds(example):
    found = summary.quantization(example).text
    assert found == (
        "Int8 quantization (weights+activations+bias) changes test accuracy by −0.20 points on "
        "average over 3 seeds (−0.30 to −0.10 by seed), with no standard error in this study’s "
        "records; 91.0\u00a0% of the images keep their class."
    )


def test_quantization_has_its_paired_error_and_what_integers_say(tmp_path):
    tables = report_tables.make() | quantization_example.make()
    found = summary.quantization(study(tmp_path, tables)).text
    assert found == (
        "Int8 quantization (weights+activations+bias) changes test accuracy by −0.50 ± 0.09 points "
        "on average over 3 seeds (−0.60 to −0.40 by seed), more than two standard errors; "
        "96.5\u00a0% of the images keep their class. Of 300,000 logits, 0 differ from those "
        "computed in integers alone."
    )


def test_a_difference_of_less_than_two_standard_errors_is_within_noise(tmp_path):
    tables = report_tables.make() | quantization_example.make()
    stages = tables["quantization"]
    tables["quantization"] = stages[stages["stage"].isin(["float32", "weights"])]
    found = summary.quantization(study(tmp_path, tables)).text
    assert "(−0.10 to +0.10 by seed), within noise (two standard errors);" in found
