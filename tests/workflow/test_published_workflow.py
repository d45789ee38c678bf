"""Published studies through the pipeline: no training, the same rules, a page and a refusal."""

import pandas as pd
import pytest

from scaling.published.study import read_folder
from small_study import TINY, Study

STUDIES = {"lab5-v100-dp", "lab4-dp", "notebook-dp", "lab5-a40-ddp"}
TABLES = {"timing", "speedup", "communication", "bandwidth", "printed", "audit"}
TABLES |= {"prediction", "cost_model"}
PAGE = "results/published.html"


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """A study of which nothing was run but `make published`."""
    study = Study(tmp_path_factory.mktemp("published"), TINY)
    finished = study.snakemake(PAGE)
    assert finished.returncode == 0, finished.stdout
    return study


def test_every_study_has_every_table_and_nothing_was_trained(published):
    results = published.folder / "results"
    for study in STUDIES:
        there = {path.stem for path in (results / "tables" / study).iterdir()}
        assert there == TABLES
    assert not (results / "runs").exists() and not (published.folder / "resources").exists()
    assert "lab5-a40-ddp" in (published.folder / PAGE).read_text()


def test_each_studys_bytes_are_those_of_its_own_model(published):
    per_iteration = {
        study: pd.read_csv(published.folder / f"results/tables/{study}/bandwidth.csv")
        .query("gpus == 2")
        .bytes_per_iteration.iloc[0]
        for study in STUDIES
    }
    # DataParallel on 2 GPUs: 2 · K; DistributedDataParallel: K
    assert per_iteration["lab5-v100-dp"] == 2 * 44_695_848
    assert per_iteration["notebook-dp"] == 2 * 46_758_048
    assert per_iteration["lab5-a40-ddp"] == 44_695_848
    assert pd.isna(per_iteration["lab4-dp"])


def test_a_figure_that_cannot_be_derived_says_why(published):
    notes = pd.read_csv(published.folder / "results/tables/lab4-dp/bandwidth.csv").note
    assert notes.str.contains("size of the gradients unknown").all()
    assert notes.str.contains("no correct interconnect sweep").all()
    speedup = pd.read_csv(published.folder / "results/tables/lab5-a40-ddp/speedup.csv")
    (row,) = speedup.query("gpus == 2 and batch_size == 512").itertuples()
    assert row.note == "fixed global batch: no single-GPU time for b=1024 (not in the grid)"


def test_a_second_run_does_nothing_and_an_edited_time_makes_its_study_again(published):
    assert published.planned(PAGE) == {}
    path = published.folder / "studies/published/timings.csv"
    path.write_text(path.read_text().replace("9.06,8.811", "9.07,8.811"))
    planned = published.planned(PAGE)
    # All four lie in one file; who reads a table that stayed as it was runs no further.
    assert planned["tables_published"] == len(STUDIES)


def test_a_study_in_a_folder_of_its_own_is_one_more(published):
    folder = published.folder / "studies/mine"
    folder.mkdir()
    text = (published.folder / "studies/published/timings.csv").read_text()
    lines = [line for line in text.splitlines() if line.startswith(("study,", "lab4-dp,"))]
    (folder / "timings.csv").write_text("\n".join(lines).replace("lab4-dp", "mine") + "\n")
    assert [study.name for study in read_folder(folder)] == ["mine"]
    assert published.snakemake(PAGE).returncode == 0
    assert (published.folder / "results/tables/mine/audit.csv").exists()
    assert (
        f'id="{folder.relative_to(published.folder)}/mine"' in (published.folder / PAGE).read_text()
    )


def test_a_wrong_field_is_named_before_any_job(published):
    folder = published.folder / "studies/wrong"
    folder.mkdir()
    text = (published.folder / "studies/published/timings.csv").read_text()
    (folder / "timings.csv").write_text(text.replace("24.94", "-24.94", 1))
    refused = published.snakemake(PAGE)
    assert refused.returncode != 0
    assert (
        "studies/wrong/timings.csv, line 2, column epoch_seconds: '-24.94': Input should be"
        in refused.stdout
    )
    # Whoever does not ask for published studies is not disturbed.
    assert published.snakemake("--dry-run", "results/cells.csv").returncode == 0
