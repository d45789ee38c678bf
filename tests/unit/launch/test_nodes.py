"""Runs over several nodes of a Slurm job, as far as they can be decided on one machine."""

import sys
from pathlib import Path

import pytest

from examples import report_tables
from examples.report_page import render
from scaling.config import config
from scaling.core.errors import UserError
from scaling.launch import launcher, supervisor
from training_runs import arguments, spec_of
from unit.config.test_config import changed


@pytest.mark.parametrize("gpus", [[1, 2, 4], [1, 8], [3, 12]])
def test_gpus_that_fill_whole_nodes_are_a_valid_grid(gpus):
    document = changed("grid.gpus", gpus)
    document["machine"]["gpus_per_node"] = 4
    config.check(document)


def test_gpus_that_leave_a_node_half_used_are_refused():
    document = changed("grid.gpus", [1, 4, 6, 10])
    document["machine"]["gpus_per_node"] = 4
    with pytest.raises(UserError, match=r"grid.gpus has 6, 10 and machine.gpus_per_node is 4 "):
        config.check(document)


def test_dataparallel_over_two_nodes_is_infeasible(tmp_path):
    argv = arguments(tmp_path, tmp_path / "run.json", strategy="dp", gpus=4, nodes=2, device="cuda")
    spec = spec_of(argv)
    reason = supervisor.infeasible_reason(spec, train_images=1000)
    assert reason == "DataParallel is one process and cannot reach the GPUs of 2 machines"


def test_srun_starts_one_torchrun_a_node_with_the_nodes_share_of_the_processes(monkeypatch):
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    line = launcher.command(Path("train.py"), ["--note", "two words"], processes=8, nodes=2)
    assert line[:4] == ["srun", "--nodes=2", "--ntasks=2", "--ntasks-per-node=1"]
    agent = line[-1]
    assert agent.startswith(f"exec {sys.executable} -m torch.distributed.run --nproc-per-node=4 ")
    assert "--node-rank=\"$SLURM_NODEID\" train.py --note 'two words'" in agent


@pytest.mark.parametrize(("job", "processes"), [(None, 4), ("7", 5)])
def test_nodes_without_a_slurm_job_or_an_equal_share_are_refused(monkeypatch, job, processes):
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    if job:
        monkeypatch.setenv("SLURM_JOB_ID", job)
    with pytest.raises(UserError, match=f"{processes} processes are to be spread over 2 nodes"):
        launcher.command(Path("train.py"), [], processes, nodes=2)


def test_the_report_names_slurms_job_and_gpus_of_each_run(tmp_path):
    tables = report_tables.make()
    tables["provenance"].loc[0, "slurm_job_id"] = "4711"
    tables["provenance"].loc[0, "slurm_gpus"] = "n1:0,1; n2:0,1"
    first, second = render(tmp_path, tables).rows("Runs")[:2]
    assert first[5:7] == ["4711", "n1:0,1; n2:0,1"]
    assert second[5:7] == ["–", "–"]
