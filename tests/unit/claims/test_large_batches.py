"""Question 4.1: claims on the accuracy of large batches at one rate."""

import pytest

from examples import remedy_claims, report_cells
from examples.convergence_records import record, seeds
from scaling.claims import large_batches
from scaling.claims.claim_tables import ClaimTables


def largest(*accuracies):
    """The claim where plain SGD ends like this at 8192, and at 128 with 70 to 72 %."""
    own = record("none", 8192, seeds(*accuracies), factors=[1])
    records = [record("none", 128, seeds(0.70, 0.71, 0.72), factors=[1]), own]
    return remedy_claims.claims(large_batches.claims, records)["Q4.1-largest"]


@pytest.mark.parametrize(
    ("accuracies", "verdict"),
    [((0.2, 0.21, 0.22), "supported"), ((0.8, 0.81, 0.82), "refuted"), ((0.2,), "unclear")],
)
def test_seeds_below_show_it_those_above_refute_it_and_one_decides_nothing(accuracies, verdict):
    assert largest(*accuracies).verdict == verdict


@pytest.mark.parametrize(
    ("count", "apart", "verdict"),
    # Of one seed the noise is that between the strategies: a deviation of 0.01 or 0.2, and t(13).
    [(3, 0.0, "supported"), (1, 0.014, "supported"), (1, 0.28, "unclear")],
)
def test_without_techniques_the_timed_cells_seeds_answer(count, apart, verdict):
    timing = report_cells.cells(missing=False)
    accuracy = report_cells.accuracy(timing)
    other = accuracy["strategy"].eq("dp") & accuracy["gpus"].gt(1)
    accuracy["test_accuracy"] += apart * other
    tables = {"timing": timing, "accuracy": accuracy[accuracy["seed"] < count]}
    found = large_batches.claims(ClaimTables(report_cells.STUDY, tables))
    assert [one.configuration for one in found] == ["plain/dp", "plain/ddp", "fast/ddp"]
    assert {one.verdict for one in found} == {verdict}
    # 0.1 + (128 / 8192) ** 0.25 · (0.68 − 0.01 for each seed) − 0.02.
    figures = found[1].evidence[0].figures
    mean = 0.68 - 0.01 * (count - 1) / 2
    assert figures["large_test_accuracy"] == pytest.approx(0.08 + mean / 8**0.5)
    assert ("(1 seed; noise: of trainings alike)" in found[1].sentence) == (count == 1)
