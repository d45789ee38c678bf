"""Studies as older code stored them, and what study_migrate.py makes of them."""

import json
import os
import shutil
from pathlib import Path

import pytest
import yaml

import study_migrate
from scaling.core.errors import UserError
from scaling.core.records.kinds import KINDS
from scaling.core.records.run import RUN

STUDIES = Path(__file__).parents[3] / "studies"
CELL = "runs/recipe~plain/strategy~ddp/gpus~2/batch_size~128/seed~0/run.json"
VARIANT = "quantization/seed~0/variant~mistake-bias_scale/quantization.json"
REMEDY = "convergence/remedy~none/global_batch~128/runs.json"
SWEEP, PEAKS = "interconnect/gpus~2/sweep.json", "peaks/peaks.json"
SYNCHRONIZATION = "experiments/gpus~4/synchronization.json"
FROM = {
    **dict.fromkeys([CELL, SWEEP, PEAKS, "manifest.json"], "h100x2"),
    **dict.fromkeys([REMEDY, SYNCHRONIZATION], "h200x4"),
    VARIANT: "quantization-cifar10",
}
TUNED, COURSE = (CELL.replace("~plain", f"~{recipe}") for recipe in ("tuned", "course"))
OLDER = ["training: {learning_rate: 0.1}", "quantization: {seeds: [0]}", "machine: {share: true}"]
OLDER += ["grid: {recipes: [course, tuned], repeats: [{repeats: 1, recipes: [course]}]}"]
OLDER += ["recipes: {course: {loader_workers: 4}}"]


def older(record, path):
    """Take out of a record, in place, what came later."""
    del record["version"], record["sha256"]
    if path == CELL:
        for key in ("startup", "in_memory", "settling", "run_seconds"):
            del record[key]
        del record["cell"]["repeat"], record["memory"]["capacity_bytes"]
        del record["training"]["compiled_graphs"], record["dataset"]["image_shape"]
        record["cell"]["recipe"] = "course"
        del record["training"]["engine"], record["communication"]["sent_share"]
    for row in record["rows"] if path in (SWEEP, PEAKS) else ():
        row.pop("launch", None)
        row.pop("state", None)
    if path == REMEDY:
        del record["options"]["muon"], record["result"]["longer"]
    if path == SYNCHRONIZATION:
        del record["agreement"], record["model"]["widest_norm"]
    if path == VARIANT:
        record["scheme"]["mistake"] = record["scheme"].pop("mistakes")[0]
        record["scheme"] |= study_migrate.RANGES
        record["layers"][0]["propagated_sqnr_db"] = 40.0
        del record["environment"]


