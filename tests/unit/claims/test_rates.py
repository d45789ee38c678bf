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


def test_without_runs_nothing_is_known():
    reference = record("none", 128, seeds(0.7, 0.71, 0.72), factors=[1])
    assert {claim.verdict for claim in claims([reference]).values()} == {"not measured"}
    assert not claims([])
