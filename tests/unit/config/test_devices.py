"""A study that asks for devices that this machine does not have is refused."""

from pathlib import Path

import pytest
import yaml

from scaling.config import devices
from scaling.core import environment
from scaling.core.errors import UserError


@pytest.fixture
def config(monkeypatch):
    """The demo's configuration, on a machine with 4 cores and no GPU."""
    monkeypatch.setattr(environment, "visible_gpus", list)
    monkeypatch.setattr(devices.psutil, "cpu_count", lambda: 4)
    return yaml.safe_load((Path(__file__).parents[3] / "config/demo.yaml").read_text())


def test_as_many_processes_as_cores_are_fine(config):
    devices.check(config, 4, granted=None)
    devices.check(config, 4, granted=4)


@pytest.mark.parametrize(
    ("wanted", "granted", "sentence"),
    [
        (5, None, "grid.gpus asks for 5 and this machine has 4 CPU cores for processes of 1 thr"),
        (2, 1, "grid.gpus asks for 2 and --resources gpu=1 grants fewer: raise it"),
    ],
)
def test_more_than_there_are_or_than_granted_is_refused(config, wanted, granted, sentence):
    with pytest.raises(UserError) as raised:
        devices.check(config, wanted, granted)
    assert sentence in str(raised.value)


def test_threads_of_a_process_are_cores_of_their_own(config):
    config["machine"]["cpu_threads"] = 3
    with pytest.raises(UserError, match="this machine has 1 CPU cores for processes of 3 threads"):
        devices.check(config, 2, granted=None)


def test_more_gpus_than_visible_are_refused(config, monkeypatch):
    monkeypatch.setattr(environment, "visible_gpus", lambda: ["0", "1"])
    config["device"] = "auto"
    devices.check(config, 2, granted=None)
    with pytest.raises(UserError, match="asks for 4 and this machine has 2 GPUs: remove the larg"):
        devices.check(config, 4, granted=None)


def test_more_than_one_node_has_needs_a_cluster(config):
    config["machine"]["gpus_per_node"] = 2
    with pytest.raises(UserError, match=r"machine\.gpus_per_node is 2: run on a cluster"):
        devices.check(config, 4, granted=None)


def test_a_strategy_that_needs_gpus_is_refused_without(config):
    config["device"] = "auto"
    config["grid"]["strategies"] = ["ddp", "dp"]
    devices.check(config, 1, granted=None)
    with pytest.raises(UserError, match=r"no GPU is visible and grid\.strategies has dp: use ddp"):
        devices.check(config, 2, granted=None)


@pytest.mark.parametrize("switch", ["cuda_graph", "fused_norms"])
def test_a_switch_that_needs_a_gpu_is_refused_without(config, switch):
    config["device"] = "auto"
    config["recipes"]["tuned"][switch] = True
    devices.check(config, 1, granted=None)
    config["grid"]["recipes"] = ["tuned"]
    with pytest.raises(UserError, match=rf"recipes\.tuned\.{switch} is true: set it to false"):
        devices.check(config, 1, granted=None)
