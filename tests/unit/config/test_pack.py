from pathlib import Path

import pytest
import yaml

import study_pack
from examples import convergence_records, finished_study, manifests
from scaling.config import stored
from scaling.config.config_file import read_config
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
        study_pack.main([f"--study={name}", "--force"])
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


def with_remedy(folder, **options):
    """A finished study with one remedy, trained with these options and asked for without any."""
    section = {"recipes": [{"name": "plain", "recipe": "tuned"}], "global_batches": [128]}
    recipes = finished_study.CONFIG["recipes"] | {"tuned": {"precision": "bf16"}}
    asked = {"recipes": recipes, "training": {"learning_rate": 0.1}}
    finished_study.make(folder, convergence=section, **asked)
    record = convergence_records.record("plain", 128, convergence_records.seeds(0.7), **options)
    place = folder / "results/convergence/remedy~plain/global_batch~128/runs.json"
    place.parent.mkdir(parents=True, exist_ok=True)
    CONVERGENCE.write(place, record)
    return place


def test_remedies_are_packed_with_the_runs(folder):
    record = with_remedy(folder)
    pack()
    there = folder / "studies/mine/convergence/remedy~plain/global_batch~128/runs.json"
    assert there.read_bytes() == record.read_bytes()
    record.unlink()
    with pytest.raises(UserError, match=r"lacks 1 of its .* files, the first is .*remedy~plain"):
        pack("--force")


def test_a_remedy_with_other_options_than_the_study_asks_for_is_refused(folder):
    with_remedy(folder, label_smoothing=0.1)
    with pytest.raises(UserError, match=r"runs.json was made with options .*, but the study asks"):
        pack()


def test_a_stored_study_that_differs_is_kept_unless_forced(folder):
    pack()
    stored = folder / "studies/mine" / SECOND_RUN
    stored.write_text("older")
    with pytest.raises(UserError, match=r"studies/mine holds a study with other content.*FORCE=1"):
        pack()
    assert stored.read_text() == "older"
    pack("--force")
    assert stored.read_bytes() == (folder / "results" / SECOND_RUN).read_bytes()


def test_force_drops_records_of_an_older_grid_and_keeps_what_a_person_wrote(folder):
    pack()
    studies = folder / "studies"
    (studies / "mine/runs/old.json").write_text("{}")
    (studies / "mine/plots/runs").mkdir(parents=True)
    (studies / "mine/plots/runs/trace.txt").write_text("by hand")
    (studies / "mine/README.md").write_text("8 GPUs, on Friday")
    pack("--force")
    kept = ["README.md", "plots/runs/trace.txt"]
    assert finished_study.stored(studies / "mine") == sorted([*finished_study.FILES, *kept])


def test_another_study_than_the_one_meant_is_refused(folder):
    with pytest.raises(UserError, match="results holds the study mine, not 'yours'"):
        study_pack.main(["--study", "yours"])


@pytest.mark.parametrize("path", finished_study.RECORDS[-2:])
def test_a_study_that_lacks_a_file_is_refused_and_leaves_nothing(folder, path):
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
        (
            {"recipes": {"plain": {"loader_workers": 2, "later": True}}},
            finished_study.CHECKSUM,
            "recipe_options",
        ),
        ({}, "other", "dataset checksum fae71f"),
    ],
)
def test_a_record_made_with_another_parameter_is_refused(folder, asked, checksum, made):
    finished_study.make(folder, **asked)
    manifests.write(folder / "resources/dataset/digits", checksum=checksum)
    with pytest.raises(UserError, match=f"gpus~1/.* was made with {made}.*, but the study asks"):
        pack()
