"""Tables of loss and accuracy."""

import math

import pytest

from examples.records import epoch, full_training, record
from scaling.core.grid import Cell
from scaling.tables import schema
from scaling.tables.accuracy import accuracy, compare_batches, trained_to_accuracy
from scaling.tables.timing import timing

CELL = Cell("plain", "ddp", 1, 128, 0)
TEST = {"test_loss": 1.1, "test_accuracy": 0.6}


def of_record(epochs, **more):
    return accuracy([(CELL, record(CELL, epochs, **more))])


def test_requested_epochs_have_a_row_the_last_with_test_figures():
    """One warm-up and three measured epochs are planned. More ran until times were steady."""
    losses = [2.0, 1.8, 1.6, 1.4, 1.2, 1.0]
    epochs = [epoch(n, 1.0, train_loss=loss) for n, loss in enumerate(losses, start=1)]
    epochs[0]["role"] = "warmup"
    table = of_record(epochs, evaluation=TEST)
    assert table.train_loss.tolist() == losses[:4]
    assert table.test_accuracy.isna().tolist() == [True] * (len(table) - 1) + [False]
    # A run that diverged has losses and no accuracy.
    table = of_record(epochs, evaluation=TEST, status="diverged")
    assert table.train_loss.tolist() == losses[:4] and set(table.status) == {"diverged"}
    assert table.train_accuracy.isna().all() and table.test_accuracy.isna().all()


def test_ranks_count_by_their_samples():
    epochs = [
        epoch(1, 8.0, rank=0, samples=300, train_loss=1.0, train_accuracy=0.5),
        epoch(1, 8.0, rank=1, samples=100, train_loss=2.0, train_accuracy=0.1),
    ]
    row = of_record(epochs).iloc[0]
    assert row.train_loss == pytest.approx(1.25)  # (300 · 1 + 100 · 2) / 400
    assert row.train_accuracy == pytest.approx(0.4)  # (150 + 10) / 400
    # A rank's loss that was not finite leaves the epoch without one.
    epochs[1]["train_loss"] = None
    assert math.isnan(of_record(epochs).iloc[0].train_loss)


@pytest.mark.parametrize(("reference", "size"), [(32, 32), (None, 128)])
def test_accuracies_are_compared_with_the_reference_batch(reference, size):
    """The reference batch is that of the techniques or, without techniques, 128."""
    runs = []
    for batch, reached in ((32, 0.96), (128, 0.6)):
        cell, test = Cell("plain", "ddp", 1, batch, 0), TEST | {"test_accuracy": reached}
        runs.append((cell, record(cell, [epoch(1, 1.0)], evaluation=test)))
    rows = [{"reference": True, "global_batch": reference}] if reference else []
    remedies = schema.frame("remedies", rows)
    found = {"timing": timing(runs), "accuracy": accuracy(runs), "remedies": remedies}
    table = compare_batches(schema.StudyTables("", found))
    assert table.loc[table["reference"], "batch_size"].tolist() == [size]


def test_trainings_count_slowest_ranks_and_all_joules():
    one = [full_training(1, seed, seconds, 0.9) for seed, seconds in enumerate((6.0, 6.2, 7.0))]
    two = [full_training(2, seed, seconds, 0.9) for seed, seconds in enumerate((3.0, 3.1, 3.5))]
    two = [each | {"run_seconds": each["run_seconds"] + 2.9} for each in two]
    one[2]["training"]["compiled_graphs"] = {"kept": 0, "made": 6}
    on_one, on_two = trained_to_accuracy([*one, *two], 0.89).to_dict("records")
    middle = (6.0 * 6.2 * 7.0) ** (1 / 3)
    assert on_one["training_seconds"] == pytest.approx(middle)
    # A run that compiles does not count as a whole.
    assert (on_one["run_seconds_max"], on_one["run_cold_seconds"]) == (26.2, 27)
    assert (on_one["joules"], on_two["joules"]) == (400, 800)
    assert math.isnan(on_one["speedup"]) and on_two["reached"] == 3
    assert on_two["speedup"] == pytest.approx(2) and on_two["speedup_low"] < 2
    # Two GPUs start 2.9 s later, and save 0.75 s per epoch.
    assert on_two["break_even_min"] == on_two["break_even_max"] == 4
    # The epochs of a diverged training, and its seconds and joules, do not count.
    cut = full_training(1, 3, 1.0, math.nan) | {"status": "diverged", "evaluation": None}
    del cut["epochs"][2:]
    beside, _ = trained_to_accuracy([cut, *one, *two], 0.89).to_dict("records")
    assert (beside.pop("seeds"), beside["reached"]) == (4, 3)
    assert beside == pytest.approx({name: on_one[name] for name in beside}, nan_ok=True)
    (none,) = trained_to_accuracy([cut], 0.89).to_dict("records")
    assert all(math.isnan(none[name]) for name in ("epochs", "training_seconds", "joules"))
    two[0]["evaluation"] = {"test_accuracy": 0.5}
    _, on_two = trained_to_accuracy([*one, *two], 0.89).to_dict("records")
    assert on_two["reached"] == 2 and math.isnan(on_two["speedup"] + on_two["break_even_min"])
    two[1]["epochs"][0]["gpu_readings"][0]["energy_joules"] = None
    (alone,) = trained_to_accuracy(two[1:2], 0.89).to_dict("records")
    assert math.isnan(alone["speedup"]) and math.isnan(alone["joules"])
