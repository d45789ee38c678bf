"""Question 4: claims on large batches and techniques."""

import math

import pandas as pd
import pytest

from examples.claim_study import claims
from examples.records import MARGIN, seeds, swept, technique, techniques, timing_row, timing_table
from scaling.claims.accuracy import answer, best
from scaling.tables import schema
from scaling.tables.accuracy import convergence, remedies


def tables(records):
    """convergence.csv and remedies.csv of these records."""
    runs = convergence(records)
    return {"convergence": runs, "remedies": remedies(runs, MARGIN)}


def judged(records):
    return claims(answer, tables(records))


@pytest.mark.parametrize(
    ("count", "apart", "verdict"),
    # Of one seed the noise is that between the strategies, a deviation of 0.01 or 0.2, times t(1).
    [(3, 0.0, "supported"), (1, 0.014, "supported"), (1, 0.28, "unclear")],
)
def test_without_techniques_the_timed_cells_seeds_answer(count, apart, verdict):
    cells = [(1, ""), (4, "dp"), (4, "ddp")]
    timing = timing_table(*(timing_row(gpus, 128, 9.0, strategy=way) for gpus, way in cells))
    own = timing.assign(epoch=5, test_accuracy=timing["gpus"].map({1: 0.7, 4: 0.3}))
    own["test_accuracy"] += apart * (own["strategy"].eq("dp"))
    seeds = [own.assign(seed=n, test_accuracy=own["test_accuracy"] - n / 100) for n in range(count)]
    accuracy = schema.frame("accuracy", pd.concat(seeds))
    found = claims(answer, {"timing": timing, "accuracy": accuracy})
    assert found.pop("Q4.2-gap").verdict == "not measured"
    assert list(found) == ["Q4.1-plain-dp", "Q4.1-plain-ddp"]
    assert {one.verdict for one in found.values()} == {verdict}
    sentence = found["Q4.1-plain-ddp"].sentence
    assert sentence.startswith(f"Batch 512 reaches {'29.0 %' if count == 3 else '30.0 %'}")
    assert ("(1 seed; noise: of equal trainings)" in sentence) == (count == 1)


def few(*changed, end=0):
    """Records of plain SGD, a warm-up and equal updates at 128 and 512, some of them changed.

    Batch 128 has 73 % test accuracy with its best technique and 71 % with plain SGD. The best rate
    of the warm-up at batch `end` is at an end of its sweep.
    """
    names = ("none", "rate_sweep", "warmup", "equal")
    known = [
        each for each in techniques() if each["remedy"] in names and each["global_batch"] < 8192
    ]
    records = {(each["remedy"], each["global_batch"]): each for each in (*known, *changed)}
    if ("warmup", end) in records:
        records["warmup", end]["result"]["at_edge"] = True
    return list(records.values())


@pytest.mark.parametrize(
    ("accuracies", "end", "verdict", "tells"),
    [
        ((0.735, 0.74, 0.745), 0, "supported", ""),
        # As good as plain SGD at the reference batch is not enough.
        ((0.70, 0.70, 0.701), 0, "refuted", ""),
        # −1 point, −3.3 to +1.3: it contains 0, and a loss of two points as well.
        ((0.71, 0.72, 0.73), 0, "unclear", "; needs more seeds."),
        ((0.65,), 0, "unclear", "; needs more seeds."),
        # Beyond the end of a sweep a technique may only be better, and so may the reference.
        ((0.64, 0.65, 0.66), 512, "unclear", "the end of its sweep leaves it open."),
        ((0.90, 0.91, 0.92), 512, "supported", ""),
        ((0.90, 0.91, 0.92), 128, "unclear", "the end of its sweep leaves it open."),
        ((0.64, 0.65, 0.66), 128, "refuted", ""),
    ],
)
def test_gap_is_closed_only_where_the_margin_is_excluded(accuracies, end, verdict, tells):
    own = technique("warmup", 512, swept(*accuracies), scaling="sqrt", warmup_epochs=1)
    claim = judged(few(own, end=end))["Q4.2-gap-512"]
    assert claim.verdict == verdict and claim.sentence.endswith(tells)


def test_without_a_technique_that_learned_nothing_is_known():
    reference = [each for each in few() if each["global_batch"] == 128]
    failed = technique("naive", 512, seeds(None, None, None), scaling="linear", factors=[1])
    found = judged([*reference, failed])["Q4.2-gap-512"]
    assert (found.verdict, found.sentence[:12]) == ("unclear", "No technique")
    infeasible = technique("none", 2048, []) | {"status": "infeasible", "result": None}
    assert judged(few(infeasible)).keys() == judged(few()).keys()


def test_technique_that_diverged_or_failed_is_not_best():
    lacking = technique("huge", 512, []) | {"status": "oom", "message": "no room", "result": None}
    fast = technique("fast", 512, seeds(0.5, 0.6, None))
    table = tables([*techniques(), fast, lacking])["remedies"]
    rows = {(row.remedy, row.global_batch): row for row in table.itertuples()}
    assert (rows["naive", 8192].diverged_seeds, rows["fast", 512].diverged_seeds) == (3, 1)
    assert rows["fast", 512].test_accuracy == pytest.approx(0.55)
    assert [best(table, batch).remedy for batch in (512, 8192)] == ["warmup", "warmup"]
    found = rows["huge", 512]
    assert (found.status, found.message) == ("oom", "no room") and math.isnan(found.test_accuracy)


def test_the_remedy_of_a_batch_is_chosen_by_held_out_images():
    """Of two, the one that is better on the test set is not taken; without such images none is."""
    lucky = technique("lucky", 512, swept(0.95, 0.95, 0.95, held_out=0.3), decay="linear")
    lars = technique("lars", 512, swept(0.95, 0.95, 0.95), lars=0.1)
    records = [each for each in techniques() if each["remedy"] != "equal"] + [lucky, lars]
    table = tables(records)["remedies"]
    assert [best(table, 512, sgd).remedy for sgd in (True, False)] == ["warmup", "lars"]
    for each in records:
        each["result"]["runs"] = [run for run in each["result"]["runs"] if not run["held_out"]]
    assert best(tables(records)["remedies"], 512) is None
