"""A study that requires devices that this machine does not have is refused."""

import sys
from contextlib import nullcontext

import pytest

from examples.configurations import ROOT, changed, shipped
from scaling.config import config, devices, stored
from scaling.core import environment
from scaling.core.errors import UserError
from scaling.core.grid import LIMITS, Cell
from scaling.launch.run_spec import RunSpec

PYTHON = sys.executable
AUTO, BF16 = ("device", "auto"), ("recipes.tuned.precision", "bf16")
GRAPHS = [("recipes.tuned.cuda_graph", True), ("grid.recipes", ["tuned"])]
FULL, EIGHT = ("parts", ["scaling", "time_to_accuracy"]), ("time_to_accuracy.gpus", [8])
T4 = r"recipes\.tuned\.precision is bf16 and T4 has 7\.5: bf16 needs 8\.0"


@pytest.mark.parametrize(
    ("gpus", "changes", "wanted", "granted", "sentence"),
    [
        (0, [], 4, 4, None),
        (0, [], 5, None, "this machine has 4 CPU cores for 1-thread processes: remove"),
        (0, [], 2, 1, "grid.gpus requires 2, but --resources gpu=1 grants fewer: remove"),
        (0, [("machine.gpus_per_node", 2)], 4, None, "gpus_per_node is 2: run on a cluster"),
        (0, [("grid.strategies", ["ddp", "dp"])], 2, None, "dp, which needs GPUs for more than"),
        (0, GRAPHS, 1, None, "cuda_graph is true, which needs a GPU: this is a"),
        (0, [FULL, EIGHT], 8, 1, "^time_to_accuracy.gpus requires 8, but this"),
        (2, [], 2, None, None),
        (2, [], 4, None, "requires 4, but this machine has 2 GPUs: remove the larg"),
        (0, [BF16], 1, None, None),
        (1, [BF16], 1, None, T4),
    ],
)
def test_devices_that_are_not_here_are_refused(
    gpus, changes, wanted, granted, sentence, monkeypatch
):
    monkeypatch.setattr(environment, "visible_gpus", lambda: list("01"[:gpus]))
    monkeypatch.setattr(environment, "older_gpu", {environment.AMPERE: "T4 has 7.5"}.get)
    monkeypatch.setattr(devices, "cores", lambda: 4)
    with pytest.raises(UserError, match=sentence) if sentence else nullcontext():
        devices.check(changed(AUTO, *changes), wanted, granted)


def test_smallest_example_runs_on_two_gpus(monkeypatch):
    monkeypatch.setattr(environment, "visible_gpus", lambda: ["0", "1"])
    monkeypatch.setattr(environment, "older_gpu", lambda capability: None)
    text = (ROOT / "config/README.md").read_text(encoding="utf-8")
    smallest = stored.parsed(text.split("```")[1].removeprefix("yaml"))
    full = shipped("config.yaml")
    for key, value in smallest.items():
        full[key] = full[key] | value if isinstance(value, dict) else value
    devices.check(config.requested(full).model_dump(), 2, None)


@pytest.mark.parametrize(
    ("strategy", "option", "sentence"),
    [
        ("ddp", {"precision": "bf16"}, T4),
        ("zero1", {"nesterov": True}, "nesterov is True, which strategy zero1 cannot have"),
    ],
)
def test_script_refuses_a_cell_that_cannot_run_here(strategy, option, sentence, monkeypatch):
    monkeypatch.setattr(environment, "visible_gpus", lambda: ["0", "1"])
    monkeypatch.setattr(environment, "older_gpu", {environment.AMPERE: "T4 has 7.5"}.get)
    options = changed()["recipes"]["tuned"] | option
    options = {key: options[key] for key in options if key not in ("engine", *LIMITS)}
    spec = RunSpec(cell=Cell("tuned", strategy, 2, 8, 0), engine="resident", recipe_options=options)
    with pytest.raises(UserError, match=sentence):
        spec.resolved()


@pytest.mark.parametrize(
    ("limit", "count"), [("150000 100000", 2), ("max 100000", 8), ("1600000 100000", 8)]
)
def test_cores_are_those_of_the_container_at_most(tmp_path, monkeypatch, limit, count):
    monkeypatch.setattr(devices.os, "sched_getaffinity", lambda pid: set(range(8)))
    (tmp_path / "cpu.max").write_text(limit)
    assert devices.cores(tmp_path / "cpu.max") == count


@pytest.mark.parametrize("command", ["no-such-program", "/tmp", f"{PYTHON} -u trian.py --o x.py"])
def test_missing_program_or_script_is_refused(command):
    """A record would be deleted first if a finished study's script were named wrongly."""
    for known in ("{folder}/x {gpus}", f"{PYTHON} {__file__} x.py", f"{PYTHON} -m a x.py"):
        devices.check_programs({"recipes": {"mine": {"command": known}, "plain": {}}})
    missing = "trian.py" if "trian" in command else command
    with pytest.raises(UserError, match=rf"mine\.command starts {missing}, which (is no|does not)"):
        devices.check_programs({"recipes": {"mine": {"command": command}}})
