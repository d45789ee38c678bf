"""What scripts are told is what the configuration says."""

import os
import shlex
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from scaling.config.config import asked
from scaling.core.errors import SNAKEMAKE_VARIABLE, UserError
from scaling.launch import begin, told

ROOT = Path(__file__).parents[3]


@pytest.fixture
def config():
    return asked(yaml.safe_load((ROOT / "config/config.yaml").read_text()))


def value(said, option):
    """The one word that follows an option on a command line."""
    words = shlex.split(said)
    return words[words.index(option) + 1]


def test_cells_and_full_trainings_differ_in_what_the_section_of_the_latter_says(config):
    config["time_to_accuracy"] |= {"learning_rate": 0.7, "epochs": 11}
    assert value(told.cells(config), "--learning-rate") == str(config["training"]["learning_rate"])
    said = told.to_accuracy(config)
    assert value(said, "--learning-rate") == "0.7"
    assert (value(said, "--warmup-epochs"), value(said, "--measured-epochs")) == ("1", "10")
    assert '"muon": 0.12' in told.recipe(config, config["time_to_accuracy"]["recipe"])


def test_remedies_are_told_nothing_that_no_training_depends_on(config):
    before = told.techniques(config)
    config["convergence"] |= {"global_batches": [7], "accuracies": [0.1]}
    config["convergence"]["recipes"] = config["convergence"]["recipes"][:1]
    assert told.techniques(config) == before
    config["convergence"]["epochs"] += 1
    assert told.techniques(config) != before


@pytest.mark.parametrize(
    ("recipes", "chosen"), [(["plain"], "plain"), (["plain", "tuned"], "tuned")]
)
def test_the_resnet_that_is_quantized_is_trained_for_speed_where_the_study_is(
    config, recipes, chosen
):
    config["grid"]["recipes"] = recipes
    assert f"--recipe {chosen}" in told.quantized_resnet(config)


def test_jobs_keep_compiled_code_in_the_studys_folder_and_not_in_tmp(config, monkeypatch, tmp_path):
    for name in ("TORCHINDUCTOR_CACHE_DIR", SNAKEMAKE_VARIABLE):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    begin.accept(config, None)
    assert os.environ["TORCHINDUCTOR_CACHE_DIR"] == f"{tmp_path}/resources/compiled"


def test_another_launcher_and_a_folder_that_cannot_be_written_are_refused(config, monkeypatch):
    main, shared = SimpleNamespace(is_main_process=True), {"records": "results", "needed": []}
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("TORCHELASTIC_RUN_ID", "none")
    with pytest.raises(UserError, match=r"has TORCHELASTIC_RUN_ID, RANK, .*: unset them"):
        begin.begin(main, config, [], manifest=Path("manifest.json"), **shared)
    assert begin.begin(main, config, [], manifest=None, **shared)  # A replay starts none.
    monkeypatch.setattr(begin.os, "access", lambda path, mode: False)
    with pytest.raises(UserError, match="cannot be written: start in a folder of yours"):
        begin.begin(main, config, [], manifest=None, **shared)
