"""The page of a study that Slurm runs: what has begun and ended there, and a Snakemake's kill."""

import re
import signal
import subprocess

import cluster
import yaml

REFRESH = '<meta http-equiv="refresh"'
SCRIPT = """
import json, sys, time
for epoch in range(4):
    time.sleep(float(sys.argv[1]))
    print(json.dumps({"epoch": epoch, "samples": 60}), flush=True)
"""


def test_the_page_follows_slurms_jobs_and_tells_that_snakemake_was_killed(new_slurm_study):
    study = new_slurm_study(grid__batch_sizes=[1, 8], grid__gpus=[1], machine__check="off")
    (study.folder / "train.py").write_text(SCRIPT)
    path, page = study.folder / "tiny.yaml", study.folder / "results/report.html"
    config = yaml.safe_load(path.read_text())
    config["recipes"] = {"mine": {"command": "python train.py {batch_size} {gpus}"}}
    config["grid"]["recipes"], config["dataset"] = ["mine"], {"source": "own"}
    config["parts"] = ["scaling"]
    path.write_text(yaml.safe_dump(config))

    def says(text):
        return page.exists() and re.search(text, page.read_text())

    killed = study.start()
    chip = 'class="chip">running, 1 of 2: 1 done, 1 running; until about'
    cluster.wait_for(lambda: says(chip), "the page to tell of a cell that is done", study.folder)
    since = "running: mine/own, 1 GPU, batch 8 per GPU, seed 0, since [A-Z]"
    assert says(since) and says(REFRESH), page.read_text()
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    cluster.wait_for(lambda: not says(REFRESH), "the page to tell of the kill")
    assert says('class="chip bad">ended without a word, as by SIGKILL; before: running, 1 of 2')
    subprocess.run(["make", "cancel"], cwd=study.folder, check=True)
    cluster.wait_for(lambda: not cluster.queue(), "an empty queue")
    study.snakemake("--unlock")
    (study.folder / "train.py").write_text(SCRIPT.replace("float(sys.argv[1])", "0.01"))
    assert study.start().wait() == 0, study.output()
    assert not says(REFRESH) and says("Q1")
