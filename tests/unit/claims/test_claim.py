"""Claims: their document, their sentences, and what a study without evidence claims."""

import re
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace

import pytest

import tables_make
from scaling.claims import claim, communication, evaluate, scaling
from scaling.claims.claim import Answer, Findings
from scaling.core import files
from scaling.tables.schema import StudyTables

EMPTY = StudyTables("demo", {})
SNAPSHOTS = sorted((Path(__file__).parents[2] / "snapshots").glob("expected/*/tables/claims.json"))


def test_cells_that_differ_are_named_and_the_document_gives_the_claims_back(tmp_path):
    cells = [SimpleNamespace(gpus=2, batch_size=size) for size in (32, 128, 512)]
    judged = list(zip(cells, (True, False, False), (False, True, False), strict=True))
    made = scaling.GAPS.claim("b/ddp, 2 GPUs", "It is 3.", parts=judged, unclear="it is not told")
    assert (made.id, made.question) == ("Q1-gaps-b-ddp", "Q1")
    assert made.verdict == "in part"
    said = "It is 3. Held for b\u00a0=\u00a032; not for 128; unclear for 512; it is not told."
    assert made.sentence == said
    alone = scaling.GAPS.claim("", "It is 3.", unclear="it is not told")
    assert (alone.verdict, alone.sentence) == ("unclear", "It is 3; it is not told.")
    found = Findings("demo", {"Q1": "Yes."}, [made, alone])
    files.write_json(tmp_path / "claims.json", asdict(found))
    assert claim.read(tmp_path / "claims.json") == found


@pytest.mark.parametrize(
    ("source", "without"), [("cifar10", set()), ("synthetic", {"Q4.1", "Q4.2-gap"})]
)
def test_without_tables_each_question_says_what_to_add_and_nothing_is_learned_of_random_images(
    tmp_path, source, without
):
    tables_make.main(study="demo", source=source, tables=tmp_path)
    found = claim.read(tmp_path / "claims.json")
    first = ["Q1-faster", "Q2-faster", "Q3.1-computing", "Q3.2-bandwidth", "Q4.1", "Q4.2-gap"]
    first += ["Q5-repeats", "Q6-gradients", "Q7-parameters", "B-cost"]
    assert [one.id for one in found.claims] == [name for name in first if name not in without]
    assert found.answers == {}
    for one in found.claims:
        assert one.verdict == "not measured" and re.search(r"`\w+\.\w+`", one.sentence)


def test_claims_of_a_kind_stand_side_by_side_and_what_none_has_is_said_once(monkeypatch):
    made = [communication.COMPUTING.missing(name, "Add it.") for name in ("a/ddp", "b/ddp")]
    made[:0] = [scaling.GAPS.claim(name, "It is so.", holds=True) for name in ("a", "b")]
    answer = Answer("So.", [made[0], made[2], made[1], made[3]])
    monkeypatch.setattr(evaluate, "ANSWERS", {"Q1": lambda tables: answer})
    found = evaluate.evaluate(EMPTY)
    assert [one.id for one in found.claims] == ["Q1-gaps-a", "Q1-gaps-b", "Q3.1-computing"]
    assert found.answers == {"Q1": "So."}


@pytest.mark.parametrize("path", SNAPSHOTS, ids=lambda path: path.parts[-3])
def test_what_stored_studies_say_is_short_and_each_claim_has_an_id_of_its_own(path):
    found = claim.read(path)
    assert len({one.id for one in found.claims}) == len(found.claims)
    # The models were timed on random images, of which nothing is learned.
    made_up = path.parts[-3].startswith("h200x2-")
    order = ["Q1", "Q2", "Q3.1", "Q3.2", "Q4.1", "Q4.2", "Q5", "Q6", "Q7", "B"]
    asked = [name for name in order if not (made_up and name[:2] == "Q4")]
    assert list(dict.fromkeys(one.question for one in found.claims)) == asked
    for one in found.claims:
        # A batch size has spaces that do not break a line.
        words = [len(text.split(" ")) for text in (one.hypothesis, one.sentence)]
        assert words[0] <= 25 and words[1] <= (20 if one.verdict == "not measured" else 40), one
        assert one.sentence.endswith(".") and not re.search(r"[{}]|  | [.,;]", one.sentence), one
    assert all(len(text.split()) <= 70 for text in found.answers.values()), found.answers
