"""The claims on the page: verdicts, sentences, evidence; the summary names what falls short."""

import re

import pytest

import report_render
from examples import report_tables
from examples.report_page import arguments, lay_out, render
from scaling.claims import claim, texts
from scaling.claims.claim import Claim, Evidence
from scaling.report.claims import SYMBOLS, figures, first_clause, verdicts
from scaling.report.report import SECTIONS


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    return render(tmp_path_factory.mktemp("study"), report_tables.make())


def section(page, name):
    """The text of one section, tags left out."""
    inside = page.source.partition(f'<section id="{name}">')[2].partition("</section>")[0]
    return " ".join(re.sub("<[^>]*>", " ", inside).split())


def test_every_question_has_its_place_in_the_order_of_the_lab():
    shown = [number for section in SECTIONS for number in section.questions]
    assert shown == list(texts.questions())


def test_a_section_begins_with_the_claims_on_its_questions_and_their_verdicts(page):
    found = section(page, "speedup")
    assert found.startswith("Question 2. Time and speedup Q2. Which scaling is it? ✓ supported")
    assert "? undecided course/ddp: 4 GPUs scale neither clearly better" in found
    # The lab's other questions have theirs elsewhere.
    assert "of the link is used" not in found
    assert "✓ supported fast/ddp on 4 GPUs: over an epoch less than half of the link" in section(
        page, "bandwidth"
    )


def test_a_claim_shows_its_evidence_by_file_figures_and_test(page):
    found = section(page, "bandwidth")
    evidence = found.partition("Evidence tables/example/bandwidth.csv : ")[2]
    assert evidence.startswith("most batch size 32, most bytes per epoch 20,984,")
    assert "most used 0.0277" in evidence
    assert "Test: Bytes of an epoch over the shortest and over the longest" in evidence


def test_the_summary_has_its_findings_then_counts_and_names_what_is_not_supported(page):
    found = section(page, "summary")
    counts = re.search(
        r"makes (\d+) claims: (\d+) supported, (\d+) refuted, (\d+) undecided", found
    )
    total, supported, refuted, undecided = map(int, counts.groups())
    assert total == supported + refuted + undecided
    short = [
        named for tag, named in page.elements if tag == "a" and named["href"].startswith("#claim-")
    ]
    assert len(short) == refuted + undecided
    ids = {named.get("id") for _, named in page.elements}
    assert {link["href"][1:] for link in short} <= ids
    assert found.startswith("Summary Of 45 cells, ")
    order = ["The shortest epoch took", "The audit of these", "this study makes", "✗ refuted"]
    places = [found.index(words) for words in [*order, "? undecided"]]
    assert places == sorted(places) and "✗ refuted" not in found[places[-1] :]
    line = "✗ refuted Q3.1 course/dp on 4 GPUs: computing is not always most of an epoch"
    assert f"{line} Q3.1-computing-course-dp " in found
    assert "computing is most of an epoch" not in found
    assert f"{undecided} undecided: 4 on Q1, 1 on Q2, 4 on Q3.1, 3 on Q3.2" in found


@pytest.mark.parametrize(
    ("sentence", "clause"),
    [
        ("It holds.", "It holds"),
        ("It does not hold: 3.20× with b = 32.", "It does not hold"),
        ("At 1.5 s it ends; later not. No more.", "At 1.5 s it ends"),
        ("tuned, 1 GPU: gaps are no cause. With b = 32", "tuned, 1 GPU: gaps are no cause"),
        ("a/ddp on 4 GPUs: a third is used, at most.", "a/ddp on 4 GPUs: a third is used, at most"),
        ("a/ddp: computing is most: 91 %", "a/ddp: computing is most"),
        (
            "a/ddp: it is " + "so " * 20 + "long, " + "very " * 20,
            "a/ddp: it is " + "so " * 20 + "long …",
        ),
        ("so " * 100, "so " * 36 + "…"),
    ],
)
def test_a_claim_is_named_by_its_first_clause(sentence, clause):
    assert first_clause(sentence) == clause


def test_counts_of_millions_are_whole_in_the_evidence_and_other_large_figures_short():
    evidence = Evidence("t.csv", {"bytes": 26214114852.0, "loss": 16592464668.5, "gpus": 4}, "")
    assert figures(evidence) == "bytes 26,214,114,852, loss 1.66e10, gpus 4"


def test_a_report_whose_claims_all_hold_lists_none(tmp_path):
    lay_out(tmp_path, report_tables.make())
    holds = Claim("Q1-a", "Q1", "It holds.", "supported", [Evidence("tables/x.csv", {}, "none")])
    claim.write(tmp_path / "tables" / "claims.json", "example", [holds])
    report_render.main(arguments(tmp_path))
    page = (tmp_path / "report.html").read_text()
    assert "makes 1 claim: 1 supported." in page
    assert "Not all are supported" not in page and "claims short" not in page
    # Questions without a claim say so.
    assert page.count("This study makes no claim on this question.") == len(texts.questions()) - 1


def test_a_test_that_several_claims_are_put_to_is_written_out_once(page):
    found = section(page, "bandwidth")
    assert found.count("Test: Bytes of an epoch over the shortest and over the longest") == 1
    assert "Test: that of Q3.2-epoch-course-ddp." in found


def test_a_sentence_is_text_not_markup(tmp_path):
    lay_out(tmp_path, report_tables.make())
    sly = Claim("Q1-a", "Q1", "1 < 2 <script>", "refuted", [Evidence("t.csv", {"a": "<b>"}, "")])
    claim.write(tmp_path / "tables" / "claims.json", "example", [sly])
    report_render.main(arguments(tmp_path))
    page = (tmp_path / "report.html").read_text()
    assert "<script>" not in page and "1 &lt; 2 &lt;script&gt;" in page and "&lt;b&gt;" in page


def test_each_verdict_has_a_mark_of_its_own():
    made = [Claim(name, "Q1", "", name, []) for name in SYMBOLS]
    assert len(set(SYMBOLS.values())) == 3
    assert verdicts(made)["counts"] == "1 supported, 1 refuted, 1 undecided"
    assert [one.verdict for one in verdicts(made)["refuted"]] == ["refuted"]
    assert verdicts(made)["undecided_in"] == "1 undecided: 1 on Q1"
