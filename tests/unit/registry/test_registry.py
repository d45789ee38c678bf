"""Strategies, engines and models by name; bytes that strategies send; rules of rates."""

import pytest

from scaling.core.errors import UserError
from scaling.registry.engine import ENGINES
from scaling.registry.entries import MODELS
from scaling.registry.strategy import STRATEGIES
from scaling.registry.update_rule import Technique, gpus_of, uneven


@pytest.mark.parametrize(
    ("registry", "code"), [(STRATEGIES, "wrap"), (ENGINES, "trainer"), (MODELS, "factory")]
)
def test_registry_entries_are_found_and_load(registry, code):
    for name in registry.names():
        assert registry.find(name).name == name
        assert callable(getattr(registry.find(name), code).load())


def test_unknown_name_lists_choices():
    with pytest.raises(UserError, match="'zero' is no strategy; choose one of ddp, dp, fsdp, "):
        STRATEGIES.find("zero")


@pytest.mark.parametrize(
    ("strategy", "processes", "busiest"),
    [("ddp", 4, 1.5e6), ("dp", 1, 2e6), ("fsdp", 4, 2.25e6), ("zero1", 4, 2.25e6)],
)
def test_four_gpus_start_processes_and_send_bytes(strategy, processes, busiest):
    found = STRATEGIES.find(strategy)
    assert (found.processes(4), found.processes(1)) == (processes, 1)
    assert (found.busiest_bytes(4, 1e6), found.busiest_bytes(1, 1e6)) == (busiest, 0)


def test_rate_rules_are_those_of_the_papers():
    assert Technique().rate(0.1, 64) == 0.1
    assert Technique(scaling="linear").rate(0.1, 64) == pytest.approx(6.4)
    assert Technique(scaling="sqrt").rate(0.1, 64) == pytest.approx(0.8)


def test_large_batch_is_spread_over_gpus():
    assert [gpus_of(batch, 128, 4) for batch in (128, 256, 512, 8192)] == [1, 1, 4, 4]
    assert uneven([130, 512, 514, 1025], 128, 4) == [514, 1025]
