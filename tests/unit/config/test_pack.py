from pathlib import Path

import pytest
import yaml

import study_pack
from examples import convergence_records, finished_study, manifests
from scaling.config import stored
from scaling.config.stored import read_config
from scaling.core.errors import UserError
from scaling.core.records.convergence import CONVERGENCE

SECOND_RUN = finished_study.FILES[-1]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where a finished study lies in results/; it is the working folder."""
    finished_study.make(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def pack(*options):
    study_pack.main(["--study", "mine", *options])


def test_a_packed_study_is_its_records_byte_for_byte_without_weights(folder, capsys):
    pack()
    assert "packed 8 files" in (said := capsys.readouterr().out)
    assert "write studies/mine/README.md: the machine" in said
    assert finished_study.stored(folder / "studies/mine") == finished_study.FILES
    for path in finished_study.FILES:
        source = folder / "results" / path
        if path == "manifest.json":
            source = folder / "resources/dataset/digits" / path
        assert (folder / "studies/mine" / path).read_bytes() == source.read_bytes(), path


@pytest.mark.parametrize("name", ["../../x", "..", "", "a/b", "--help", "mine\n"])
def test_a_study_is_packed_below_studies_alone(folder, name):
    config = read_config(Path("results/config.yaml")) | {"study": name}
    Path("results/config.yaml").write_text(yaml.safe_dump(config))
    before = set(folder.parent.rglob("*"))
    with pytest.raises(UserError, match=r"is no name \(allowed: letters"):
        study_pack.main([f"--study={name}", "--force=True"])
    assert set(folder.parent.rglob("*")) == before


def test_the_end_of_a_runs_log_and_its_trace_are_packed_and_packed_again_the_same(folder, capsys):
    trace = Path(SECOND_RUN).with_name("trace.json.gz")
    (Path("results") / trace).write_bytes(b"a step")
    log = Path("logs/train_run", Path(SECOND_RUN).relative_to("runs").parent).with_suffix(".log")
    log.parent.mkdir(parents=True)
    log.write_text("".join(f"line {number}\n" for number in range(100)))
    pack()
    kept = Path("studies/mine", log).read_text().splitlines()
    assert (len(kept), kept[0], kept[-1]) == (40, "line 60", "line 99")
    assert Path("studies/mine", trace).read_bytes() == b"a step"
    stored.check(Path("studies/mine"), read_config(Path("results/config.yaml")))
    before = Path("studies/mine").stat().st_ino
    pack()
    assert "studies/mine holds this study already" in capsys.readouterr().out
    assert Path("studies/mine").stat().st_ino == before


def test_remedies_are_packed_unless_their_options_are_others_than_asked_for(folder):
    section = {"recipes": [{"name": "plain", "recipe": "tuned"}], "global_batches": [128]}
    recipes = finished_study.CONFIG["recipes"] | {"tuned": {"precision": "bf16"}}
    asked = {"recipes": recipes, "training": {"learning_rate": 0.1}}
    finished_study.make(folder, convergence=section, **asked)
    place = Path("convergence/remedy~plain/global_batch~128/runs.json")
    seeds = convergence_records.seeds(0.7)
    made = convergence_records.record("plain", 128, seeds)
    CONVERGENCE.write(folder / "results" / place, made)
    pack()
    kept = (folder / "studies/mine" / place).read_bytes()
    assert kept == (folder / "results" / place).read_bytes()
    made = convergence_records.record("plain", 128, seeds, label_smoothing=0.1)
    CONVERGENCE.write(folder / "results" / place, made)
    with pytest.raises(UserError, match=r"runs.json was made with options .*, but the study asks"):
        pack()


def test_a_study_that_differs_is_replaced_by_force_alone_and_other_files_are_kept(folder):
    pack()
    study = folder / "studies/mine"
    (study / SECOND_RUN).write_text("older")
    (study / "runs/old.json").write_text("{}")
    (study / "README.md").write_text("8 GPUs, on Friday")
    with pytest.raises(UserError, match=r"studies/mine holds a study with other content.*FORCE=1"):
        pack()
    assert (study / SECOND_RUN).read_text() == "older"
    pack("--force", "True")
    assert (study / SECOND_RUN).read_bytes() == (folder / "results" / SECOND_RUN).read_bytes()
    assert finished_study.stored(study) == sorted([*finished_study.FILES, "README.md"])


def test_another_study_than_the_one_meant_is_refused(folder):
    with pytest.raises(UserError, match="results holds the study mine, not 'yours'"):
        study_pack.main(["--study", "yours"])


def test_a_study_that_lacks_a_file_is_refused_and_leaves_nothing(folder):
    path = finished_study.RECORDS[-1]
    (folder / "results" / path).unlink()
    with pytest.raises(UserError, match=rf"lacks 1 of its .* files, the first is results/{path};"):
        pack()
    assert not (folder / "studies").exists()


def test_a_partial_study_is_packed_without_the_missing_runs(folder):
    finished_study.make(folder, partial=True)
    (folder / "results" / SECOND_RUN).unlink()
    pack()
    assert finished_study.stored(folder / "studies/mine") == finished_study.FILES[:-1]


@pytest.mark.parametrize(
    ("asked", "checksum", "made"),
    [
        ({"training": {"learning_rate": 0.05}}, finished_study.CHECKSUM, r"learning_rate 0\.1"),
        ({"recipes": {"plain": {"later": True}}}, finished_study.CHECKSUM, "recipe_options"),
        ({}, "other", "dataset checksum fae71f"),
    ],
)
def test_a_record_made_with_another_parameter_is_refused(folder, asked, checksum, made):
    finished_study.make(folder, **asked)
    manifests.write(folder / "resources/dataset/digits", checksum=checksum)
    with pytest.raises(UserError, match=f"gpus~1/.* was made with {made}.*, but the study asks"):
        pack()
