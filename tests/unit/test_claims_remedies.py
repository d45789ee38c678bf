"""Claims on question 4: what supports them, what contradicts them, what leaves them open."""

import json

import convergence_records
import pytest
import report_tables
from convergence_records import record, seeds, study
from report_page import render

from scaling import result_tables, tables
from scaling.claims import claim, large_batches, remedies, time_to_accuracy
from scaling.claims.claim_tables import ClaimTables
from scaling.convergence import remedy_table, run_tables
from scaling.convergence.time_to_accuracy import time_to_accuracy as table_of_times
from unit.test_convergence_tables import timed


def read_back(folder, name, table):
    """The table as a script reads it from its file."""
    tables.write(table, folder / f"{name}.csv")
    return result_tables.read(name, folder / f"{name}.csv")


@pytest.fixture
def claims(tmp_path):
    """A function from records and timed cells to the claims by id."""

    def make(records, cells=(), margin=0.22):
        runs, epochs = run_tables.runs(records), run_tables.epochs(records)
        found = {
            "convergence": runs,
            "loss_curves": run_tables.curves(records),
            "remedies": remedy_table.remedies(runs),
            "time_to_accuracy": table_of_times(runs, epochs, timed(*cells), margin),
        }
        known = ClaimTables("demo", {n: read_back(tmp_path, n, t) for n, t in found.items()})
        made = [
            each
            for module in (large_batches, remedies, time_to_accuracy)
            for each in module.claims(known)
        ]
        claim.write(tmp_path / "claims.json", "demo", made)
        assert json.loads((tmp_path / "claims.json").read_text())["study"] == "demo"
        assert len({each.id for each in made}) == len(made)
        return {each.id: each for each in made}

    return make


def without(name, *batches):
    return [
        each
        for each in study()
        if each["remedy"] != name or (batches and each["global_batch"] not in batches)
    ]


def test_a_study_without_runs_of_remedies_claims_nothing(claims):
    found = claims([])
    assert {each.verdict for each in found.values()} == {"undecided"}
    assert "no runs of remedies" in found["Q4.2"].sentence


def test_the_largest_batch_has_learned_less(claims):
    found = claims(study())["Q4.1-largest"]
    assert found.verdict == "supported"
    assert "a global batch of 8192 (4 GPUs × 2048) has made 10 updates" in found.sentence
    assert "accuracy of 21.0 % (20.0–22.0)" in found.sentence
    figures = found.evidence[0].figures
    assert figures["test_accuracy_difference"] == pytest.approx(-0.5)
    assert (figures["seeds"], figures["reference_seeds"]) == (3, 3)


def test_a_largest_batch_that_learned_more_refutes_it(claims):
    records = [*without("none", 8192), record("none", 8192, seeds(0.8, 0.81, 0.82), factors=[1])]
    found = claims(records)
    assert found["Q4.1-largest"].verdict == "refuted"
    assert found["Q4.1-every-batch"].verdict == "refuted"
    assert "a larger global batch has learned more" in found["Q4.1-every-batch"].sentence


def test_one_seed_leaves_it_undecided(claims):
    records = [*without("none", 8192), record("none", 8192, seeds(0.2), factors=[1])]
    found = claims(records)
    assert found["Q4.1-largest"].verdict == "undecided"
    assert "no interval" in found["Q4.1-largest"].sentence
    assert found["Q4.1-every-batch"].verdict == "undecided"


def test_every_batch_is_told_with_its_accuracies(claims):
    found = claims(study())["Q4.1-every-batch"]
    assert found.verdict == "supported"
    assert "512: 61.0 % (60.0–62.0) training, 51.0 % (50.0–52.0) test" in found.sentence


def test_the_rule_at_its_word_diverges_with_few_updates(claims):
    found = claims(study())["Q4.2-rule"]
    assert found.verdict == "supported"
    assert "at a global batch of 8192 it asks for a rate of" in found.sentence
    assert "are 10 updates there (5 an epoch)" in found.sentence
    assert "It still learns at 512." in found.sentence
    assert found.sentence.endswith(
        "Its loss is 2.50 at first, at most 2.50 (update 4) and 1.50 at last."
    )
    assert found.evidence[1].figures["last_loss"] == 1.5


def test_a_rule_that_never_diverges_refutes_it_and_some_seeds_leave_it_open(claims):
    fine = record("naive", 8192, seeds(0.3, 0.3, 0.3), scaling="linear", factors=[1])
    found = claims([*without("naive", 8192), fine])["Q4.2-rule"]
    assert found.verdict == "refuted" and "does not diverge" in found.sentence
    mixed = record("naive", 8192, seeds(0.3, 0.3, None), scaling="linear", factors=[1])
    found = claims([*without("naive", 8192), mixed])["Q4.2-rule"]
    assert found.verdict == "undecided" and "1 of 3 seeds diverged" in found.sentence
    assert claims(without("naive"))["Q4.2-rule"].verdict == "undecided"


