"""SIGKILL, which nothing can catch: no process lives on, nothing finished is lost or redone."""

import os
import random
import time

import psutil
import pytest

CELLS = [{"gpus": gpus, "batch_size": size} for gpus in (1, 2) for size in (10, 20)]
KILLS = int(os.environ.get("FAULTS_KILLS", "20"))
MOST_SECONDS = 40
"""About what the four cells take."""
LONG = {"dataset__train_images": 6000, "grid__gpus": [1, 2], "grid__batch_sizes": [1]}
"""Hours of training, which only a kill ends."""


@pytest.mark.parametrize("victim", ["snakemake", "bash", "python"])
def test_all_processes_of_a_training_end_with(new_study, victim):
    study = new_study(**LONG)
    snakemake = study.start(study.target(gpus=2, batch_size=1))
    study.wait_for_training()
    # The oldest Python is the one that started the ranks.
    found = [process for process in study.processes() if process.info["name"].startswith(victim)]
    min(found, key=psutil.Process.create_time).kill()
    snakemake.wait()
    assert study.orphans() == []


def test_a_training_without_ranks_ends_with_its_snakemake(new_study):
    study = new_study(dataset__train_images=6000, convergence__epochs=10000)
    snakemake = study.start("results/convergence/remedy~none/global_batch~10/runs.json")
    script = "convergence_train.py"

    def computes():
        found = [p for p in study.processes() if "".join(p.info["cmdline"][1:2]).endswith(script)]
        return any(process.cpu_times().user > 5 for process in found)

    study.wait_for(computes)
    snakemake.kill()
    snakemake.wait()
    assert study.orphans() == []


@pytest.mark.parametrize("seed", [*range(KILLS), *[time.time_ns()] * bool(KILLS)])
def test_after_a_kill_at_any_moment_nothing_is_lost_or_measured_again(new_study, seed):
    print(f"seed {seed}")
    study = new_study(grid__gpus=[1, 2])
    targets = [study.target(**cell) for cell in CELLS]
    snakemake = study.start(*targets)
    drawn = random.Random(seed)
    time.sleep(drawn.uniform(0, MOST_SECONDS))
    victims = sorted(study.processes(), key=psutil.Process.create_time)
    if victims and drawn.random() < 0.5:
        drawn.choice(victims).kill()
    else:
        snakemake.kill()
    snakemake.wait()
    assert study.orphans() == []
    records = [study.record(**cell) for cell in CELLS]
    before = {path: path.read_bytes() for path in records if path.exists()}
    study.finish("--unlock")
    study.finish(*targets)
    assert {path: path.read_bytes() for path in before} == before
    assert all(path.exists() for path in records)
    # Of writers and of ranks that were killed.
    assert [path.name for path in (study.folder / "results").rglob(".*")] == []
