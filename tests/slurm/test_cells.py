"""Cells that share a node, and a user's own script over two nodes."""

import json
import re
import subprocess
from collections import Counter

import cluster

from examples.configurations import OWN_FILES as FILES
from examples.configurations import OWN_PAGE as PAGE

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


(COMMAND,) = re.findall(r"`(srun .*) train\.py`", PAGE)

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
    (log,) = study.folder.glob("logs/train_run/**/seed~0.log")
    assert Counter(re.findall("^ran on (..)$", log.read_text(), re.MULTILINE)) == {"n1": 2, "n2": 2}