def test_a_remedy_helps_hurts_or_leaves_it_open(claims):
    found = claims(study())
    assert found["Q4.2-remedy-linear"].verdict == "supported"
    assert "+10.00 points" in found["Q4.2-remedy-linear"].sentence
    assert found["Q4.2-remedy-naive"].verdict == "refuted"
    assert "hurts somewhere" in found["Q4.2-remedy-naive"].sentence
    noisy = record("linear", 512, seeds(0.3, 0.5, 0.8), scaling="linear")
    found = claims([*without("linear", 512), noisy])["Q4.2-remedy-linear"]
    assert found.verdict == "undecided"
    # Runs of more epochs are no remedy at equal epochs.
    assert "Q4.2-remedy-none" not in claims(study())


def test_the_gap_that_is_left_is_the_best_remedys(claims):
    found = claims([each for each in study() if each["remedy"] != "equal"])["Q4.2-gap-512"]
    assert found.verdict == "supported"
    assert "linear at a rate of 0.1, stays behind batch 128" in found.sentence
    assert found.evidence[0].figures["remedy"] == "linear"
    better = record("great", 512, seeds(0.9, 0.91, 0.92), lars=0.1)
    found = claims([*study(), better])["Q4.2-gap-512"]
    assert found.verdict == "refuted" and "is ahead of batch 128" in found.sentence


def test_equal_updates_close_the_gap_where_there_are_as_many(claims):
    found = claims(study())["Q4.2-equal-updates"]
    assert found.verdict == "supported"
    assert "512 has 75.0 % (74.0–76.0) after 2 epochs, +4.00 points" in found.sentence
    assert "8192 got 8 and reached 51.0 % (50.0–52.0)" in found.sentence
    behind = record("equal", 512, seeds(0.4, 0.41, 0.42), equal_updates=True)
    assert claims([*without("equal", 512), behind])["Q4.2-equal-updates"].verdict == "refuted"
    assert claims(without("equal"))["Q4.2-equal-updates"].verdict == "undecided"


def test_the_speedup_left_at_equal_accuracy_is_less_than_that_of_an_epoch(claims):
    cells = [(1, 128, 4.0), (4, 128, 1.0), (4, 2048, 0.5)]
    slow = [each for each in study() if each["remedy"] not in ("equal",)]
    found = claims(slow, cells)["Q4.2-time-tuned-ddp"]
    assert found.verdict == "supported"
    assert "4.00× per epoch 2.00× is left" in found.sentence
    assert "never reached, an infinite time, at 8192" in found.sentence
    assert found.evidence[0].figures["seconds"] == 2.0


def test_an_accuracy_out_of_reach_takes_an_infinite_time(claims):
    cells = [(1, 128, 4.0), (4, 2048, 0.5)]
    found = claims(study(), cells, margin=0.05)["Q4.2-time-tuned-ddp"]
    assert found.verdict == "supported" and "is infinite on 4 GPUs" in found.sentence


def test_a_remedy_that_needs_no_more_epochs_refutes_the_loss(claims):
    cells = [(1, 128, 4.0), (4, 128, 1.0)]
    found = claims(study(), cells, margin=0.22)["Q4.2-time-tuned-ddp"]
    assert found.verdict == "undecided" and "4.00× is left" in found.sentence
    quick = record("quick", 512, seeds(0.95, 0.95, 0.95), lars=0.1)
    found = claims([*study(), quick], cells, margin=0.02)["Q4.2-time-tuned-ddp"]
    assert found.verdict == "refuted"


def test_without_remedies_the_timed_cells_seeds_answer_for_every_batch():
    known = report_tables.make()
    found = large_batches.claims(
        ClaimTables(
            report_tables.STUDY, {k: v for k, v in known.items() if k in ("timing", "accuracy")}
        )
    )
    assert found and all(each.id.startswith("Q4.1-") for each in found)


def test_the_report_has_the_remedies_and_says_when_there_are_none(tmp_path):
    known = report_tables.make()
    assert "The study has no runs of remedies." in render(tmp_path / "none", known).text
    made = convergence_records.tables(timed((1, 128, 4.0), (4, 128, 1.0)))
    page = render(tmp_path / "some", known | made)
    rows = page.rows("Global batch 8192: 4 × 2048")
    naive = next(each for each in rows if each[0].startswith("naive"))
    assert naive[4] == "3 3 diverged" and naive[-1].startswith("−61.00 ")
    base = page.rows("The base rate, whatever the batch")
    assert [each[0] for each in base[-3:]] == ["128", "512", "8192"]
    assert page.rows("tuned, ddp")[-1][-1] == "4.00×"
