"""Claims: their document, their tables, and how the report shows what came of them."""

import json
import math

import numpy as np
import pandas as pd
import pytest

import claims_evaluate
from scaling.claims import claim, claim_tables, registry, texts
from scaling.claims.claim import Claim, Evidence
from scaling.claims.claim_tables import ClaimTables
from scaling.core.errors import UserError
from scaling.core.statistics import judge

CLAIM = Claim(
    id="Q5-repeats",
    question="Q5",
    sentence="Without set_epoch all 3 epochs have one order.",
    verdict="supported",
    evidence=[Evidence("tables/sampler.csv", {"orders": 1, "share": 0.5}, "one order: supported")],
)


def test_the_document_gives_back_the_claims_in_their_order(tmp_path):
    path = tmp_path / "claims.json"
    other = ClaimTables("demo", {}).missing("Q7-parameters", "no_ranks")
    claim.write(path, "demo", [CLAIM, other])
    assert claim.read(path) == [CLAIM, other]
    assert json.loads(path.read_text())["study"] == "demo"
    assert (other.verdict, other.evidence[0].figures) == ("undecided", {})


def test_numbers_of_a_table_become_numbers_of_json_and_infinity_is_refused(tmp_path):
    path = tmp_path / "claims.json"
    evidence = [Evidence("tables/x.csv", {"count": np.int64(3), "share": np.float64(0.5)}, "")]
    claim.write(path, "demo", [Claim("a", "Q1", "s", "supported", evidence)])
    assert claim.read(path)[0].evidence[0].figures == {"count": 3, "share": 0.5}
    endless = [Evidence("tables/x.csv", {"seconds": math.inf}, "")]
    with pytest.raises(ValueError, match="not JSON compliant"):
        claim.write(path, "demo", [Claim("a", "Q1", "s", "supported", endless)])


def test_a_file_that_is_no_document_of_claims_is_named(tmp_path):
    path = tmp_path / "claims.json"
    path.write_text('{"claims": [{"id": "a"}]}')
    with pytest.raises(UserError, match=r"claims\.json is no document of claims"):
        claim.read(path)


def test_a_test_that_neither_holds_nor_fails_leaves_a_claim_undecided():
    assert judge(True, False) == "supported"
    assert judge(False, True) == "refuted"
    assert judge(False, False) == "undecided"


def test_without_any_table_every_claim_is_undecided_and_says_what_is_missing(tmp_path):
    path = tmp_path / "claims.json"
    claims_evaluate.main(["--study", "demo", "--output", str(path)])
    made = claim.read(path)
    assert {one.verdict for one in made} == {"undecided"}
    assert all(one.sentence and one.evidence[0].test for one in made)


def test_a_table_that_a_study_lacks_is_an_empty_one_at_its_place():
    tables = ClaimTables("demo", {"accuracy": pd.DataFrame({"seed": [0]})})
    assert len(tables["accuracy"]) == 1
    assert len(tables["timing"]) == 0 and "epoch_seconds" in tables["timing"]
    assert tables.file("timing") == "tables/demo/timing.csv"
    assert tables.file("accuracy") == "tables/accuracy.csv"


def test_a_file_that_is_no_table_of_a_study_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"holidays\.csv is no table of a study"):
        claim_tables.read("demo", [tmp_path / "holidays.csv"])


def test_claims_come_in_the_order_of_the_questions_with_ids_of_their_own():
    made = registry.evaluate(ClaimTables("demo", {}))
    order = list(texts.questions())
    positions = [order.index(one.question) for one in made]
    assert positions == sorted(positions)
    assert len({one.id for one in made}) == len(made)
