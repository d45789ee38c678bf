"""Learning rates of updates, and the runs of a technique."""

import math

import pytest

from scaling.large_batches.plan import Study, choose, next_factor
from scaling.large_batches.plan import rates as rates_of
from scaling.registry.update_rule import Technique

STUDY = Study()


def rates(factor, epochs=1, at=160, **options):
    """Return each update's rate. An epoch has 4 updates at 160, 2 at 512. Base rate: 0.1."""
    study = STUDY.model_copy(update={"epochs": epochs})
    return [rate for rate, _ in rates_of(study, Technique(**options), at, 640, factor)]


def test_rate_warms_up_from_the_base_rate_and_decays_to_zero():
    found = rates(5, 3, at=512, warmup_epochs=2)
    assert found == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.5, 0.5])
    # A peak below the base rate needs no warm-up.
    assert rates(0.5, warmup_epochs=2) == [0.05] * 4
    linear = rates(5, 3, at=512, warmup_epochs=1, decay="linear")
    assert linear == pytest.approx([0.1, 0.3, 0.5, 0.375, 0.25, 0.125])
    assert rates(20, decay="sqrt") == pytest.approx([2, 3**0.5, 2**0.5, 1])


def test_rate_with_lowest_training_loss_is_chosen():
    assert choose({0.25: 1.0, 1.0: 0.8, 4.0: 0.9}) == 1.0
    assert choose({0.25: 1.0, 1.0: None, 4.0: None}) == 0.25
    # All diverged: the rule's own rate shows it.
    assert choose(dict.fromkeys([0.25, 1.0, 4.0])) == 1.0


@pytest.mark.parametrize(("best", "tried"), [(0.06, 6), (0.9, 5), (20.0, 6)])
def test_sweep_ends_with_the_best_rate_inside_a_factor_of_2(best, tried):
    found = {factor: abs(math.log(factor / best)) for factor in (0.25, 1.0, 4.0)}
    while (factor := next_factor(found)) is not None:
        assert factor not in found
        found[factor] = abs(math.log(factor / best))
    chosen, order = choose(found), sorted(found)
    place = order.index(chosen)
    assert order[place + 1] / order[place - 1] == pytest.approx(4)
    assert abs(math.log2(chosen / best)) <= 1 / 2 and len(found) == tried
    # Where all diverged a smaller one may not.
    assert next_factor({1.0: None, 2.0: None}) == 0.5


def test_muon_sweeps_its_rate_and_rest_follows_the_schedule():
    muon = Technique(muon=0.2, warmup_share=0.2, decay="linear")
    found = rates_of(STUDY.model_copy(update={"epochs": 5}), muon, 512, 640, 2.0)
    shares = [1 / 3, 2 / 3, 1, 7 / 8, 6 / 8, 5 / 8, 4 / 8, 3 / 8, 2 / 8, 1 / 8]
    assert [rate for rate, _ in found] == pytest.approx([0.4 * share for share in shares])
    assert [rest for _, rest in found] == pytest.approx([0.1 * share for share in shares])
    assert Technique(decay="linear").shares(4) == [1, 0.75, 0.5, 0.25]
