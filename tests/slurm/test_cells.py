"""Cells that share a node, and a user's own script: over two nodes, and followed by the page."""

import itertools
import json
import re
import signal
import subprocess
from collections import Counter

import cluster
from cluster import overlap, time_span

from examples.own_page import FILES, PAGE

SINGLE = (10, 12, 15)


def held(node, *options):
    """The id of a job that keeps something on `node` until it is cancelled."""
    command = ["sbatch", "--parsable", f"--nodelist={node}", "--mem=100", *options]
    command += ["--output=/dev/null", "--wrap=sleep 3600"]
    return subprocess.check_output(command, text=True).strip()


def test_single_gpu_cells_run_side_by_side_and_four_gpus_wait_for_room(new_slurm_study):
    study = new_slurm_study(
        machine__share=True,
        machine__check="off",
        slurm__gres=True,
        grid__gpus=[1, 4],
        grid__batch_sizes=list(SINGLE),
    )
    targets = [study.target(gpus=1, batch_size=size) for size in SINGLE]
    # All of n2 is taken, and one GPU of n1: three are left.
    others = [held("n2", "--exclusive"), held("n1", "--gpus=1")]
    snakemake = study.start(*targets, study.target(gpus=4, batch_size=10))

    def states():
        wanted = [(1, size) for size in SINGLE] + [(4, 10)]
        return [(study.cell_job(*cell) or {}).get("JobState") for cell in wanted]

    try:
        cluster.wait_for(
            lambda: states() == ["RUNNING"] * 3 + ["PENDING"], "three cells that run and one waits"
        )
        subprocess.run(["scancel", others[1]], check=True)
        snakemake.wait()
    finally:
        subprocess.run(["scancel", *others], check=True)
    assert snakemake.returncode == 0, study.output()

    singles, four = [study.cell_job(1, size) for size in SINGLE], study.cell_job(4, 10)
    assert [job["JOB_GRES"] for job in [*singles, four]] == ["gpu:1"] * 3 + ["gpu:4"]
    assert {job["NodeList"] for job in [*singles, four]} == {"n1"}
    of_singles = [cluster.gpus_of_step(job) for job in singles]
    assert sorted(of_singles) == [["1"], ["2"], ["3"]]
    assert cluster.gpus_of_step(four) == ["0-3"]
    assert cluster.processes_of_step(four) == ["n1"]
    assert cluster.most_gpus_at_once() == {"n1": 4, "n2": 4}
    assert all(overlap(one, other) for one, other in itertools.combinations(singles, 2))
    assert time_span(four)[0] >= max(time_span(job)[1] for job in singles)


(COMMAND,) = re.findall(r"^command: (srun .*) train\.py$", PAGE, re.MULTILINE)

SAYS = "print('ran on', os.environ['SLURMD_NODENAME'], flush=True)\n"


def test_a_command_is_started_once_and_trains_on_both_nodes(new_slurm_study):
    options = "train.py --batch-size {batch_size} --seed {seed} --epochs {epochs}"
    study = new_slurm_study(
        parts=["scaling"],
        machine__gpus_per_node=2,
        dataset={"source": "own"},
        recipes={"mine": {"command": f"{COMMAND} {options}"}},
        grid__recipes=["mine"],
        grid__gpus=[4],
        grid__batch_sizes=[32],
    )
    (study.folder / "train.py").write_text(FILES["train.py"] + SAYS)
    cell = {"recipe": "mine", "strategy": "own", "gpus": 4, "batch_size": 32}
    done = study.snakemake(study.target(**cell))
    assert done.returncode == 0, done.stdout
    found = json.loads(study.record(**cell).read_text())
    assert found["status"] == "ok" and found["message"] is None
    assert len(found["epochs"]) == 4 and found["epochs"][0]["gpu_readings"] == []
    (log,) = study.folder.glob("logs/train_command/**/seed~0.log")
    assert Counter(re.findall("^ran on (..)$", log.read_text(), re.MULTILINE)) == {"n1": 2, "n2": 2}


REFRESH = '<meta http-equiv="refresh"'
SCRIPT = """
import json, sys, time
for epoch in range(4):
    time.sleep(float(sys.argv[1]))
    print(json.dumps({"epoch": epoch, "samples": 60}), flush=True)
"""


def test_the_page_follows_slurms_jobs_and_tells_that_snakemake_was_killed(new_slurm_study):
    study = new_slurm_study(
        parts=["scaling"],
        machine__check="off",
        dataset={"source": "own"},
        recipes={"mine": {"command": "python train.py {batch_size} {gpus}"}},
        grid__recipes=["mine"],
        grid__batch_sizes=[1, 60],
        grid__gpus=[1],
    )
    (study.folder / "train.py").write_text(SCRIPT)
    page = study.folder / "results/report.html"

    def says(text):
        return page.exists() and re.search(text, page.read_text())

    killed = study.start()
    chip = 'class="chip">running, 1 of 2: 1 done, 1 running; until about'
    cluster.wait_for(lambda: says(chip), "the page to tell of a cell that is done", study.folder)
    since = "running: mine/own, 1 GPU, batch 60 per GPU, seed 0, since [A-Z]"
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
