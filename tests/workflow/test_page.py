"""The partial report and the status of a study with a failed run."""

import time

import pandas as pd


def test_failed_run_leaves_a_partial_page_and_status(study):
    # Two processes do not meet within a millisecond; one does.
    study.record(batch_size=20).unlink()
    own = {"parts": ["scaling"], "machine.collective_timeout_seconds": 0.001}
    study.configure(own | {"grid.gpus": [1, 2]})
    (study.folder / "results/report.html").unlink()
    failed = study.snakemake("--show-failed-logs")
    log = "logs/train_run/recipe~plain/strategy~ddp/gpus~2/batch_size~10/seed~0.log"
    assert "Error in rule train_run" in failed.stdout and log in failed.stdout
    assert "training of plain/ddp, 2 GPUs, batch 10 per GPU, seed 0 failed" in failed.stdout
    assert study.record(gpus=1, batch_size=20).exists()
    assert not study.record(gpus=2).exists()

    page, deadline = study.folder / "results/partial/report.html", time.monotonic() + 120
    while not page.exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert "Partial: 2 configurations are missing" in page.read_text()
    timing = "results/partial/tables/tiny/timing.csv"
    made = (study.folder / timing).stat().st_mtime_ns
    assert [*pd.read_csv(study.folder / timing)["status"]] == ["ok", "ok", "missing", "missing"]
    again = study.make("report")
    assert again.returncode == 0 and "Nothing to be done" in again.stdout, again.stdout
    assert (study.folder / timing).stat().st_mtime_ns == made
    status = study.make("status").stdout
    head = "tiny (results/config.yaml), not running, 2 of 4: 2 done, 1 failed, 1 waiting\n"
    assert status.startswith(head) and log in status
    assert not (study.folder / "results/report.html").exists()
