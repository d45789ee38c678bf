"""Claims on linear scaling at its word, and on how the best rate grows with the batch."""

import pytest

from examples import remedy_claims
from examples.convergence_records import record, run, seeds, study
from examples.remedy_claims import without


@pytest.fixture
def best_rate(tmp_path):
    """A function from the best rates of plain SGD by global batch to the claim on them."""

    def claim(rates, step=4.0, ends=()):
        others = [each for each in study() if each["remedy"] != "rate_sweep"]
        swept = [sweep(batch, rate, step, batch in ends) for batch, rate in rates.items()]
        return remedy_claims.claims(tmp_path, [*others, *swept])["Q4.2-best-rate"]

    return claim


def sweep(batch, best, step, at_edge):
    """Plain SGD whose best rate has neighbours a factor `step` away."""
    runs = [
        run(0.1, factor=1 / step, chosen=False) | {"learning_rate": best / step},
        run(0.1, factor=step, chosen=False) | {"learning_rate": best * step},
        *(run(0.7, seed) | {"learning_rate": best} for seed in range(3)),
    ]
    return record("rate_sweep", batch, runs, at_edge=at_edge, scaling="sqrt")


def test_a_rate_that_grows_as_the_square_root_is_slower_than_the_batch(best_rate):
    found = best_rate({128: 0.00625, 512: 0.0125, 8192: 0.05})
    assert found.verdict == "supported"
    assert "0.00625 at 128, 0.0125 at 512, 0.05 at 8192" in found.sentence
    figures = found.evidence[0].figures
    # A factor 8 over a batch 64 times as large; 2 · 2 either way by the steps of the sweep.
    assert figures["exponent"] == pytest.approx(1 / 2)
    assert figures["exponent_low"] == pytest.approx(1 / 6)
    assert figures["exponent_high"] == pytest.approx(5 / 6)
    assert "to the power of 0.50 between 128 and 8192 (0.17 to 0.83" in found.sentence
    assert "the square root (1/2) is in that range" in found.sentence
    assert "linear scaling (1) is outside that range" in found.sentence
    assert "above the best already at 128 (16× at 128, 8× at 512)" in found.sentence


def test_a_rate_that_grows_faster_refutes_it_and_a_coarse_sweep_leaves_it_open(best_rate):
    faster = best_rate({128: 0.1, 8192: 102.4})
    assert faster.verdict == "refuted" and "at least as fast as the batch" in faster.sentence
    assert "base rate" not in faster.sentence
    linear = best_rate({128: 0.1, 8192: 6.4})
    assert linear.verdict == "undecided" and "linear scaling (1) is in" in linear.sentence
    assert best_rate({128: 0.00625, 8192: 0.05}, step=16.0).verdict == "undecided"


def test_a_best_rate_at_an_end_of_its_sweep_is_left_out_and_named(best_rate):
    rates = {128: 0.00625, 512: 0.0125, 8192: 0.05}
    found = best_rate(rates, ends=[8192])
    assert "between 128 and 512" in found.sentence
    assert "at an end of its sweep: 0.05 at 8192." in found.sentence
    unknown = best_rate(rates, ends=[128])
    assert unknown.verdict == "undecided" and "cannot be said" in unknown.sentence
    assert "at an end of its sweep: 0.00625 at 128." in unknown.sentence


@pytest.fixture
def rule(tmp_path):
    """A function from the seeds of linear scaling at 8192, None for no runs, to its claim."""

    def claim(runs):
        naive = {"scaling": "linear", "factors": [1]}
        records = without("naive") if runs is None else without("naive", 8192)
        if runs is not None:
            records.append(record("naive", 8192, runs, **naive))
        return remedy_claims.claims(tmp_path, records)["Q4.2-rule"]

    return claim


def test_the_rule_at_its_word_diverges_with_few_updates(tmp_path):
    found = remedy_claims.claims(tmp_path, study())["Q4.2-rule"]
    assert found.verdict == "supported"
    figures = found.evidence[0].figures
    assert (figures["global_batch"], figures["planned_updates"]) == (8192, 10)
    assert "It still learns at 512." in found.sentence
    shown = found.evidence[1].figures
    assert (shown["highest_at_update"], shown["last_loss"]) == (4, 1.5)


def test_a_rule_that_never_diverges_refutes_it_and_some_seeds_leave_it_open(rule):
    assert rule(seeds(0.3, 0.3, 0.3)).verdict == "refuted"
    mixed = rule(seeds(0.3, 0.3, None))
    assert mixed.verdict == "undecided" and mixed.evidence[0].figures["diverged_seeds"] == 1
    assert rule(None).verdict == "undecided"


def test_a_loss_that_is_not_finite_is_told_with_its_update_and_what_was_planned(rule):
    found = rule(
        [each | {"epochs": each["epochs"][:1], "updates": 5} for each in seeds(None, None, None)]
    )
    assert found.verdict == "supported"
    assert "2 epochs are 10 updates there" in found.sentence
    assert "a loss that is not finite, from update 7 on, in 3 of 3 seeds" in found.sentence
    assert found.evidence[0].figures["updates"] == 5
