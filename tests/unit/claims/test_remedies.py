"""Claims on question 4: what supports them, what contradicts them, what leaves them open."""

import pytest

from examples import convergence_records, remedy_claims, report_tables
from examples.convergence_records import record, seeds, study, swept, timed
from examples.remedy_claims import without
from examples.report_page import render
from scaling.claims import large_batches
from scaling.claims.claim_tables import ClaimTables
from scaling.claims.running_statistics import MOMENTUM
from scaling.models.resnet import ResNet18

ROOT = {"scaling": "sqrt"}
WARM = {"scaling": "sqrt", "warmup_epochs": 1}


@pytest.fixture
def claims(tmp_path):
    """A function from records to the claims by id."""
    return lambda records: remedy_claims.claims(tmp_path, records)


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


def test_a_loss_that_is_not_finite_is_told_with_its_update_and_what_was_planned(claims):
    ended = [
        each | {"epochs": each["epochs"][:1], "updates": 5} for each in seeds(None, None, None)
    ]
    naive = record("naive", 8192, ended, scaling="linear", factors=[1])
    found = claims([*without("naive", 8192), naive])["Q4.2-rule"]
    assert found.verdict == "supported"
    assert "2 epochs are 10 updates there" in found.sentence
    assert "a loss that is not finite, from update 7 on, in 3 of 3 seeds" in found.sentence
    assert found.evidence[0].figures["updates"] == 5


def test_a_swept_remedy_is_judged_against_swept_plain_sgd(claims):
    found = claims(study())["Q4.2-remedy-warmup"]
    assert found.verdict == "supported"
    assert "against plain SGD with its rate swept alike" in found.sentence
    assert "+4.00 points (95 % interval +1.73 to +6.27) at 512" in found.sentence
    assert "best of 3 rates" in found.sentence
    # The name says nothing: it is the options, and how many rates were tried.
    renamed = [each | {"remedy": each["remedy"].replace("rate_sweep", "any")} for each in study()]
    assert claims(renamed)["Q4.2-remedy-warmup"].sentence == found.sentence
    lacking = claims(without("rate_sweep"))["Q4.2-remedy-warmup"]
    assert lacking.verdict == "undecided" and "cannot be said" in lacking.sentence


def test_a_rule_at_its_word_and_the_sweep_itself_are_judged_against_the_base_rate(claims):
    found = claims(study())
    assert "against plain SGD at the base rate" in found["Q4.2-remedy-naive"].sentence
    assert found["Q4.2-remedy-naive"].verdict == "refuted"
    assert "unswept) hurts somewhere" in found["Q4.2-remedy-naive"].sentence
    assert found["Q4.2-remedy-rate_sweep"].verdict == "supported"
    assert "+20.00 points" in found["Q4.2-remedy-rate_sweep"].sentence
    # Neither the base rate itself nor runs of more epochs are remedies at equal epochs.
    assert not {"Q4.2-remedy-none", "Q4.2-remedy-equal"} & set(found)


def test_a_noisy_remedy_is_left_open(claims):
    noisy = record("warmup", 512, swept(0.45, 0.65, 0.95), **WARM)
    found = claims([*without("warmup", 512), noisy])["Q4.2-remedy-warmup"]
    assert found.verdict == "undecided" and "is not shown to help everywhere" in found.sentence


def test_one_batch_refutes_only_beyond_what_several_would_show_by_chance(claims):
    """−2.3 points at 512 is below 0 at 95 %, but not at the 97.5 % of one of two batches."""
    slightly = record("warmup", 512, swept(0.577, 0.587, 0.597), **WARM)
    found = claims([*without("warmup", 512), slightly])["Q4.2-remedy-warmup"]
    figures = found.evidence[0].figures
    assert figures["confidence_to_refute"] == 0.975
    assert figures["gain_at_512_high"] < 0 < figures["gain_at_512_high_to_refute"]
    assert found.verdict == "undecided"
    alone = claims(
        [each for each in [*without("warmup", 512), slightly] if each["global_batch"] != 8192]
    )["Q4.2-remedy-warmup"]
    assert alone.verdict == "refuted"
    clearly = record("warmup", 512, swept(0.50, 0.51, 0.52), **WARM)
    assert claims([*without("warmup", 512), clearly])["Q4.2-remedy-warmup"].verdict == "refuted"


@pytest.mark.parametrize(
    ("name", "accuracy", "inside", "at_end"),
    [
        # The remedy may be better beyond, so it is not shown to hurt, but it may help already.
        ("warmup", 0.8, "supported", "supported"),
        ("warmup", 0.1, "refuted", "undecided"),
        # Plain SGD may be better beyond, so the remedy is not shown to help, but may hurt already.
        ("rate_sweep", 0.1, "supported", "undecided"),
        ("rate_sweep", 0.8, "refuted", "refuted"),
    ],
)
def test_a_rate_beyond_the_end_of_a_sweep_may_only_be_better(
    name, accuracy, inside, at_end, claims
):
    options = {"warmup": WARM, "rate_sweep": ROOT}[name]
    runs = swept(accuracy, accuracy + 0.01, accuracy + 0.02)
    found = claims([*without(name, 512), record(name, 512, runs, **options)])
    assert found["Q4.2-remedy-warmup"].verdict == inside
    found = claims([*without(name, 512), record(name, 512, runs, at_edge=True, **options)])
    assert found["Q4.2-remedy-warmup"].verdict == at_end
    whose = {"warmup": "the remedy", "rate_sweep": "plain SGD"}[name]
    told = f"At 512 the best rate of {whose} is at an end of its sweep"
    assert told in found["Q4.2-remedy-warmup"].sentence