@pytest.fixture
def study(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for path, name in FROM.items():
        place = Path("studies/old", COURSE if path == CELL else path)
        place.parent.mkdir(parents=True, exist_ok=True)
        record = json.loads((STUDIES / name / (TUNED if path == CELL else path)).read_text())
        older(record, path)
        place.write_text(json.dumps(record))
        os.utime(place, (1000, 2000))
    Path("studies/old/config.yaml").write_text("\n".join(OLDER))
    return Path("studies/old")


def test_what_older_code_wrote_becomes_todays_once(study, capsys):
    study_migrate.main(["--study", "old"])
    assert "studies/old: 8 of 8 files are rewritten" in capsys.readouterr().out
    found = {path: KINDS[Path(path).name].read(study / path) for path in FROM}
    assert (study / CELL).stat().st_mtime == 2000
    run = found[CELL]
    assert (run["cell"]["repeat"], run["memory"]["capacity_bytes"]) == (0, None)
    assert (run["in_memory"], run["startup"]) == ([], None)
    assert run["settling"] == RUN.read(STUDIES / "h100x2" / TUNED)["settling"]
    assert {row["launch"] for row in found[SWEEP]["rows"]} == {"eager"}
    states = [row.get("state") for row in found[PEAKS]["rows"] if "matrix_size" in row]
    assert set(states) == {"sprint"}
    assert found[REMEDY]["options"]["muon"] == 0 and found[REMEDY]["result"]["longer"] == []
    assert found[SYNCHRONIZATION]["model"]["widest_norm"] == 512
    assert found[VARIANT]["scheme"]["mistakes"] == ["bias_scale"]
    assert not (study / COURSE).exists() and run["cell"]["recipe"] == "plain"
    config = yaml.safe_load((study / "config.yaml").read_text())
    assert config["recipes"] == {"plain": {"engine": "eager", "loader_workers": 4}}
    assert run["training"]["engine"] == "eager" and run["communication"]["sent_share"] == 1
    assert config["grid"]["recipes"] == ["plain", "tuned"]
    assert config["grid"]["repeats"] == [{"repeats": 1, "recipes": ["plain"]}]
    assert config["machine"] == {"check": "off", "share": True}
    assert config["quantization"]["seeds"] == [0] and config["quantization"]["variants"] == []
    assert config["convergence"] == {"recipes": [], "accuracies": []}
    before = {path: path.read_bytes() for path in study.rglob("*.*")}
    study_migrate.main(["--study", "studies/old"])
    assert "0 of 8 files" in capsys.readouterr().out
    assert {path: path.read_bytes() for path in study.rglob("*.*")} == before


def test_a_variant_of_ranges_that_are_gone_is_left_out_and_its_record_refused(study):
    gptq = {"rounding": "gptq", "bias_correction": True, "activation_range": "mse"}
    asked = [{"name": "mse", "activation_range": "mse"}, {"name": "best", **gptq}]
    path = study / "config.yaml"
    quantization = {"variants": asked, "peers": ["torchao"], "bit_widths": {"methods": ["mse"]}}
    path.write_text(yaml.safe_dump({"quantization": quantization}))
    (study / VARIANT).unlink()
    study_migrate.main(["--study", "old"])
    made = yaml.safe_load(path.read_text())["quantization"]
    assert made["variants"] == [{"name": "best", "rounding": "gptq"}]
    assert "peers" not in made and made["bit_widths"] == {}
    record = json.loads((STUDIES / FROM[VARIANT] / VARIANT).read_text())
    record["scheme"] |= study_migrate.RANGES | {"weight_range": "mse"}
    with pytest.raises(UserError, match="the ranges of variant mistake-bias_scale are no option"):
        study_migrate.variant(record)


def test_trainings_to_an_accuracy_get_a_recipe_of_their_own(study):
    with (study / "config.yaml").open("a") as config:
        config.write("\ntime_to_accuracy: {gpus: [2], update: {muon: 0.1}}")
    before, after = (
        study / CELL.replace("runs/recipe~plain", f"to_accuracy/recipe~{name}")
        for name in ("tuned", "to_accuracy")
    )
    record = json.loads((STUDIES / "h100x2" / TUNED).read_text())
    del record["version"], record["sha256"]
    before.parent.mkdir(parents=True)
    before.write_text(json.dumps(record))
    study_migrate.main(["--study", "old"])
    assert RUN.read(after)["cell"]["recipe"] == "to_accuracy" and not before.exists()
    config = yaml.safe_load((study / "config.yaml").read_text())
    assert config["recipes"]["to_accuracy"] == {"engine": "resident", "muon": 0.1}
    assert config["time_to_accuracy"] == {"gpus": [2], "recipe": "to_accuracy"}


def test_remedies_are_recipes_with_what_the_experiment_adds(study):
    lars = {"lars": 0.1, "decay": "linear"}
    ghost = {"name": "ghost", "ghost_batch": 4, "lengths": [3]}
    remedies = [{"name": "none", "factors": [1]}, {"name": "a", **lars}, {"name": "b", **lars}]
    tuned = {"tuned": {"engine": "resident", "precision": "bf16"}}
    path = study / "config.yaml"
    added = {"convergence": {"remedies": [*remedies, ghost]}, "recipes": tuned}
    path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | added))
    study_migrate.main(["--study", "old"])
    config = yaml.safe_load(path.read_text())
    assert config["convergence"]["recipes"] == [
        {"name": "none", "recipe": "tuned", "factors": [1]},
        {"name": "a", "recipe": "a"},
        {"name": "b", "recipe": "a"},
        {"name": "ghost", "recipe": "ghost", "lengths": [3]},
    ]
    assert config["recipes"] == tuned | {
        "a": {"base": "tuned", **lars},
        "ghost": {"base": "tuned", "ghost_batch": 4, "fused_norms": False},
    }
    assert "remedies" not in config["convergence"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("[]", "is no record of a run that can be read"),
        ('{"cell": {}}', "is no record of a run that can be read"),
        ("{", "is not valid JSON"),
        ('{"version": 1}', "its checksum differs"),
    ],
)
def test_what_cannot_be_read_is_one_sentence(study, content, said):
    (study / COURSE).write_text(content)
    with pytest.raises(UserError, match=rf"run\.json {said}|run\.json .*{said}"):
        study_migrate.main(["--study", "old"])


def test_an_unsigned_record_among_signed_ones_was_edited(study):
    study_migrate.main(["--study", "old"])
    record = json.loads((study / SWEEP).read_text())
    del record["version"], record["sha256"]
    record["rows"][0]["seconds"] = [seconds * 10 for seconds in record["rows"][0]["seconds"]]
    (study / SWEEP).write_text(json.dumps(record))
    with pytest.raises(
        UserError, match=r"sweep\.json has no version and sha256, and other records"
    ):
        study_migrate.main(["--study", "old"])


def test_a_study_that_is_not_there_is_answered_with_those_there_are(study):
    shutil.copytree(study, "results")
    study_migrate.main(["--study", "results"])
    for name in ("new", ""):
        with pytest.raises(UserError, match=f"has no study '{name}': there are old$"):
            study_migrate.main(["--study", name])
