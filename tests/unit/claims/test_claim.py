"""Claims: their file and their sentences. A study without records says which key to set."""

import re
from dataclasses import asdict
from types import SimpleNamespace

import pandas as pd

import tables_make
from examples.configurations import changed
from scaling.claims import claim, scaling
from scaling.claims.claim import Findings
from scaling.core import files
from scaling.report.views import QUESTIONS


def test_claim_names_differing_cells_and_is_read_back(tmp_path):
    cells = [SimpleNamespace(gpus=2, batch_size=size) for size in (32, 128, 512)]
    judged = list(zip(cells, (True, False, False), (False, True, False), strict=True))
    made = scaling.FASTER.claim("b/ddp, 2 GPUs", "It is 3.", parts=judged, unclear="needs more")
    assert (made.id, made.verdict) == ("Q2-faster-b-ddp", "in part")
    text = "It is 3. Held for b\u00a0=\u00a032; not for 128; unclear for 512; needs more."
    assert made.sentence == text
    alone = scaling.FASTER.claim("", "It is 3.")
    assert (alone.verdict, alone.sentence) == ("unclear", "It is 3; needs more runs.")
    found = Findings("demo", {"Q1": "Yes."}, [made, alone])
    files.write_json(tmp_path / "claims.json", asdict(found))
    assert claim.read(tmp_path / "claims.json") == found


def test_questions_without_tables_name_the_key_to_set(tmp_path):
    config = changed()
    tables_make.main(config=config, tables=tmp_path, records={}, runs=None)
    found = claim.read(tmp_path / "claims.json")
    assert not found.answers and not found.claims
    for question in QUESTIONS:
        keys = re.findall(r"(\w+)\.(\w+)", question.needs)
        assert keys and all(key in config[section] for section, key in keys), question.name


def test_recipes_of_one_gpu_count_unless_others_have_none():
    table = pd.DataFrame({"recipe": ["a", "a", "b"], "gpus": [1, 2, 1]})
    assert claim.on_several_gpus(table)["recipe"].tolist() == ["a", "a"]
    for less in (table.iloc[1:], table.iloc[::2]):
        assert claim.on_several_gpus(less).equals(less)
