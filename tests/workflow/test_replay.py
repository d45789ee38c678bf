"""A finished study is packed. Its tables and report are rebuilt from the packed records."""

import base64
import re
import shutil

import pytest
import yaml

from small_study import copied

TELLING = {"tables_make", "study_config", "report_render"}


@pytest.fixture
def clone(finished_study, new_study, tmp_path_factory):
    """Return a clean copy of the project with the packed study, without results or dataset."""
    study = copied(finished_study.folder, tmp_path_factory.mktemp("packed") / "copy")
    packed = study.make("pack", "STUDY=tiny")
    assert packed.returncode == 0, packed.stdout
    fresh = new_study()
    (fresh.folder / "tiny.yaml").unlink()
    shutil.copytree(study.folder / "studies/tiny", fresh.folder / "studies/tiny")
    replay = ["snakemake", "--cores", "2", "--config", "replay=tiny"]
    fresh.command = lambda *options: [*replay, *options]
    return fresh


def tables(folder):
    """Return the contents of all tables and of the claims, by path."""
    paths = [*folder.rglob("*.csv"), *folder.rglob("claims.json")]
    return {path.relative_to(folder): path.read_bytes() for path in paths}


def test_replay_in_a_clean_clone_gives_equal_tables(finished_study, clone):
    assert set(clone.planned()) == TELLING
    replayed = clone.make("replay", "STUDY=tiny", "CORES=2")
    assert replayed.returncode == 0, replayed.stdout
    page = clone.folder / "results/replay/tiny/report.html"
    assert f"The report is {page.as_uri()}" in replayed.stdout
    made = tables(clone.folder / "results/replay/tiny/tables")
    assert made == tables(finished_study.folder / "results/tables") and made
    assert not (clone.folder / "resources").exists()
    assert [path.name for path in (clone.folder / "results").iterdir()] == ["replay"]

    assert "computed from the records in studies/tiny." in page.read_text()
    traces = (clone.folder / "studies/tiny/runs").rglob("trace.json.gz")
    links = re.findall(r'download="trace.json.gz" href="[^,]*,([^"]*)"', page.read_text())
    assert len(links) == 1  # Of batch sizes 10 and 20, the nearest to 128.
    assert base64.b64decode(links[0]) in [path.read_bytes() for path in traces]
    original = (finished_study.folder / "results/report.html").read_text()
    assert "computed from the records in" not in original

    assert "Nothing to be done" in clone.snakemake().stdout


CODE = """
from dataclasses import replace
from scaling.registry.strategy import DDP
ENTRY = replace(DDP, name="theirs")
open("ran", "w")
"""


def test_stored_study_brings_no_code(new_study):
    study = new_study()
    study.command = lambda *more: ["snakemake", "-nc1", "--config", "replay=h200x2-vit", *more]
    (study.folder / "theirs.py").write_text(CODE)
    path = study.folder / "studies/h200x2-vit/config.yaml"
    config = yaml.safe_load(path.read_text()) | {"plugins": ["theirs.py"]}
    config["model"]["name"], config["dataset"]["source"] = "theirs.py:net", "their_images"
    path.write_text(yaml.safe_dump(config))
    assert study.planned()["tables_make"] == 1
    config["grid"]["strategies"].append("theirs")
    path.write_text(yaml.safe_dump(config))
    refused = study.snakemake()
    assert "a stored study brings no code: give its plugins ['theirs.py']" in refused.stdout
    assert refused.returncode != 0 and not (study.folder / "ran").exists()
    given = study.snakemake("plugins=[theirs.py]", "partial=true")
    assert given.returncode == 0 and (study.folder / "ran").exists(), given.stdout
