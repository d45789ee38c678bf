"""The tables of techniques for large batches: their verdicts, their figures, their times."""

import pytest

from examples import convergence_records, report_tables
from examples.convergence_records import MARGIN, record, seeds, study, swept, timed
from examples.remedy_claims import without
from examples.report_page import render
from scaling.report.claims import NOT_FINITE, NOTES, OWN_END, PLAIN_END, SAME, technique_tables
from scaling.tables.experiments.convergence import runs
from scaling.tables.experiments.remedies import remedies

ROOT = {"scaling": "sqrt"}
WARM = {"scaling": "sqrt", "warmup_epochs": 1}


def lines(records):
    """The cells at 512 and 8192 by technique, and the notes."""
    tables = technique_tables(remedies(runs(records), MARGIN))
    rows = {line[0].text: line[2:] for table in tables for line in table.rows}
    return rows, [note for table in tables for note in table.notes]


def test_each_technique_is_a_row_with_its_gains_and_verdict(tmp_path):
    made = convergence_records.tables(timed((1, 128, 4.0), (4, 128, 1.0)))
    page = render(tmp_path, report_tables.make() | made)
    title = "Gain in test accuracy against plain SGD {}, percentage points, by global batch"
    base, alike = title.format("at the base rate"), title.format("with its rate swept alike")
    assert page.tables[base][0] == ["remedy", "verdict", "512", "8192"]
    up, down = "+4.00 +1.73 to +6.27", "−11.00 −13.48 to −8.52"
    assert page.rows(base) == [
        ["naive scaling linear, unswept", "✗ refuted", "+5.00 +2.73 to +7.27", down],
        [
            *("rate_sweep scaling sqrt, best of 3 rates", "✓ supported"),
            *("+10.00 +7.73 to +12.27", "+20.00 +17.73 to +22.27"),
        ],
    ]
    assert page.rows(alike) == [
        ["warmup scaling sqrt, warmup epochs 1, best of 3 rates", "✓ supported", up, up]
    ]


def test_what_has_no_gain_says_why():
    same = record("warmup", 512, swept(0.60, 0.61, 0.62), **WARM)
    rows, notes = lines([*without("warmup", 512), same])
    assert [cell.text for cell in rows["warmup"]] == [SAME, "+4.00"] and NOTES[SAME] in notes
    assert not any("warm up" in note for note in notes) and NOTES[SAME] not in lines(study())[1]
    failed = record("naive", 8192, seeds(None, None, None), scaling="linear", factors=[1])
    rows, notes = lines([*without("naive", 8192), failed])
    assert rows["naive"][1].text == NOT_FINITE and NOTES[NOT_FINITE] in notes
    assert lines(without("naive", 8192))[0]["naive"][1].text == "not run"
    assert [cell.text for cell in lines(without("rate_sweep"))[0]["warmup"]] == ["not run"] * 2
    assert technique_tables(remedies(runs([]), MARGIN)) == []


def test_a_warm_up_at_a_rate_that_needs_none_is_said_to_have_nothing_to_do():
    low = [each | {"learning_rate": 0.05 * each["factor"]} for each in swept(0.60, 0.61, 0.62)]
    others = [
        each
        for each in without("warmup", 512)
        if (each["remedy"], each["global_batch"]) != ("rate_sweep", 512)
    ]
    pair = [record(name, 512, low, **how) for name, how in (("rate_sweep", ROOT), ("warmup", WARM))]
    assert lines([*others, *pair])[1][-1].startswith("warmup at 512: its best rate is not above")


@pytest.mark.parametrize(
    ("name", "options", "flag"), [("warmup", WARM, OWN_END), ("rate_sweep", ROOT, PLAIN_END)]
)
def test_an_end_of_a_sweep_is_marked_and_explained(name, options, flag):
    assert not lines(study())[0]["warmup"][0].flags
    own = record(name, 512, swept(0.60, 0.62, 0.67), at_edge=True, **options)
    rows, notes = lines([*without(name, 512), own])
    assert [cell.flags for cell in rows["warmup"]] == [(flag,), ()] and NOTES[flag] in notes
    assert rows[name][0].flags == (OWN_END,)


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
