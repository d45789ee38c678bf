"""Claims: their file, their sentences, and those of a study without evidence."""

import re
from dataclasses import asdict
from types import SimpleNamespace

import pytest

import tables_make
from examples.configurations import changed
from scaling.claims import claim, scaling
from scaling.claims.claim import Findings
from scaling.core import files


def test_claim_names_differing_cells_and_is_read_back(tmp_path):
    cells = [SimpleNamespace(gpus=2, batch_size=size) for size in (32, 128, 512)]
    judged = list(zip(cells, (True, False, False), (False, True, False), strict=True))
    made = scaling.FASTER.claim("b/ddp, 2 GPUs", "It is 3.", parts=judged, unclear="needs more")
    assert (made.id, made.question) == ("Q2-faster-b-ddp", "Q2")
    assert made.verdict == "in part"
    text = "It is 3. Held for b\u00a0=\u00a032; not for 128; unclear for 512; needs more."
    assert made.sentence == text
    alone = scaling.FASTER.claim("", "It is 3.")
    assert (alone.verdict, alone.sentence) == ("unclear", "It is 3; needs more runs.")
    found = Findings("demo", {"Q1": "Yes."}, [made, alone])
    files.write_json(tmp_path / "claims.json", asdict(found))
    assert claim.read(tmp_path / "claims.json") == found


@pytest.mark.parametrize(
    ("source", "without"), [("cifar10", set()), ("synthetic", {"Q4.1", "Q4.2-gap"})]
)
def test_questions_without_tables_say_what_to_add(tmp_path, source, without):
    config = changed(("dataset.source", source))
    tables_make.main(config=config, tables=tmp_path, records={}, runs=None)
    found = claim.read(tmp_path / "claims.json")
    first = ["Q1-faster", "Q2-faster", "Q3.1-computing", "Q3.2-bandwidth", "Q4.1", "Q4.2-gap"]
    first += ["Q5-repeats", "Q6-gradients", "Q7-parameters", "B-cost"]
    assert [one.id for one in found.claims] == [name for name in first if name not in without]
    assert found.answers == {}
    for one in found.claims:
        assert one.verdict == "not measured" and re.search(r"`\w+\.\w+`", one.sentence)
