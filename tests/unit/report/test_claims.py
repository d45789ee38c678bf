"""The claims on the page: verdicts, sentences, evidence; the summary names what falls short."""

import re

import pytest

import report_render
from examples import report_tables
from examples.report_page import arguments, lay_out, render
from scaling.claims import claim, texts
from scaling.claims.claim import Claim, Evidence
from scaling.report.claims import SYMBOLS, figures, verdicts
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
    assert found.startswith("Question 2. Time and speedup Q2. Which scaling is it? Several GPUs")
    larger = "A larger batch on each GPU scales better. (course/ddp, 4 GPUs) ? unclear Efficiency"
    assert larger in found
    # The lab's other questions have theirs elsewhere.
    link = "At their fastest, gradients use at least half of the measured link. (fast/ddp, 4 GPUs)"
    assert link not in found and link in section(page, "bandwidth")


def test_a_claim_shows_its_evidence_by_file_figures_and_test(page):
    found = section(page, "bandwidth")
    evidence = found.partition("Evidence tables/example/bandwidth.csv : ")[2]
    assert evidence.startswith("estimate subtraction_without_loading, cells 3, best batch size")
    assert "Test: Bytes of an epoch over the seconds of its communication kernels" in evidence


def test_the_summary_has_its_findings_then_counts_and_names_what_is_not_supported(page):
    found = section(page, "summary")
    counts = re.search(
        r"makes (\d+) claims: (\d+) supported, (\d+) refuted, (\d+) unclear, (\d+) not",
        found,
    )
    total, supported, refuted, unclear, missing = map(int, counts.groups())
    assert total == supported + refuted + unclear + missing
    short = [
        named for tag, named in page.elements if tag == "a" and named["href"].startswith("#claim-")
    ]
    assert len(short) == refuted + unclear
    ids = {named.get("id") for _, named in page.elements}
    assert {link["href"][1:] for link in short} <= ids
    assert found.startswith("Summary Of 45 cells, ")
    order = ["The shortest epoch took", "The audit of these", "this study makes", "✗ refuted"]
    places = [found.index(words) for words in [*order, "? unclear"]]
    assert places == sorted(places) and "✗ refuted" not in found[places[-1] :]
    line = "✗ refuted Q3.1 Computing takes most of an epoch on several GPUs. (course/dp, 4 GPUs)"
    assert f"{line} Q3.1-computing-course-dp " in found
    assert f"{unclear} unclear: 1 on Q2, 1 on Q3.1, 3 on Q3.2" in found


def test_counts_of_millions_are_whole_in_the_evidence_and_other_large_figures_short():
    evidence = Evidence("t.csv", {"bytes": 26214114852.0, "loss": 16592464668.5, "gpus": 4}, "")
    assert figures(evidence) == "bytes 26,214,114,852, loss 1.66e10, gpus 4"


def test_a_report_whose_claims_all_hold_lists_none(tmp_path):
    lay_out(tmp_path, report_tables.make())
    evidence = [Evidence("tables/x.csv", {}, "none")]
    holds = Claim("Q1-a", "Q1", "Q1-a", "It holds.", "", "supported", "3 of 3.", evidence)
    claim.write(tmp_path / "tables" / "claims.json", "example", [holds])
    report_render.main(arguments(tmp_path))
    page = (tmp_path / "report.html").read_text()
    assert "makes 1 claim: 1 supported." in page
    assert "Not all are supported" not in page and "claims short" not in page
    # Questions without a claim say so.
    assert page.count("This study makes no claim on this question.") == len(texts.questions()) - 1


def test_a_test_that_several_claims_are_put_to_is_written_out_once(page):
    found = section(page, "bandwidth")
    assert found.count("Test: Bytes of an epoch over the seconds of its communication") == 1
    assert "Test: that of Q3.2-travelling-course-" in found


def test_a_sentence_is_text_not_markup(tmp_path):
    lay_out(tmp_path, report_tables.make())
    evidence = [Evidence("t.csv", {"a": "<b>"}, "")]
    sly = Claim("Q1-a", "Q1", "Q1-a", "<i>", "", "refuted", "1 < 2 <script>", evidence)
    claim.write(tmp_path / "tables" / "claims.json", "example", [sly])
    report_render.main(arguments(tmp_path))
    page = (tmp_path / "report.html").read_text()
    assert "<script>" not in page and "1 &lt; 2 &lt;script&gt;" in page
    assert "&lt;b&gt;" in page and "&lt;i&gt;" in page


def test_each_verdict_has_a_mark_of_its_own():
    made = [Claim(name, "Q1", "Q1-a", "", "", name, "", []) for name in SYMBOLS]
    assert len(set(SYMBOLS.values())) == 4
    assert verdicts(made)["counts"] == "1 supported, 1 refuted, 1 unclear, 1 not measured"
    assert [one.verdict for one in verdicts(made)["refuted"]] == ["refuted"]
    assert verdicts(made)["unclear_in"] == "1 unclear: 1 on Q1"
