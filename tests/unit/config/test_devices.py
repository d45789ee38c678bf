"""A study that asks for devices that this machine does not have is refused."""

from contextlib import nullcontext
from pathlib import Path

import pytest
import yaml

from scaling.config import devices
from scaling.core import environment
from scaling.core.errors import UserError
from scaling.core.grid import Cell, recipe_options
from scaling.launch.run_spec import RunSpec


@pytest.fixture
def config(monkeypatch):
    """The demo's configuration, on a machine with 4 cores and no GPU."""
    monkeypatch.setattr(environment, "visible_gpus", list)
    monkeypatch.setattr(devices, "cores", lambda: 4)
    return yaml.safe_load((Path(__file__).parents[3] / "config/demo.yaml").read_text())


@pytest.mark.parametrize(
    ("section", "changes", "wanted", "granted", "sentence"),
    [
        ("machine", {}, 4, 4, None),
        ("machine", {}, 5, None, "this machine has 4 CPU cores for 1-thread processes: remove"),
        ("machine", {}, 2, 1, "grid.gpus asks for 2 and --resources gpu=1 grants fewer: remove"),
        ("machine", {"gpus_per_node": 2}, 4, None, "machine.gpus_per_node is 2: run on a cluster"),
        ("grid", {"strategies": ["ddp", "dp"]}, 2, None, "dp, which needs GPUs for more than one"),
        (
            "grid",
            {"recipes": ["tuned"]},
            1,
            None,
            "cuda_graph is true, which needs a GPU: this is a",
        ),
    ],
)
def test_what_this_machine_cannot_do_is_refused(
    config, section, changes, wanted, granted, sentence
):
    config["device"] = "auto"
    config["recipes"]["tuned"]["cuda_graph"] = True
    config[section] |= changes
    with pytest.raises(UserError) if sentence else nullcontext() as raised:
        devices.check(config, wanted, granted)
    assert not sentence or sentence in str(raised.value)


def test_more_gpus_than_visible_are_refused(config, monkeypatch):
    monkeypatch.setattr(environment, "visible_gpus", lambda: ["0", "1"])
    config["device"] = "auto"
    devices.check(config, 2, granted=None)
    with pytest.raises(UserError, match="asks for 4 and this machine has 2 GPUs: remove the larg"):
        devices.check(config, 4, granted=None)


def test_bf16_on_a_gpu_that_has_none_is_refused_by_its_key(config, monkeypatch):
    config["device"] = "auto"
    config["recipes"]["tuned"]["precision"] = "bf16"
    devices.check(config, 1, granted=None)
    monkeypatch.setattr(environment, "visible_gpus", lambda: ["0"])
    monkeypatch.setattr(environment, "older_gpu", {environment.AMPERE: "T4 has 7.5"}.get)
    with pytest.raises(
        UserError, match=r"recipes\.tuned\.precision is bf16 and T4 has 7\.5: bf16 needs 8\.0"
    ):
        devices.check(config, 1, granted=None)
    spec = RunSpec(
        cell=Cell("tuned", "ddp", 1, 8, 0),
        engine="resident",
        recipe_options=recipe_options(config, "tuned"),
    )
    with pytest.raises(UserError, match=r"recipes\.tuned\.precision is bf16 and T4"):
        spec.resolved()


def test_updates_that_a_strategy_makes_itself_cannot_be_changed(config):
    cell, options = Cell("tuned", "zero1", 2, 8, 0), recipe_options(config, "tuned")
    spec = RunSpec(cell=cell, engine="resident", recipe_options=options | {"nesterov": True})
    with pytest.raises(UserError, match="nesterov is True, which strategy zero1 cannot have"):
        spec.resolved()


@pytest.mark.parametrize(
    ("limit", "count"), [("150000 100000", 2), ("max 100000", 8), ("1600000 100000", 8)]
)
def test_cores_are_those_of_the_container_at_most(tmp_path, monkeypatch, limit, count):
    monkeypatch.setattr(devices.os, "sched_getaffinity", lambda pid: set(range(8)))
    (tmp_path / "cpu.max").write_text(limit)
    assert devices.cores(tmp_path / "cpu.max") == count
