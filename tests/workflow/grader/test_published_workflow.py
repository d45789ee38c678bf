"""Published studies through the pipeline: no training, and what changes runs again.

What their tables hold is in the snapshot `published`.
"""

PAGE = "results/published.html"
STUDIES = 4
"""Of studies/published, all in one timings.csv."""


def test_the_page_takes_no_training(new_study):
    planned = new_study().planned(PAGE)
    assert planned["tables_published"] == STUDIES
    assert not {rule for rule in planned if rule.startswith(("dataset_", "train_", "quantize_"))}


def test_an_edited_time_and_a_new_folder_make_their_studies_again(study):
    made = study.snakemake(PAGE)
    assert made.returncode == 0, made.stdout
    assert not study.planned(PAGE)
    path = study.folder / "studies/published/timings.csv"
    text = path.read_text()
    path.write_text(text.replace("9.060,8.811", "9.070,8.811"))
    assert study.planned(PAGE)["tables_published"] == STUDIES
    folder = study.folder / "studies/mine"
    folder.mkdir()
    lines = [line for line in text.splitlines() if line.startswith(("study,", "lab4-dp,"))]
    (folder / "timings.csv").write_text("\n".join(lines).replace("lab4-dp", "mine") + "\n")
    assert study.planned(PAGE)["tables_published"] == STUDIES + 1


def test_a_wrong_field_is_named_before_any_job(new_study):
    study = new_study()
    folder = study.folder / "studies/wrong"
    folder.mkdir()
    text = (study.folder / "studies/published/timings.csv").read_text()
    (folder / "timings.csv").write_text(text.replace("24.94", "-24.94", 1))
    refused = study.snakemake(PAGE)
    assert refused.returncode != 0
    assert "studies/wrong/timings.csv, line 2, column epoch_seconds: '-24.94'" in refused.stdout
    # Whoever does not ask for published studies is not disturbed.
    assert study.snakemake("--dry-run", "results/cells.csv").returncode == 0
