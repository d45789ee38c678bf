"""Cells that may share a node: each has its GPUs, and waits while there are too few."""

import itertools
import subprocess

import cluster
from slurm_study import overlap, time_span

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
