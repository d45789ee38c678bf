"""The page of a study that Slurm runs: what has begun and ended there."""

import re

import cluster

REFRESH = '<meta http-equiv="refresh"'
SCRIPT = """
import json, sys, time
for epoch in range(4):
    time.sleep(float(sys.argv[1]))
    print(json.dumps({"epoch": epoch, "samples": 60}), flush=True)
"""


def test_the_page_follows_slurms_jobs(new_slurm_study):
    study = new_slurm_study(
        study="page",
        parts=["scaling"],
        machine__check="off",
        dataset={"source": "own"},
        recipes={"mine": {"command": "python train.py {batch_size} {gpus}"}},
        grid__recipes=["mine"],
        grid__batch_sizes=[1, 8],
        peaks__matrix_sizes=[64],
        peaks__copy_bytes=1000,
    )
    (study.folder / "train.py").write_text(SCRIPT)
    page = study.folder / "results/report.html"

    def says(text):
        return page.exists() and re.search(text, page.read_text())

    snakemake = study.start()
    chip = 'class="chip">running, [01] of 2: 1 (done|waiting), 1 running; until about'
    cluster.wait_for(lambda: says(chip), "the page to tell of a cell that runs", study.folder)
    since = "running: mine/own, 1 GPU, batch 8 per GPU, seed 0, since [A-Z]"
    assert says(since) and says(REFRESH), page.read_text()
    assert snakemake.wait() == 0, study.output()
    assert not says(REFRESH) and says("Q1")
