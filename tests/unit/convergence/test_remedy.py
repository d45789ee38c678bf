"""The learning rate that each remedy gives, and which runs a remedy needs."""

import math

import pytest

from examples.convergence_records import STUDY
from scaling.convergence.plan import choose, epochs_of, reference_updates, run_of
from scaling.convergence.remedy import Remedy, batch_sizes, by_name, from_options, rates
from scaling.core.errors import UserError


def test_the_rules_of_the_rate_are_those_of_the_papers():
    assert Remedy().rate(0.1, 64) == 0.1
    assert Remedy(scaling="linear").rate(0.1, 64) == pytest.approx(6.4)
    assert Remedy(scaling="sqrt").rate(0.1, 64) == pytest.approx(0.8)


def test_the_warm_up_rises_update_by_update_from_the_base_rate():
    found = rates(Remedy(warmup_epochs=2), base=0.1, peak=0.5, updates_per_epoch=2, epochs=3)
    assert found == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.5, 0.5])


def test_a_peak_below_the_base_rate_needs_no_warm_up():
    assert rates(Remedy(warmup_epochs=2), 0.1, 0.05, 2, 2) == [0.05] * 4


def test_the_rate_falls_to_zero_after_the_warm_up():
    linear = rates(Remedy(warmup_epochs=1, decay="linear"), 0.1, 0.5, 2, 3)
    assert linear == pytest.approx([0.1, 0.3, 0.5, 0.375, 0.25, 0.125])
    cosine = rates(Remedy(decay="cosine"), 0.1, 1.0, 4, 1)
    assert cosine == pytest.approx([(1 + math.cos(math.pi * i / 4)) / 2 for i in range(4)])


def test_an_epoch_has_the_batches_that_ddp_would_have():
    # 12,500 images a GPU: six batches of 2,048 and one of 212.
    assert batch_sizes(50_000, 8192, 4) == [2048] * 6 + [212]
    assert batch_sizes(50_000, 128, 1) == [128] * 390 + [80]
    assert batch_sizes(43, 16, 2) == [8, 8, 6]


def test_an_unknown_option_is_named_with_those_there_are():
    with pytest.raises(UserError, match=r"remedy fast: .*speed.* \(options: scaling, "):
        from_options("fast", {"speed": 2})
    assert from_options("naive", {"factors": [1]}).factors == (1,)
    assert by_name([{"name": "a", "lars": 0.1}, {"name": "b"}]) == {"a": {"lars": 0.1}, "b": {}}


def test_a_large_batch_is_spread_and_a_small_one_is_not():
    assert [STUDY.gpus_of(batch) for batch in (128, 256, 512, 8192)] == [1, 1, 4, 4]


def test_equal_runs_of_two_remedies_are_one():
    """At the reference batch, scaling and warm-up leave nothing to scale or to warm up."""
    plain, scaled = Remedy(), Remedy(scaling="linear", warmup_epochs=1)
    at_reference = [run_of(STUDY, remedy, 128, 640, 1.0, 0) for remedy in (plain, scaled)]
    assert at_reference[0] == at_reference[1]
    larger = [run_of(STUDY, remedy, 512, 640, 1.0, 0) for remedy in (plain, scaled)]
    assert larger[0] != larger[1]
    assert run_of(STUDY, plain, 128, 640, 1.0, 1) != at_reference[0]


def test_equal_updates_train_longer_up_to_the_bound():
    equal = Remedy(equal_updates=True)
    # 5 updates an epoch at 128, 2 at 512, 1 at 640.
    assert reference_updates(STUDY, 640) == 10
    assert epochs_of(STUDY, Remedy(), 512, 640) == 2
    assert epochs_of(STUDY, equal, 128, 640) == 2
    assert epochs_of(STUDY, equal, 512, 640) == 5
    assert epochs_of(STUDY, equal, 640, 640) == 8


def test_the_rate_with_the_lowest_training_loss_is_chosen():
    assert choose([0.25, 1.0, 4.0], [1.0, 0.8, 0.9]) == 1.0
    assert choose([0.25, 1.0, 4.0], [1.0, None, None]) == 0.25
    # All diverged: the rule's own rate shows it.
    assert choose([0.25, 1.0, 4.0], [None, None, None]) == 1.0
