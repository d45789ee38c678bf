"""Strategies, engines and models: found by name, each with the modules whose code it adds."""

import pytest

from scaling.core.errors import UserError
from scaling.registry.engine import ENGINES
from scaling.registry.model import MODELS
from scaling.registry.strategy import STRATEGIES


@pytest.mark.parametrize(
    ("registry", "code"), [(STRATEGIES, "wrap"), (ENGINES, "trainer"), (MODELS, "factory")]
)
def test_every_entry_is_found_by_its_name_and_its_code_can_be_loaded(registry, code, torch):
    for name in registry.names():
        assert registry.find(name).name == name
        assert callable(getattr(registry.find(name), code).load())


def test_an_unknown_name_is_told_with_those_there_are():
    with pytest.raises(UserError, match="'zero' is no strategy; choose one of ddp, dp, fsdp, own"):
        STRATEGIES.find("zero")


@pytest.mark.parametrize(
    ("strategy", "processes", "busiest"),
    [("ddp", 4, 1.5e6), ("dp", 1, 2e6), ("fsdp", 4, 2.25e6), ("zero1", 4, 2.25e6)],
)
def test_what_four_gpus_start_and_send(strategy, processes, busiest):
    found = STRATEGIES.find(strategy)
    assert (found.processes(4), found.processes(1)) == (processes, 1)
    assert (found.busiest_bytes(4, 1e6), found.busiest_bytes(1, 1e6)) == (busiest, 0)
