"""The page of a study while it runs, and after it was stopped."""

import re
import subprocess
import sys
from contextlib import contextmanager

import yaml

from small_study import Study, forked

REFRESH = '<meta http-equiv="refresh" content="30">'
SCRIPT = """
import json, os, sys
for epoch in range(3):
    print(json.dumps({"epoch": epoch, "seconds": 0.001}), flush=True)
"""
OWN = {"mine": {"command": "python train.py {gpus} {batch_size}"}}


@contextmanager
def watched(page):
    """A list that gets every text that the file has while the block runs, in order."""
    copies = page.parents[1] / "copies"
    copies.mkdir()
    often = f"while sleep 0.05; do cp '{page}' '{copies}'/$(date +%s%N); done 2> /dev/null"
    texts = []
    with subprocess.Popen(["sh", "-c", often]) as process:
        yield texts
        process.kill()
    found = [path.read_text() for path in sorted(copies.iterdir())]
    texts += [text for text, before in zip(found, ["", *found], strict=False) if text != before]


def heads(pages):
    """What the pages say of the study first."""
    return [re.search(r'class="chip[^>]*>([^<]*?)(; until about|<)', page)[1] for page in pages]


def test_the_page_is_there_from_the_first_job_on_and_becomes_the_report(study):
    page = study.folder / "results/report.html"
    study.configure({"grid.batch_sizes": [10, 20, 30]})
    with watched(page) as pages:
        said = study.snakemake()
    assert said.returncode == 0, said.stdout
    assert "not present when the DAG was created" not in said.stdout
    before, *running, report = pages
    assert report == page.read_text() and REFRESH not in before + report
    assert all(REFRESH in text and "<h2>Fastest</h2>" in text for text in running)
    assert "Cards and answers come later" not in "".join(running)
    counts = ["2 of 3: 2 done, 1 waiting", "2 of 3: 2 done, 1 running", "3 of 3: 3 done"]
    assert [*dict.fromkeys(heads(running))] == [f"running, {count}" for count in counts]


def test_a_study_that_stops_leaves_a_page_that_says_so_and_status_the_same(study):
    # Two processes do not meet within a millisecond.
    study.configure(
        {"grid.gpus": [1, 2], "grid.batch_sizes": [20], "machine.collective_timeout_seconds": 0.001}
    )
    study.snakemake()
    page = (study.folder / "results/report.html").read_text()
    assert REFRESH not in page and re.search(r"Written \w+ \d+ \w+ \d{4}, [\d:]+\. The next", page)
    assert heads([page]) == ["not running, 1 of 2: 1 done, 1 failed"]
    status = [sys.executable, "workflow/scripts/study_status.py"]
    said = subprocess.run(status, cwd=study.folder, capture_output=True, text=True, check=True)
    assert said.stdout.startswith(f"tiny (results/config.yaml), {heads([page])[0]}\n")
    # Though newer than most, it is not taken for the report.
    assert study.planned()["report_render"] == 1


def test_the_page_of_a_study_that_was_stopped_is_not_taken_for_its_report(new_study):
    study = new_study()
    (study.folder / "results").mkdir()
    (study.folder / "results/report.html").write_text("not running")
    planned = study.planned()
    assert planned["report_render"] == 1 and planned["train_run"] == 2


def test_a_study_of_commands_has_its_page_too(tmp_path):
    folder = Study(tmp_path / "copy", {}).folder
    (folder / "train.py").write_text(SCRIPT)
    mine = {"study": "mine", "recipes": OWN, "device": "cpu"}
    mine["grid"] = {"recipes": ["mine"], "gpus": [1], "batch_sizes": [10, 20]}
    mine["peaks"] = {"matrix_sizes": [64], "copy_bytes": 1000, "sustained_seconds": 0.0}
    (folder / "mine.yaml").write_text(yaml.safe_dump(mine))
    with watched(folder / "results/report.html") as pages:
        said = forked(["--cores", "2", "--configfile", "config/scaling.yaml", "mine.yaml"], folder)
    assert said.returncode == 0, said.stdout
    *running, report = pages
    assert heads(running[:1]) == ["running, 0 of 2: 2 waiting"] and REFRESH not in report
    assert "running, 1 of 2: 1 done, 1 running" in heads(running)
    assert "<h2>Fastest</h2>" in running[-1]
