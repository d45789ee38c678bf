"""The claims on remedies as one table of the report, from their evidence."""

import pytest

from examples import convergence_records, remedy_claims, report_tables
from examples.convergence_records import record, seeds, study, swept
from examples.remedy_claims import without
from examples.report_page import render
from scaling.report.claims import answers
from scaling.report.remedy_claims import NOT_FINITE, NOTES, OWN_END, PLAIN_END, SAME

TITLE = "The claim that a remedy helps at every global batch above the reference"
ROOT = {"scaling": "sqrt"}
WARM = {"scaling": "sqrt", "warmup_epochs": 1}


@pytest.fixture
def table(tmp_path):
    """A function from records to the table of question 4.2."""

    def made(records):
        claims = [*remedy_claims.claims(tmp_path, records).values()]
        return answers(claims, ("Q4.2",))[0].remedies

    return made


def lines(table):
    """The rows by remedy."""
    return {each.remedy.text: each for group in table.groups.values() for each in group}


def entry(table, remedy, batch):
    return lines(table)[remedy].entries[table.batches.index(batch)]


def test_each_remedy_is_a_row_with_its_gains_and_verdict_beside_what_it_is_compared_with(tmp_path):
    made = convergence_records.tables(convergence_records.timed((1, 128, 4.0), (4, 128, 1.0)))
    page = render(tmp_path, report_tables.make() | made)
    assert page.tables[TITLE][0] == ["remedy", "verdict", "512", "8192"]
    # As the claims have it: means and Welch's intervals of three seeds against three.
    up, down = "+4.00 +1.73 to +6.27", "−11.00 −13.48 to −8.52"
    assert page.rows(TITLE) == [
        ["against plain SGD at the base rate"],
        ["naive scaling linear, unswept", "✗ refuted", "+5.00 +2.73 to +7.27", down],
        [
            *("rate_sweep scaling sqrt, best of 3 rates", "✓ supported"),
            *("+10.00 +7.73 to +12.27", "+20.00 +17.73 to +22.27"),
        ],
        ["against plain SGD with its rate swept alike"],
        ["warmup scaling sqrt, warmup epochs 1, best of 3 rates", "✓ supported", up, up],
    ]
    rows = [named["id"] for tag, named in page.elements if tag == "tr" and "id" in named]
    names = ("naive", "rate_sweep", "warmup")
    assert rows == [f"claim-Q4.2-remedy-{name}" for name in names]
    # The sentences of these claims are nowhere, those of others are whole, a caveat stands once.
    assert "at equal epochs, it changes test accuracy by" not in page.text
    assert "Linear scaling taken at its word diverges" in page.text
    assert "warmup, tables/convergence.csv: options scaling sqrt, warmup epochs 1" in page.text


def test_claims_on_several_questions_stay_a_list(tmp_path):
    made = [*remedy_claims.claims(tmp_path, study()).values()]
    first, second = answers(made, ("Q4.1", "Q4.2"))
    assert first.remedies is None and second.remedies is not None
    shown = [each.claim for each in lines(second.remedies).values()]
    assert [*first.claims, *second.claims] == [each for each in made if each not in shown]
    assert not any("-remedy-" in each.id for each in second.claims)


def test_the_same_runs_are_named_instead_of_a_difference(table):
    same = record("warmup", 512, swept(0.60, 0.61, 0.62), **WARM)
    found = table([*without("warmup", 512), same])
    assert entry(found, "warmup", 512).text == "the same runs"
    assert entry(found, "warmup", 8192).text == "+4.00"
    assert NOTES[SAME] in found.notes and not any("warm up" in note for note in found.notes)
    assert NOTES[SAME] not in table(study()).notes


def test_a_warm_up_at_a_rate_that_needs_none_is_said_to_have_nothing_to_do(table):
    low = [each | {"learning_rate": 0.05 * each["factor"]} for each in swept(0.60, 0.61, 0.62)]
    others = [*without("warmup", 512)]
    others = [
        each for each in others if (each["remedy"], each["global_batch"]) != ("rate_sweep", 512)
    ]
    pair = [record(name, 512, low, **how) for name, how in (("rate_sweep", ROOT), ("warmup", WARM))]
    notes = table([*others, *pair]).notes
    assert [note for note in notes if note.endswith("nothing to warm up.")] == [
        "warmup at 512: its best rate is not above the base rate, so there is nothing to warm up."
    ]


@pytest.mark.parametrize(
    ("name", "options", "flag", "explained"),
    [
        ("warmup", WARM, OWN_END, [OWN_END]),
        # Plain SGD is a remedy beside its base rate.
        ("rate_sweep", ROOT, PLAIN_END, [OWN_END, PLAIN_END]),
    ],
)
def test_an_end_of_a_sweep_is_marked_and_explained(name, options, flag, explained, table):
    assert not entry(table(study()), "warmup", 512).flags
    runs = swept(0.60, 0.62, 0.67)
    found = table([*without(name, 512), record(name, 512, runs, at_edge=True, **options)])
    assert entry(found, "warmup", 512).flags == (flag,)
    assert entry(found, "warmup", 8192).flags == ()
    assert entry(found, name, 512).flags == (OWN_END,)
    assert [note for note in found.notes if note in NOTES.values()] == [
        NOTES[each] for each in explained
    ]


def test_a_loss_that_is_not_finite_and_a_batch_without_runs_have_no_difference(table):
    failed = record("naive", 8192, seeds(None, None, None), scaling="linear", factors=[1])
    found = table([*without("naive", 8192), failed])
    assert entry(found, "naive", 8192).text == NOT_FINITE and NOTES[NOT_FINITE] in found.notes
    fewer = table(without("naive", 8192))
    assert entry(fewer, "naive", 8192).text == "not run" and NOTES[NOT_FINITE] not in fewer.notes


def test_a_remedy_without_anything_to_compare_with_has_its_sentence(table):
    found = table(without("rate_sweep"))
    (alone,) = found.groups["not compared"]
    assert alone.remedy.text == "warmup" and alone.claim.verdict == "undecided"
    (words,) = alone.entries
    assert words.text == alone.claim.sentence and words.columns == len(found.batches) == 2


def test_few_updates_are_told_of_once(table):
    # 0.9 to the power of 10 updates.
    (told,) = (note for note in table(study()).notes if "running statistics" in note)
    assert told.startswith("The start of the batch norms’ running statistics still has a weight of")
    assert told.count("35 % after the 10 updates at 8192") == 1 and "precise" not in told
    precise = record("exact", 512, swept(0.6, 0.61, 0.63), precise_batch_norm=True, **ROOT)
    (told,) = (note for note in table([*study(), precise]).notes if "running statistics" in note)
    assert told.endswith("Remedies with precise batch norm are evaluated by other statistics.")


def test_a_study_without_remedies_has_no_table(table):
    assert table([]) is None
