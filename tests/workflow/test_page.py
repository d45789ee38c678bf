"""The page of a study while it runs, and after it was stopped."""

import re
import subprocess
import time
from contextlib import contextmanager

import pandas as pd

REFRESH = '<meta http-equiv="refresh" content="30">'


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


def test_a_cell_that_fails_is_named_with_its_log_by_snakemake_the_page_and_status(study):
    # Two processes do not meet within a millisecond; one does.
    study.record(batch_size=20).unlink()
    own = {"parts": ["scaling"], "machine.collective_timeout_seconds": 0.001}
    study.configure(own | {"grid.gpus": [1, 2], "grid.batch_sizes": [20]})
    failed = study.snakemake("--show-failed-logs")
    log = "logs/train_run/recipe~plain/strategy~ddp/gpus~2/batch_size~20/seed~0.log"
    assert failed.returncode != 0
    assert "Error in rule train_run" in failed.stdout and log in failed.stdout
    assert "training of plain/ddp, 2 GPUs, batch 20 per GPU, seed 0 failed" in failed.stdout
    assert study.record(gpus=1, batch_size=20).exists()
    assert not study.record(gpus=2, batch_size=20).exists()

    page = (study.folder / "results/report.html").read_text()
    assert REFRESH not in page and re.search(r"Written \w+ \d+ \w+ \d{4}, [\d:]+\. The next", page)
    assert heads([page]) == ["not running, 1 of 2: 1 done, 1 failed"] and log in page
    status = ["make", "--no-print-directory", "--old-file=small-env", "status"]
    said = subprocess.run(status, cwd=study.folder, capture_output=True, text=True, check=True)
    assert said.stdout.startswith(f"tiny (results/config.yaml), {heads([page])[0]}\n")
    # Though newer than most, it is not taken for the report.
    assert study.planned()["report_render"] == 1

    timing = "results/tables/tiny/timing.csv"
    partial = study.snakemake(timing, "--config", "partial=true")
    assert partial.returncode == 0, partial.stdout
    assert pd.read_csv(study.folder / timing)["status"].tolist() == ["ok", "missing"]


def test_a_kill_of_snakemake_ends_what_the_page_says(study):
    study.configure({"grid.batch_sizes": [30], "training.measured_seconds": 60.0})
    page = study.folder / "results/report.html"
    with subprocess.Popen(study.command(), cwd=study.folder) as snakemake:
        while 'class="chip">running, 0 of 1: 1 running;' not in page.read_text():
            time.sleep(0.1)
        snakemake.kill()
    deadline = time.monotonic() + 30
    while REFRESH in page.read_text() and time.monotonic() < deadline:
        time.sleep(0.1)
    said = "ended without a word, as by SIGKILL; before: running, 0 of 1: 1 running"
    assert heads([page.read_text()]) == [said] and REFRESH not in page.read_text()