def test_a_remedy_with_the_very_runs_of_plain_sgd_is_not_put_to_the_test(claims):
    """At rates of 0.05, below the base rate, a warm-up has nothing to do."""
    low = {
        batch: [each | {"learning_rate": 0.05 * each["factor"]} for each in swept(*accuracies)]
        for batch, accuracies in {512: (0.60, 0.61, 0.62), 8192: (0.40, 0.41, 0.42)}.items()
    }

    def beside_plain(**options):
        others = [
            each
            for each in study()
            if each["remedy"] not in ("rate_sweep", "warmup") or each["global_batch"] == 128
        ]
        plain = [record("rate_sweep", batch, runs, **ROOT) for batch, runs in low.items()]
        same = [record("warmup", batch, runs, **options) for batch, runs in low.items()]
        return claims([*others, *plain, *same])["Q4.2-remedy-warmup"]

    found = beside_plain(**WARM)
    assert found.verdict == "undecided" and "interval" not in found.sentence
    assert "is not put to the test at these rates" in found.sentence
    reason = "its best rate is not above the base rate of 0.1, so there is nothing to warm up"
    assert f"the same runs at 512, 8192: {reason}." in found.sentence
    # Another option gives no such reason.
    assert beside_plain(label_smoothing=0.1, **ROOT).sentence.endswith(
        "it has the same runs at 512, 8192."
    )


def test_the_same_runs_at_one_batch_neither_help_nor_hurt_there(claims):
    """Nor is there a reason where the rate, here 0.2, is above the base rate."""
    same = record("warmup", 512, swept(0.60, 0.61, 0.62), **WARM)
    found = claims([*without("warmup", 512), same])["Q4.2-remedy-warmup"]
    assert "by +4.00 points (95 % interval +1.73 to +6.27) at 8192." in found.sentence
    assert "It has the same runs at 512." in found.sentence
    assert found.verdict == "undecided"
    assert found.evidence[0].figures["confidence_to_refute"] == pytest.approx(0.95)


def test_the_same_training_evaluated_in_two_ways_is_compared_seed_by_seed(claims):
    """+4, +5 and +6 points: Student's 4.30265 · 1 / sqrt(3) is half the interval."""

    def lifted(accuracies):
        runs = swept(*accuracies)
        for each, gain in zip(runs[-3:], (0.04, 0.05, 0.06), strict=True):
            each["epochs"][-1]["test_accuracy"] += gain
        return runs

    scattered = {512: (0.50, 0.61, 0.72), 8192: (0.30, 0.41, 0.52)}
    plain = [record("rate_sweep", batch, swept(*each), **ROOT) for batch, each in scattered.items()]
    precise = [
        record("precise", batch, lifted(each), precise_batch_norm=True, **ROOT)
        for batch, each in scattered.items()
    ]
    records = [*without("rate_sweep", *scattered), *plain, *precise]
    found = claims(records)["Q4.2-remedy-precise"]
    assert found.verdict == "supported"
    assert "+5.00 points (95 % interval +2.52 to +7.48) at 512" in found.sentence


def test_few_updates_leave_the_running_statistics_near_their_start(claims):
    found = claims(study())
    # 0.9 to the power of 10 updates.
    assert "a weight of 35 %" in found["Q4.1-largest"].sentence
    assert "a weight of 35 %" in found["Q4.2-remedy-warmup"].sentence
    assert "a weight of 35 %" in found["Q4.2-gap-8192"].sentence
    precise = record("warmup", 8192, swept(0.44, 0.45, 0.46), precise_batch_norm=True, **WARM)
    others = claims([*without("warmup", 8192), precise])
    assert "a weight of" not in others["Q4.2-gap-8192"].sentence
    many = [each for each in study() if each["global_batch"] != 8192]
    for each in many:
        for run in each["result"]["runs"]:
            run["planned_updates"] = 22
    assert "a weight of" not in claims(many)["Q4.1-largest"].sentence
    assert ResNet18(1, 10).stem[1].momentum == MOMENTUM


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
    assert naive[2] == "10 2 epochs 3 seeds 3 diverged" and naive[-1].startswith("−61.00 ")
    alike = next(each for each in page.rows("Global batch 128: 1 × 128") if "naive" in each[0])
    assert alike[3:] == ["the runs of “none”"]
    reference = next(each for each in page.rows("Global batch 128: 1 × 128") if "sweep" in each[0])
    assert reference[3:] == ["the runs of “none”", "reference"]
    base = page.rows("The base rate, whatever the batch")
    assert [each[0] for each in base[-3:]] == ["128", "512", "8192"]
    assert base[0][-1] == "the reference’s runs"
    assert page.rows("tuned, ddp")[-1][-1] == "4.00×"


def test_a_cell_at_whose_batch_every_remedy_diverged_is_in_the_report_as_never(tmp_path):
    others = [each for each in study() if each["global_batch"] != 512]
    failed = record("naive", 512, seeds(None, None, None), scaling="linear", factors=[1])
    timing = timed((1, 128, 4.0), (4, 128, 1.0))
    made = convergence_records.tables(timing, [*others, failed])
    row = render(tmp_path, report_tables.make() | made).rows("tuned, ddp")[-1]
    assert (row[0], row[2], row[4], row[6]) == ("512", "none", "never", "infinite")
