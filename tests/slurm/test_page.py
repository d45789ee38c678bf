"""The page of a study that Slurm runs: what has begun and ended there."""

import re

import cluster
import yaml

REFRESH = '<meta http-equiv="refresh"'
SCRIPT = """
import json, sys, time
for epoch in range(4):
    time.sleep(float(sys.argv[1]))
    print(json.dumps({"epoch": epoch, "samples": 60}), flush=True)
"""


def test_the_page_follows_slurms_jobs(new_slurm_study):
    study = new_slurm_study(grid__batch_sizes=[1, 8], grid__gpus=[1], machine__check="off")
    (study.folder / "train.py").write_text(SCRIPT)
    path, page = study.folder / "tiny.yaml", study.folder / "results/report.html"
    config = yaml.safe_load(path.read_text())
    config["recipes"] = {"mine": {"command": "python train.py {batch_size} {gpus}"}}
    config["grid"]["recipes"], config["dataset"] = ["mine"], {"source": "own"}
    config["peaks"] |= {"matrix_sizes": [64], "copy_bytes": 1000}
    config["parts"] = ["scaling"]
    path.write_text(yaml.safe_dump(config))

    def says(text):
        return page.exists() and re.search(text, page.read_text())

    snakemake = study.start()
    chip = 'class="chip">running, 1 of 2: 1 done, 1 running; until about'
    cluster.wait_for(lambda: says(chip), "the page to tell of a cell that is done", study.folder)
    since = "running: mine/own, 1 GPU, batch 8 per GPU, seed 0, since [A-Z]"
    assert says(since) and says(REFRESH), page.read_text()
    assert snakemake.wait() == 0, study.output()
    assert not says(REFRESH) and says("Q1")
