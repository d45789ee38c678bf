"""Question 4.2: claims on linear scaling, and on how the best rate grows with the batch."""

import pytest

from examples import remedy_claims
from examples.convergence_records import record, run, seeds
from scaling.claims import rates


def claims(records):
    return remedy_claims.claims(rates.claims, records)


def best_rate(found, step=4.0, ends=()):
    """The claim of these best rates of plain SGD by global batch."""
    reference = record("none", 128, seeds(0.7, 0.71, 0.72), factors=[1])
    swept = [sweep(batch, rate, step, batch in ends) for batch, rate in found.items()]
    return claims([reference, *swept])["Q4.2-best-rate"]


def sweep(batch, best, step, at_edge):
    """Plain SGD whose best rate has neighbours a factor `step` away."""
    runs = [
        run(0.1, factor=1 / step, chosen=False) | {"learning_rate": best / step},
        run(0.1, factor=step, chosen=False) | {"learning_rate": best * step},
        *(run(0.7, seed) | {"learning_rate": best} for seed in range(3)),
    ]
    return record("rate_sweep", batch, runs, at_edge=at_edge, scaling="sqrt")


@pytest.mark.parametrize(
    ("best", "options", "verdict"),
    [
        # A factor 8 over a batch 64 times as large; 2 · 2 either way by the steps of the sweep.
        ({128: 0.00625, 512: 0.0125, 8192: 0.05}, {}, "supported"),
        ({128: 0.1, 8192: 102.4}, {}, "refuted"),
        ({128: 0.1, 8192: 6.4}, {}, "unclear"),
        ({128: 0.00625, 8192: 0.05}, {"step": 16.0}, "unclear"),
        # A best rate at an end of its sweep is left out.
        ({128: 0.00625, 512: 0.0125, 8192: 102.4}, {"ends": [8192]}, "unclear"),
        ({128: 0.00625, 512: 0.0125, 8192: 0.05}, {"ends": [128]}, "not measured"),
    ],
)
def test_the_best_rate_grows_slower_than_the_batch_or_not(best, options, verdict):
    assert best_rate(best, **options).verdict == verdict


def linear(*accuracies):
    """The claim where linear scaling ends like this at 8192, beside seeds that learn at 512."""
    rule = {"scaling": "linear", "factors": [1]}
    known = [
        record("none", 128, seeds(0.7, 0.71, 0.72), factors=[1]),
        *(record("naive", batch, seeds(0.55, 0.56, 0.57), **rule) for batch in (128, 512)),
    ]
    return claims([*known, record("naive", 8192, seeds(*accuracies), **rule)])["Q4.2-rule"]


def test_linear_scaling_diverges_with_few_updates():
    found = linear(None, None, None)
    said = "0 of 3 seeds diverged at batch 512, 3 of 3 at 8192, whose rate is 6.4."
    assert (found.verdict, found.sentence) == ("supported", said)
    assert found.evidence[0].figures["diverged_seeds_at_8192"] == 3
    assert linear(0.3, 0.3, 0.3).verdict == "refuted"
    assert linear(0.3, 0.3, None).verdict == "unclear"


def test_without_runs_nothing_is_known():
    reference = record("none", 128, seeds(0.7, 0.71, 0.72), factors=[1])
    assert {claim.verdict for claim in claims([reference]).values()} == {"not measured"}
    assert not claims([])
