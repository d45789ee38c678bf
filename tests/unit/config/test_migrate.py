"""Studies as version 2.0 stored them, and what study_migrate.py makes of them."""

import copy
import json
import os
import shutil
from pathlib import Path

import pytest
import yaml

import study_migrate
from scaling.core.errors import UserError
from scaling.core.records.convergence import CONVERGENCE

STUDIES = Path(__file__).parents[3] / "studies"
RECORD = "convergence/remedy~none/global_batch~128/runs.json"
VARIANT = "quantization/seed~0/variant~mistake-bias_scale/quantization.json"
TUNED = {"tuned": {"engine": "resident", "precision": "bf16"}}
TRIED = [
    {"name": "a", "recipe": "a"},
    {"name": "none", "recipe": "tuned", "factors": [1], "noise_scale": True},
]
OLD = {
    "convergence": {"recipes": TRIED, "precision": "tf32"},
    "recipes": TUNED | {"a": {"base": "tuned", "precision": "tf32"}},
    "grid": {"repeats": [{"recipes": ["tuned"], "repeats": 2}]},
}


@pytest.fixture
def study(tmp_path, monkeypatch):
    """A stored study with a remedy, whose record lacks an option that came later."""
    monkeypatch.chdir(tmp_path)
    made = Path("studies/old")
    (made / RECORD).parent.mkdir(parents=True)
    shutil.copyfile(STUDIES / "h200x4" / RECORD, made / RECORD)
    (made / "config.yaml").write_text(yaml.safe_dump(OLD))
    for path in (made / RECORD, made / "config.yaml"):
        os.utime(path, (1000, 2000))
    return made


def test_what_older_code_wrote_becomes_todays_once(study, capsys):
    study_migrate.main(["--study", "old"])
    assert "studies/old: 2 of 2 files are rewritten" in capsys.readouterr().out
    record = CONVERGENCE.read(STUDIES / "h200x4" / RECORD)
    options = record["options"] | {"newton_schulz_steps": 3}
    assert CONVERGENCE.read(study / RECORD) == record | {"options": options}
    config = yaml.safe_load((study / "config.yaml").read_text())
    none = {"name": "none", "recipe": "tuned_tf32", "factors": [1]}
    assert config["convergence"] == {"recipes": [TRIED[0], none]}
    added = {"tuned_tf32": {"base": "tuned", "precision": "tf32"}}
    assert config["recipes"] == OLD["recipes"] | added
    assert config["grid"] == {"repeats": 2}
    before = {path: (path.read_bytes(), path.stat().st_mtime) for path in study.rglob("*.*")}
    assert {time for _, time in before.values()} == {2000}
    study_migrate.main(["--study", "studies/old"])
    assert "0 of 2 files" in capsys.readouterr().out
    assert {path: (path.read_bytes(), path.stat().st_mtime) for path in before} == before


def test_variants_of_options_that_are_gone_are_left_out_and_their_records_refused():
    asked = [{"name": "mse", "activation_range": "mse"}, {"name": "best", "rounding": "gptq"}]
    asked.append({"name": "w4", "weight_bits": 4, "unsigned": False})
    made = {"quantization": {"variants": asked, "peers": ["torchao"], "bit_widths": {"both": []}}}
    study_migrate.configuration(made)
    assert made == {"quantization": {"variants": [{"name": "w4", "weight_bits": 4}]}}
    record = json.loads((STUDIES / "quantization-cifar10" / VARIANT).read_text())
    today = copy.deepcopy(record)
    for key in ("unsigned", "rounding"):
        del today["scheme"][key]
    record["scheme"] |= study_migrate.GONE_OPTIONS
    record["layers"][0]["propagated_sqnr_db"] = 40.0
    study_migrate.variant(record)
    assert record == today
    record["scheme"]["weight_range"] = "mse"
    with pytest.raises(UserError, match="variant mistake-bias_scale has options that are gone"):
        study_migrate.variant(record)


def test_a_damaged_record_is_one_sentence_and_nothing_is_rewritten(study):
    (study / RECORD).write_text('{"version": 1}')
    with pytest.raises(UserError, match=r"runs\.json is not as it was written"):
        study_migrate.main(["--study", "old"])
    assert yaml.safe_load((study / "config.yaml").read_text()) == OLD
    with pytest.raises(UserError, match=r"has no study 'new': there are old$"):
        study_migrate.main(["--study", "new"])
