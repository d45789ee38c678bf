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


def test_the_page_follows_a_study_and_names_the_cell_that_fails_as_snakemake_and_status_do(study):
    # Two processes do not meet within a millisecond; one does.
    study.record(batch_size=20).unlink()
    own = {"parts": ["scaling"], "machine.collective_timeout_seconds": 0.001}
    study.configure(own | {"grid.gpus": [1, 2]})
    path = study.folder / "results/report.html"
    with watched(path) as pages:
        failed = study.snakemake("--show-failed-logs")
    log = "logs/train_run/recipe~plain/strategy~ddp/gpus~2/batch_size~10/seed~0.log"
    assert failed.returncode != 0 and "not present when the DAG was created" not in failed.stdout
    assert "Error in rule train_run" in failed.stdout and log in failed.stdout
    assert "training of plain/ddp, 2 GPUs, batch 10 per GPU, seed 0 failed" in failed.stdout
    assert study.record(gpus=1, batch_size=20).exists()
    assert not study.record(gpus=2).exists()

    before, *running, page = pages
    assert page == path.read_text() and REFRESH not in before + page
    assert all(REFRESH in text and "<h2>Fastest</h2>" in text for text in running)
    assert "Cards and answers come later" not in "".join(running)
    counts = [head.removeprefix("running, ") for head in dict.fromkeys(heads(running))]
    assert counts == [
        "1 of 4: 1 done, 3 waiting",
        "1 of 4: 1 running, 3 waiting",
        "1 of 4: 1 done, 1 running, 2 waiting",
        "2 of 4: 2 done, 1 running, 1 waiting",
    ]
    assert re.search(r"Written \w+ \d+ \w+ \d{4}, [\d:]+\. The next", page)
    assert heads([page]) == ["not running, 2 of 4: 2 done, 1 failed, 1 waiting"] and log in page
    status = ["make", "--no-print-directory", "--old-file=small-env", "status"]
    said = subprocess.run(status, cwd=study.folder, capture_output=True, text=True, check=True)
    assert said.stdout.startswith(f"tiny (results/config.yaml), {heads([page])[0]}\n")
    # Though newer than most, it is not taken for the report.
    assert study.planned()["report_render"] == 1

    timing = "results/tables/tiny/timing.csv"
    partial = study.snakemake(timing, "--config", "partial=true")
    assert partial.returncode == 0, partial.stdout
    states = pd.read_csv(study.folder / timing)["status"]
    assert [*states] == ["ok", "ok", "missing", "missing"]


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
