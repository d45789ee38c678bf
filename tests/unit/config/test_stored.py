"""A finished study is packed into studies/; a stored study has all its files."""

import os
import shutil
from contextlib import nullcontext
from pathlib import Path

import pytest

import study_pack
from examples.stored import CONFIG, FILES, SOURCE, files_in, lay_out_finished
from scaling.config import stored
from scaling.core.errors import UserError
from scaling.core.records.kind import DATASET

STUDY, LAST = Path("studies/cpu"), FILES[-1]
TRACE = str(Path(LAST).with_name("trace.json.gz"))
LOG = str(Path("logs/train_run", Path(LAST).relative_to("runs").parent).with_suffix(".log"))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return the working directory, in which results/ has a finished study."""
    lay_out_finished(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def pack(*options):
    study_pack.main(["--study", "cpu", *options])


def test_packed_study_has_records_logs_and_traces(folder, capsys):
    results = folder / "results"
    (results / TRACE).write_bytes(b"a step")
    Path(LOG).parent.mkdir(parents=True)
    Path(LOG).write_text("".join(f"line {number}\n" for number in range(100)))
    pack()
    assert f"packed {len(FILES) + 2} files" in (said := capsys.readouterr().out)
    assert "write studies/cpu/README.md: the machine" in said
    assert files_in(STUDY) == sorted([*FILES, TRACE, LOG])
    for path in {*FILES, TRACE} - {"manifest.json"}:
        assert (STUDY / path).read_bytes() == (results / path).read_bytes(), path
    kept = (STUDY / LOG).read_text().splitlines()
    assert (len(kept), kept[0], kept[-1]) == (40, "line 60", "line 99")
    stored.check(STUDY, CONFIG)


@pytest.mark.parametrize("name", ["../../x", "..", "", "--help", "cpu\n", "yours"])
def test_study_is_packed_by_its_name_below_studies(folder, name):
    before = {*folder.parent.iterdir(), *folder.rglob("*")}
    with pytest.raises(UserError, match=r"results holds the study cpu, not "):
        study_pack.main([f"--study={name}", "--force=True"])
    assert {*folder.parent.iterdir(), *folder.rglob("*")} == before


def test_pack_replaces_a_study_by_force_alone(folder):
    pack()
    (STUDY / LAST).write_text("older")
    (STUDY / "runs/old.json").write_text("{}")
    (STUDY / "README.md").write_text("8 GPUs, on Friday")
    with pytest.raises(UserError, match=r"studies/cpu holds a study: .*FORCE=1"):
        pack()
    assert (STUDY / LAST).read_text() == "older"
    pack("--force", "True")
    assert (STUDY / LAST).read_bytes() == (Path("results") / LAST).read_bytes()
    assert files_in(STUDY) == sorted([*FILES, "README.md"])


def test_stored_study_without_a_run_is_refused_unless_partial(folder):
    (folder / "results" / LAST).unlink()
    with pytest.raises(UserError, match=rf"1 of its .* files, the first is results/{LAST};"):
        pack()
    assert not STUDY.parent.exists()
    lay_out_finished(folder, partial=True)
    (folder / "results" / LAST).unlink()
    pack()
    assert files_in(STUDY) == FILES[:-1]
    sweep = folder / "results/interconnect/gpus~2/sweep.json"
    sweep.write_text(sweep.read_text().replace('"gpus": 2', '"gpus": 3'))
    told = r"sweep\.json: checksum mismatch: restore it, or delete it"
    with pytest.raises(UserError, match=told):
        pack()


def test_record_of_other_images_is_not_packed(folder):
    manifest = folder / "resources/dataset/digits/manifest.json"
    DATASET.write(manifest, DATASET.read(manifest) | {"checksum": "fae71f"})
    with pytest.raises(UserError, match=r"run\.json is of other images than the study's: run it"):
        pack()


@pytest.fixture
def study(tmp_path):
    """Return the folder of a stored study with all its files and a README."""
    shutil.copytree(SOURCE, tmp_path / "mine")
    (tmp_path / "mine/README.md").touch()
    return tmp_path / "mine"


def test_wrong_name_is_answered_by_all_studies(study):
    (study.parent / "published").mkdir()
    shutil.copytree(study, study.parent / "second")
    for name in ("yours", "", "..", "mine/runs", "published"):
        with pytest.raises(UserError, match=f"has no study '{name}': there are mine, second$"):
            stored.find(study.parent, name)
    assert stored.find(study.parent, "mine") == study
    with pytest.raises(UserError, match=r"has no study, as it lacks config\.yaml: make study or"):
        stored.read(study.parent)


@pytest.mark.parametrize("name", ["config.yaml", LAST, LOG, "runs", "manifest.json"])
def test_link_out_of_a_study_and_special_file_are_refused(study, name, tmp_path):
    (study / LOG).parent.mkdir(parents=True)
    (study / LOG).touch()
    (study / name).rename(tmp_path / "elsewhere")
    (study / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UserError, match=rf"mine/{name}.* is a link out of .*mine; put the file"):
        stored.check(study, stored.read(study))
    (study / name).unlink()
    os.mkfifo(study / name)
    told = rf"mine/{name} is no file" if name in ("config.yaml", LOG) else "lacks 12? of the 31"
    with pytest.raises(UserError, match=told):
        stored.check(study, stored.read(study))


@pytest.mark.parametrize(
    ("path", "partial", "told"),
    [
        ("manifest.json", False, "lacks 1 of the 31 files .* replay .*, or restore them$"),
        (LAST, False, f"first is {LAST}: replay .* them, or pass --config partial=true"),
        (LAST, True, None),
        ("interconnect/gpus~2/sweep.json", True, "lacks 1 of the 15 files.*restore them$"),
    ],
)
def test_missing_file_is_refused_unless_a_partial_studys_run(study, path, partial, told):
    (study / path).unlink()
    with pytest.raises(UserError, match=told) if told else nullcontext():
        stored.check(study, CONFIG | {"partial": partial})


def test_unknown_record_or_large_trace_is_refused(study):
    stored.check(study, CONFIG)
    for off, path in (
        ("int8", "quantization/seed~0/variant~.*/quantization.json"),
        ("accuracy", r"convergence/remedy~linear_warmup/.*/runs\.json"),
    ):
        parts = [part for part in CONFIG["parts"] if part != off]
        with pytest.raises(UserError, match=rf"mine/{path}: .* without other keys, or move "):
            stored.check(study, CONFIG | {"parts": parts})
    (study / TRACE).write_bytes(b" " * 1_000_001)
    with pytest.raises(UserError, match=rf"mine/{TRACE} is no file of at most 1,000,000 bytes"):
        stored.check(study, CONFIG)
