"""Resources that jobs request, locally and on a cluster, and arguments of their scripts."""

import json
from types import SimpleNamespace

import pytest

from examples.configurations import changed
from scaling.config import config
from scaling.core import command_line, grid
from scaling.launch import jobs as jobs_module
from scaling.launch.jobs import Jobs

GRID = {"strategies": ["ddp"], "gpus": [1, 2, 8], "batch_sizes": [32, 64], "seeds": [0]}
GRID["recipes"] = ["plain"]
HERE = SimpleNamespace(local_exec=True, resource_settings=SimpleNamespace(cores=1000))
CLUSTER = SimpleNamespace(local_exec=False)
REPORT = SimpleNamespace(local_exec=True, resource_settings=SimpleNamespace(cores=None))


def jobs(workflow=CLUSTER, gres=False, **machine):
    """Return jobs of a study on nodes of four GPUs. `machine` has changed configuration keys."""
    usual = {"cpu_threads": 2, "time_limit_seconds": 90, "gpus_per_node": 4, "share": False}
    config = {"parts": ["scaling"], "grid": GRID, "recipes": {"plain": {"loader_workers": 3}}}
    return Jobs(config | {"machine": usual | machine, "slurm": {"gres": gres}}, workflow)


ONE_NODE = {"nodes": 1, "runtime": 15}
TWO_NODES = {"nodes": 2, "runtime": 15, "mpi": "srun", "tasks": 2, "tasks_per_gpu": 0}


@pytest.mark.parametrize(
    ("differs", "gpus", "asked", "extra"),
    [
        ({}, 2, ONE_NODE | {"gpu": 2}, "--exclusive"),
        ({"share": True}, 2, ONE_NODE | {"gpu": 2}, ""),
        ({}, 0, ONE_NODE, "--exclusive"),
        ({}, 8, TWO_NODES | {"gpu": 8}, "--exclusive --gpus-per-node=4 --ntasks-per-node=1"),
        ({"gres": True}, 8, TWO_NODES | {"gres": "gpu:4"}, "--exclusive --ntasks-per-node=1"),
        ({"gres": True, "workflow": HERE}, 2, ONE_NODE | {"gpu": 2}, "--exclusive"),
    ],
)
def test_timed_job_requests_gpus_on_fewest_nodes(differs, gpus, asked, extra):
    assert jobs(**differs).requested(gpus) == asked | {"slurm_extra": extra}


def test_rule_requests_gpus_of_its_path_or_of_a_node():
    asked = jobs().timed()
    assert [asked["gpu"](wildcards) for wildcards in ({"gpus": "2"}, {})] == [2, 4]
    assert jobs(gpus_per_node=None).timed()["gpu"]({}) == 8
    asked = {name: value({}) for name, value in jobs(gres=True).timed(1, ["gpu", "gres"]).items()}
    assert asked == {"gpu": None, "gres": "gpu:1"}


def test_timed_job_has_its_gpus_cores_or_all_here():
    assert [jobs().threads({"gpus": gpus}) for gpus in "148"] == [5, 20, 20]
    assert jobs(HERE).threads({"gpus": "1"}) == 1000
    assert jobs(HERE, share=True).threads({"gpus": "1"}) == 5
    assert jobs(REPORT).threads({"gpus": "1"}) == 1  # The report's has no number of cores.


@pytest.mark.parametrize(("source", "option"), [("cifar10", None), ("images", "there")])
def test_place_of_verified_images_is_no_option(source, option):
    document = changed(("dataset.source", source), ("dataset.path", "there"))
    made = Jobs(config.check(document, reads_images=False), HERE).dataset()
    words = [made["job"]({}), made["files"]({}, {"output": "images.npz"})]
    assert json.loads(words[0])["request"]["path"] == option
    assert command_line.parsed(print, words)["request"]["path"] == "there"


def test_runs_are_ordered_as_in_the_grid():
    runs = [grid.Cell("plain", "ddp", gpus, size, 0) for gpus, size in [(1, 32), (1, 64), (8, 64)]]
    places = [jobs().place(vars(run) | {"repeat": ""}) for run in runs]
    assert places == [6, 5, 1]
    assert jobs().place(vars(runs[0]) | {"repeat": "/repeat~3"}) == 0


def test_recipes_run_in_turns_over_repeats():
    one = [grid.Cell(name, "ddp", 2, 32, 0, n) for name in "ab" for n in range(4)]
    assert "".join(run.recipe for run in jobs_module.in_turns(one)) == "abbabaab"
    two = [grid.Cell(name, "ddp", 2, b, 0, n) for name in "ab" for b in (32, 64) for n in range(2)]
    turns = [(run.repeat, run.batch_size, run.recipe) for run in jobs_module.in_turns(two)]
    first = [(0, 32, "a"), (0, 32, "b"), (0, 64, "a"), (0, 64, "b")]
    assert turns == first + [(1, *rest) for _, *rest in reversed(first)]
