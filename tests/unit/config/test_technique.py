"""Techniques for large batches: their options, and the rules for their rate."""

import pytest

from scaling.registry.update_rule import Technique, gpus_of, uneven


def test_the_rules_of_the_rate_are_those_of_the_papers():
    assert Technique().rate(0.1, 64) == 0.1
    assert Technique(scaling="linear").rate(0.1, 64) == pytest.approx(6.4)
    assert Technique(scaling="sqrt").rate(0.1, 64) == pytest.approx(0.8)


def test_a_large_batch_is_spread_and_a_small_one_is_not():
    assert [gpus_of(batch, 128, 4) for batch in (128, 256, 512, 8192)] == [1, 1, 4, 4]
    assert uneven([130, 512, 514, 1025], 128, 4) == [514, 1025]
