"""What techniques gain over plain SGD, swept alike or at the base rate."""

import pytest

from examples.convergence_records import MARGIN, record, seeds, study, swept
from scaling.tables.experiments.convergence import runs
from scaling.tables.experiments.remedies import remedies

ROOT = {"scaling": "sqrt"}
WARM = {"scaling": "sqrt", "warmup_epochs": 1}


def rows(records, technique="warmup"):
    """The rows of a technique that is compared, by global batch."""
    table = remedies(runs(records), MARGIN)
    own = table[(table["remedy"] == technique) & (table["compared_with"] != "")]
    return {int(row.global_batch): row for row in own.itertuples()}


def test_a_technique_with_the_very_runs_of_plain_sgd_has_no_gain():
    """At rates of 0.05, below the base rate, a warm-up has nothing to do."""
    low = [each | {"learning_rate": 0.05 * each["factor"]} for each in swept(0.60, 0.61, 0.62)]
    same = [record("rate_sweep", 512, low, **ROOT), record("warmup", 512, low, **WARM)]
    found = rows([*(each for each in study() if each["global_batch"] != 512), *same])
    assert found[512].same_as_compared and found[512].gain != found[512].gain
    assert found[8192].gain == pytest.approx(0.04)


def test_the_same_training_evaluated_in_two_ways_is_compared_seed_by_seed():
    """+4, +5 and +6 points: Student's 4.30265 · 1 / sqrt(3) is half the interval."""
    lifted = swept(0.50, 0.61, 0.72)
    for each, gain in zip(lifted[-3:], (0.04, 0.05, 0.06), strict=True):
        each["epochs"][-1]["test_accuracy"] += gain
    known = [each for each in study() if each["remedy"] == "rate_sweep"][:1]
    records = [
        *known,
        record("none", 512, seeds(0.5, 0.5, 0.5), factors=[1]),
        record("rate_sweep", 512, swept(0.50, 0.61, 0.72), **ROOT),
        record("precise", 512, lifted, precise_batch_norm=True, **ROOT),
    ]
    row = rows(records, "precise")[512]
    assert (row.gain_low, row.gain_high) == pytest.approx((0.0252, 0.0748), abs=5e-5)
