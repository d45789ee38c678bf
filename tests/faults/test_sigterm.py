"""SIGTERM at any moment, and a closed terminal: Snakemake ends, and leaves no lock."""

import os
import pty
import signal
import subprocess

import pytest

PATIENCE_SECONDS = 15
LONG = {"dataset__train_images": 6000, "grid__batch_sizes": [1]}
MANIFEST = "resources/dataset/synthetic/manifest.json"
AT_THE_MOMENT = """
import logging, signal

class Sender(logging.Handler):
    def emit(self, record):
        if getattr(getattr(record, "event", None), "name", "") == "JOB_FINISHED":
            os.kill(os.getpid(), signal.SIGTERM)

logger.addHandler(Sender())
"""
"""A job's end is logged while the scheduler holds the lock that its handler of SIGTERM takes."""


def test_it_ends_a_snakemake_that_books_the_end_of_a_job_and_starts_no_other(new_study):
    study = new_study(**LONG)
    study.edit("Snakefile", AT_THE_MOMENT)
    assert study.start(MANIFEST, study.target(batch_size=1)).wait(PATIENCE_SECONDS) == 1
    assert "Will exit after finishing currently running jobs" in study.output()
    assert "rule train_run" not in study.output() and not study.processes()
    study.finish(MANIFEST)


@pytest.mark.parametrize("mode", ["subprocess", "remote"])
def test_it_ends_the_snakemake_of_one_job_at_once(new_study, mode):
    study = new_study(**LONG)
    study.finish(MANIFEST)
    job = "train_run:recipe=plain,strategy=ddp,gpus=1,batch_size=1,seed=0,repeat="
    process = study.start("--mode", mode, "--nolock", "--no-hooks", "--target-jobs", job)
    study.wait_for_training()
    process.terminate()
    assert process.wait(PATIENCE_SECONDS) == 128 + signal.SIGTERM
    assert study.orphans() == []


def test_a_closed_terminal_ends_it_without_a_lock(new_study):
    study = new_study(**LONG)
    ours, its = pty.openpty()
    options = [study.target(batch_size=1), "--configfile", "tiny.yaml"]
    study.process = subprocess.Popen(
        ["snakemake", "--profile", "profiles/local", *options],
        **{"cwd": study.folder, "stdin": its, "stdout": its, "stderr": its},
        start_new_session=True,
    )
    os.close(its)
    study.wait_for_training()
    os.close(ours)
    os.killpg(study.process.pid, signal.SIGHUP)  # As a shell does.
    assert study.process.wait(PATIENCE_SECONDS) == 1
    assert study.orphans() == []
    study.finish(MANIFEST)
