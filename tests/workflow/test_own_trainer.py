"""docs/own_trainer.md, run as it stands there."""

import json
import re

import pytest
import yaml
from snakemake.utils import update_config

from examples.own_page import FILES
from scaling.config.config import check
from scaling.core.errors import UserError
from small_study import ROOT, Study, forked

COMMAND = ["--profile", "profiles/local", "--cores", "2", "--configfile", "config/scaling.yaml"]
COMMAND += ["mine.yaml", "quick.yaml"]
QUICK = {
    "grid": {"batch_sizes": [512]},
    "interconnect": {"message_bytes": [4096], "warmup": 1, "repeats": 3, "iterations": 1},
    "peaks": {"matrix_sizes": [64], "copy_bytes": 1000, "sustained_seconds": 0.0},
}
"""One batch size, and limits of the machine that take seconds."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = Study(tmp_path_factory.mktemp("own") / "copy", {}).folder
    for name, text in FILES.items():
        (made / name).write_text(text)
    (made / "quick.yaml").write_text(yaml.safe_dump(QUICK))
    return made


def test_a_script_of_ones_own_has_its_report(folder):
    said = forked(COMMAND, folder)
    assert said.returncode == 0, said.stdout
    paths = sorted((folder / "results/runs").rglob("run.json"))
    records = [json.loads(path.read_text()) for path in paths]
    assert [record["status"] for record in records] == ["ok"] * 2
    assert all(record["cell"]["strategy"] == "own" for record in records)
    speedups = (folder / "results/tables/mine/speedup.csv").read_text()
    assert speedups.count("\nmine,own,") == 2
    page = (folder / "results/report.html").read_text()
    assert not re.search(r"\bnan\b", re.sub(r"<svg.*?</svg>", "", page, flags=re.DOTALL))
    assert not (folder / "resources/dataset/cifar10").exists()


def test_an_edit_of_the_script_measures_it_again(folder):
    with (folder / "train.py").open("a") as script:
        script.write("print('the end')\n")
    again = forked([*COMMAND, "-n"], folder)
    assert re.search(r"train[ _]command\s+2", again.stdout), again.stdout
    assert "1 other measurement" not in again.stdout and "peaks" not in again.stdout


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"command": "python train.py --batch-size {batch_size}"}, r"it should have \{gpus\}"),
        ({"command": "python train.py {gpus} {gpu}"}, r"it should have no \{gpu\}"),
        ({"command": "python 'train.py {gpus}"}, "No closing quotation"),
        ({"command": "python train.py {gpus}"}, r"takes no \{batch_size\}"),
        ({}, r"dataset\.source is own \(allowed: where nothing but"),
    ],
)
def test_a_command_that_cannot_be_and_other_data_beside_it_are_refused(changes, said):
    config = yaml.safe_load((ROOT / "config/config.yaml").read_text())
    for text in ((ROOT / "config/scaling.yaml").read_text(), FILES["mine.yaml"]):
        update_config(config, yaml.safe_load(text))
    config["recipes"]["mine"] |= changes
    if not changes:
        config["dataset"]["source"], config["grid"]["recipes"] = "own", ["mine", "plain"]
    with pytest.raises(UserError, match=said):
        check(config)
