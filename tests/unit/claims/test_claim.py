"""Claims: their document, their tables, their texts, and what a study without evidence claims."""

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import pytest

import claims_evaluate
from scaling.claims import claim, registry, texts
from scaling.claims.claim import Claim, Evidence, Part
from scaling.claims.claim_tables import ClaimTables
from scaling.core.errors import UserError

EMPTY = ClaimTables("demo", {})
SNAPSHOTS = sorted((Path(__file__).parents[2] / "snapshots").glob("expected/*/tables/claims.json"))


def made(figures):
    evidence = [Evidence("tables/x.csv", figures, "more than none: supported")]
    return Claim("Q1-a-b", "Q1", "Q1-a", "It is so.", "b, 1 GPU", "supported", "3 of 3.", evidence)


def test_the_document_gives_back_the_claims_and_has_finite_numbers_alone(tmp_path):
    path = tmp_path / "claims.json"
    other = replace(EMPTY.missing("Q5"), parts=[Part(2, 32, "supported"), Part(2, 128, "unclear")])
    claim.write(path, "demo", [made({"count": 3, "share": 0.5}), other])
    assert claim.read(path) == [made({"count": 3, "share": 0.5}), other]
    assert json.loads(path.read_text())["study"] == "demo"
    with pytest.raises(ValueError, match="not JSON compliant"):
        claim.write(path, "demo", [made({"seconds": math.inf})])


def test_a_file_that_is_no_claims_is_named(tmp_path):
    path = tmp_path / "claims.json"
    path.write_text('{"claims": [{"id": "a"}]}')
    with pytest.raises(UserError, match=r"claims\.json is no document of claims"):
        claim.read(path)


def test_without_any_table_each_question_has_one_claim_that_says_what_to_add(tmp_path):
    path = tmp_path / "claims.json"
    claims_evaluate.main(["--study", "demo", "--output", str(path)])
    found = claim.read(path)
    assert [one.id for one in found] == list(registry.CLAIMS)
    for one in found:
        assert one.verdict == "not measured" and re.search(r"`\w+\.\w+`", one.sentence)
        assert one.hypothesis and one.evidence[0].test and not one.evidence[0].figures


def test_of_random_images_nothing_is_claimed_to_be_learned(tmp_path):
    path = tmp_path / "claims.json"
    claims_evaluate.main(["--study", "demo", "--source", "synthetic", "--output", str(path)])
    without = [name for name in registry.CLAIMS if not name.startswith("Q4")]
    assert [one.id for one in claim.read(path)] == without


def test_claims_of_a_kind_stand_side_by_side_and_what_none_has_is_said_once(monkeypatch):
    def claims(tables):
        missing = [tables.missing("Q3.1-falls", name) for name in ("a/ddp", "b/ddp")]
        known = [tables.claim("Q1-gaps", name, case="missing", notes=[]) for name in ("a", "b")]
        return [known[0], missing[0], known[1], missing[1]]

    monkeypatch.setattr(registry, "CLAIMS", {"Q1": [claims]})
    assert [one.id for one in registry.evaluate(EMPTY)] == ["Q1-gaps-a", "Q1-gaps-b", "Q3.1-falls"]


@pytest.mark.parametrize("path", SNAPSHOTS, ids=lambda path: path.parts[-3])
def test_claims_of_stored_studies_are_short_and_have_ids_of_their_own(path):
    found = claim.read(path)
    assert len({one.id for one in found}) == len(found)
    order = list(registry.CLAIMS)
    positions = [order.index(one.question) for one in found]
    # The models were timed on random images, of which nothing is learned.
    made_up = path.parts[-3].startswith("h200x2-models")
    asked = [place for place, name in enumerate(order) if not (made_up and name[:2] == "Q4")]
    assert positions == sorted(positions) and sorted(set(positions)) == asked
    for one in found:
        # A batch size has spaces that do not break a line.
        words = [len(text.split(" ")) for text in (one.hypothesis, one.sentence)]
        assert words[0] <= 25 and words[1] <= (20 if one.verdict == "not measured" else 40), one
        assert one.sentence.endswith(".") and not re.search(r"[{}]|  | [.,;]", one.sentence), one


def test_every_kind_and_case_is_one_that_the_code_names():
    code = "".join(path.read_text() for path in Path(texts.__file__).parent.glob("*.py"))
    for kind, text in texts.texts().items():
        assert f'"{kind}"' in code, kind
        assert all(f'"{case}"' in code for case in text.sentences), kind


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        ((0.094, 0.34), "9.4–34 %"),
        ((0.104, 0.102), "10 %"),
        ((-0.1, 0.3), "≤ 30 %"),
        ((-0.4, -0.1), "< 0.1 %"),
        ((0.76, 1.12), "≥ 76 %"),
    ],
)
def test_a_range_of_shares_is_one_figure_where_both_ends_are(ends, said):
    assert texts.shares(*ends) == said
