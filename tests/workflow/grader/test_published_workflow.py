"""Published studies through the pipeline: what changes runs again, and training is none of it.

What the page says is in the snapshot `published`.
"""

PAGE = "results/published.html"


def test_an_edited_time_or_a_new_folder_makes_the_page_again(study):
    made = study.snakemake(PAGE)
    assert made.returncode == 0, made.stdout
    assert not study.planned(PAGE)
    text = (study.folder / "studies/published/timings.csv").read_text()
    folder = study.folder / "studies/wrong"
    folder.mkdir()
    (folder / "timings.csv").write_text(text.replace("24.94", "-24.94", 1))
    refused = study.snakemake(PAGE, "--show-failed-logs")
    assert refused.returncode != 0
    assert "studies/wrong/timings.csv, line 2, column epoch_seconds: '-24.94'" in refused.stdout
