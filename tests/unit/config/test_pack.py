"""A finished study is packed as it is, below studies/ alone, and no other one in its place."""

from pathlib import Path

import pytest

import study_pack
from examples import convergence_records, finished_study, manifests
from scaling.config import stored
from scaling.config.stored import read_config
from scaling.core.errors import UserError
from scaling.core.records.convergence import CONVERGENCE

FILES, STUDY = finished_study.FILES, Path("studies/mine")
TECHNIQUE = "convergence/remedy~plain/global_batch~128/runs.json"
WITH_TECHNIQUE = {
    "convergence": {
        "recipes": [{"name": "plain", "recipe": "tuned"}],
        "global_batches": [128],
    },
    "recipes": finished_study.CONFIG["recipes"] | {"tuned": {"precision": "bf16"}},
    "training": {"learning_rate": 0.1},
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where a finished study lies in results/; it is the working folder."""
    finished_study.make(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def pack(*options):
    study_pack.main(["--study", "mine", *options])


def test_a_packed_study_is_its_records_the_end_of_logs_and_traces_without_weights(folder, capsys):
    trace = Path(FILES[-1]).with_name("trace.json.gz")
    (Path("results") / trace).write_bytes(b"a step")
    log = Path("logs/train_run", Path(FILES[-1]).relative_to("runs").parent).with_suffix(".log")
    log.parent.mkdir(parents=True)
    log.write_text("".join(f"line {number}\n" for number in range(100)))
    pack()
    assert "packed 10 files" in (said := capsys.readouterr().out)
    assert "write studies/mine/README.md: the machine" in said
    assert finished_study.stored(STUDY) == sorted([*FILES, str(trace), str(log)])
    for path in (*finished_study.RECORDS, "config.yaml", trace):
        assert (STUDY / path).read_bytes() == (Path("results") / path).read_bytes(), path
    kept = (STUDY / log).read_text().splitlines()
    assert (len(kept), kept[0], kept[-1]) == (40, "line 60", "line 99")
    stored.check(STUDY, read_config(Path("results/config.yaml")))
    pack()
    assert "studies/mine holds this study already" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "told"),
    [
        *((name, "is no name") for name in ("../../x", "..", "", "a/b", "--help", "mine\n")),
        ("yours", "results holds the study mine, not 'yours'"),
    ],
)
def test_a_study_is_packed_by_its_name_and_below_studies_alone(folder, name, told):
    before = set(folder.parent.rglob("*"))
    with pytest.raises(UserError, match=told):
        study_pack.main([f"--study={name}", "--force=True"])
    assert set(folder.parent.rglob("*")) == before


def test_a_study_that_differs_is_replaced_by_force_alone_and_other_files_are_kept(folder):
    pack()
    (STUDY / FILES[-1]).write_text("older")
    (STUDY / "runs/old.json").write_text("{}")
    (STUDY / "README.md").write_text("8 GPUs, on Friday")
    with pytest.raises(UserError, match=r"studies/mine holds a study with other content.*FORCE=1"):
        pack()
    assert (STUDY / FILES[-1]).read_text() == "older"
    pack("--force", "True")
    assert (STUDY / FILES[-1]).read_bytes() == (Path("results") / FILES[-1]).read_bytes()
    assert finished_study.stored(STUDY) == sorted([*FILES, "README.md"])


@pytest.mark.parametrize("partial", [False, True])
def test_a_study_that_lacks_a_run_is_refused_unless_it_is_partial(folder, partial):
    finished_study.make(folder, partial=partial)
    (folder / "results" / FILES[-1]).unlink()
    if partial:
        pack()
        assert finished_study.stored(STUDY) == FILES[:-1]
        return
    with pytest.raises(UserError, match=rf"1 of its .* files, the first is results/{FILES[-1]};"):
        pack()
    assert not STUDY.parent.exists()


@pytest.mark.parametrize(
    ("asked", "checksum", "options", "made"),
    [
        ({"training": {"learning_rate": 0.05}}, finished_study.CHECKSUM, {}, r"learning_rate 0\.1"),
        ({"recipes": {"plain": {"later": True}}}, finished_study.CHECKSUM, {}, "recipe_options"),
        ({}, "other", {}, "dataset checksum fae71f"),
        (WITH_TECHNIQUE, finished_study.CHECKSUM, {}, None),
        (WITH_TECHNIQUE, finished_study.CHECKSUM, {"label_smoothing": 0.1}, "options"),
    ],
)
def test_a_record_made_with_another_parameter_is_refused(folder, asked, checksum, options, made):
    finished_study.make(folder, **asked)
    manifests.write(folder / "resources/dataset/digits", checksum=checksum)
    record = convergence_records.record("plain", 128, convergence_records.seeds(0.7), **options)
    if "convergence" in asked:
        CONVERGENCE.write(folder / "results" / TECHNIQUE, record)
    if made is None:
        pack()
        return
    with pytest.raises(UserError, match=f"json was made with {made}.*, but the study asks"):
        pack()
