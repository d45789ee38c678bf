"""Studies on one and on two nodes, from configuration to report, and a user's own script."""

import itertools
import json
import re
from collections import Counter

import cluster
import pandas as pd
import pytest

from examples.configurations import OWN_FILES, OWN_PAGE


@pytest.fixture(scope="module")
def study(new_slurm_study):
    """Return a study on 1 and 2 GPUs of one node, and on 4 GPUs of two nodes."""
    study = new_slurm_study(grid__gpus=[1, 2, 4], grid__batch_sizes=[10], machine__gpus_per_node=2)
    finished = study.snakemake()
    assert finished.returncode == 0, finished.stdout
    return study


TIMED = ("train_run", "interconnect_sweep", "peaks_measure", "synchronization_measure")
OTHERS = ("convergence_train", "machine_check", "quantize_evaluate", "quantize_train")


def test_report_has_slurm_jobs_and_next_start_submits_nothing(study):
    page = (study.folder / "results/report.html").read_text()
    for gpus in (1, 2, 4):
        assert f">{study.cell_job(gpus, 10)['JobId']}<" in page
    assert "n1:0,1; n2:0,1" in page
    timing = pd.read_csv(study.folder / "results/tables/tiny/timing.csv")
    assert timing["gpus"].tolist() == [1, 2, 4]
    assert timing["status"].tolist() == ["ok"] * 3
    sweep = json.loads((study.folder / "results/interconnect/gpus~4/sweep.json").read_text())
    assert sweep["environment"]["hosts"] == ["n1", "n2"]
    assert all(row["correct"] for row in sweep["rows"])
    assert "Nothing to be done" in study.snakemake().stdout


def test_timed_jobs_have_their_nodes_to_themselves(study):
    jobs = [(job["Comment"].split("_wildcards")[0][len("rule_") :], job) for job in study.jobs()]
    twice = ["train_run", "train_run", "interconnect_sweep", "convergence_train"]
    assert sorted(rule for rule, _ in jobs) == sorted([*TIMED, *OTHERS, *twice])
    assert all(job["OverSubscribe"] == "NO" for rule, job in jobs if rule in TIMED)
    submitted = [int(study.cell_job(gpus, 10)["JobId"]) for gpus in (1, 2, 4)]
    (peaks,) = (int(job["JobId"]) for rule, job in jobs if rule == "peaks_measure")
    assert [peaks, *submitted] == sorted([peaks, *submitted])
    for (rule, one), (other_rule, other) in itertools.combinations(jobs, 2):
        if {rule, other_rule}.intersection(TIMED):
            apart = {one["NodeList"], other["NodeList"]} == {"n1", "n2"}
            in_turn = one["EndTime"] <= other["StartTime"] or other["EndTime"] <= one["StartTime"]
            assert apart or in_turn, (rule, other_rule)


@pytest.mark.parametrize(("gpus", "nodes", "own"), [(1, 1, "0"), (2, 1, "0-1"), (4, 2, "0-1")])
def test_run_has_its_gpus_and_a_process_on_fewest_nodes(study, gpus, nodes, own):
    job = study.cell_job(gpus, 10)
    said = json.loads(study.record(gpus=gpus, batch_size=10).read_text())["environment"]
    assert job["JobState"] == "COMPLETED"
    assert job["TresPerJob"] == f"gres:gpu:{gpus}" and job["NumNodes"] == str(nodes)
    # The nodes are its own; its step holds exactly its GPUs.
    assert job["JOB_GRES"] == f"gpu:{4 * nodes}"
    assert cluster.gpus_of_step(job) == [own] * nodes
    names = ["n1", "n2"] if nodes == 2 else [job["NodeList"]]
    assert cluster.processes_of_step(job) == names == said["hosts"]
    assert said["slurm_job_id"] == job["JobId"]
    assert said["slurm_gpus"] == [f"{name}:{own.replace('-', ',')}" for name in names]


@pytest.mark.parametrize("strategy", ["ddp", "fsdp"])
def test_run_over_two_nodes_ends_with_equal_parameters(study, strategy):
    cell = {"strategy": strategy, "gpus": 4, "batch_size": 10}
    study.snakemake(study.target(**cell))
    record = json.loads(study.record(**cell).read_text())
    assert (record["status"], record["message"]) == ("ok", None)
    assert record["environment"]["hosts"] == ["n1", "n2"]
    last = {(row["rank"], row["samples"]) for row in record["epochs"] if row["epoch"] == 4}
    assert last == {(rank, 15) for rank in range(4)}
    weights = record["model"]["parameters_sha256"]
    assert len(weights) == 4 and len(set(weights)) == 1


(COMMAND,) = re.findall(r"`(srun .*) train\.py`", OWN_PAGE)

# One write, as print makes several, between which another rank may write.
SAYS = "os.write(1, ('ran on ' + os.environ['SLURMD_NODENAME'] + ' ').encode())\n"


def test_command_starts_once_and_trains_on_both_nodes(new_slurm_study):
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
    (study.folder / "train.py").write_text(OWN_FILES["train.py"] + SAYS)
    cell = {"recipe": "mine", "strategy": "own", "gpus": 4, "batch_size": 32}
    done = study.snakemake(study.target(**cell))
    assert done.returncode == 0, done.stdout
    found = json.loads(study.record(**cell).read_text())
    assert found["status"] == "ok" and found["message"] is None
    assert len(found["epochs"]) == 4 and found["epochs"][0]["gpu_readings"] == []
    (log,) = study.folder.glob("logs/train_run/**/seed~0.log")
    assert Counter(re.findall("ran on (n.)", log.read_text())) == {"n1": 2, "n2": 2}
