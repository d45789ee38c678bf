"""Tables of techniques from records."""

import math

import pytest

from examples.convergence_records import MARGIN, record, seeds, study, swept
from scaling.claims.q4 import best
from scaling.tables.accuracy import convergence, remedies


def row(table, remedy, global_batch):
    found = table[(table["remedy"] == remedy) & (table["global_batch"] == global_batch)]
    return next(found.itertuples())


def table_of(*more):
    """remedies.csv of the study and of more records."""
    return remedies(convergence([*study(), *more]), MARGIN)


def test_what_diverged_or_could_not_run_has_a_row_and_is_not_the_best():
    lacking = record("huge", 512, []) | {"status": "oom", "message": "no room", "result": None}
    table = table_of(record("fast", 512, seeds(0.5, 0.6, None)), lacking)
    naive, fast = row(table, "naive", 8192), row(table, "fast", 512)
    assert (naive.diverged_seeds, fast.diverged_seeds) == (3, 1)
    assert fast.test_accuracy == pytest.approx(0.55)
    assert [best(table, batch).remedy for batch in (512, 8192)] == ["warmup", "warmup"]
    found = row(table, "huge", 512)
    assert (found.status, found.message) == ("oom", "no room") and math.isnan(found.test_accuracy)


def test_the_remedy_of_a_batch_is_chosen_by_held_out_images():
    """Of two, the one that is better on the test set is not taken; without such images none is."""
    lucky = record("lucky", 512, swept(0.95, 0.95, 0.95, held_out=0.3), decay="linear")
    lars = record("lars", 512, swept(0.95, 0.95, 0.95), lars=0.1)
    records = [each for each in study() if each["remedy"] != "equal"] + [lucky, lars]
    table = remedies(convergence(records), MARGIN)
    assert [best(table, 512, sgd).remedy for sgd in (True, False)] == ["warmup", "lars"]
    for each in records:
        each["result"]["runs"] = [run for run in each["result"]["runs"] if not run["held_out"]]
    assert best(remedies(convergence(records), MARGIN), 512) is None
