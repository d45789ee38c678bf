"""Images to an accuracy, and trainings run to their end."""

import math

import pytest

from examples.convergence_records import record, seeds
from examples.records import full_training
from scaling.tables.experiments.convergence import images_to_accuracy
from scaling.tables.experiments.full_trainings import trained_to_accuracy


def test_each_batch_has_the_technique_and_length_that_need_the_fewest_images():
    """Two epochs end at this accuracy, 0.2 higher than the first; 640 images an epoch."""
    slow, fast = record("slow", 512, seeds(0.5, 0.6, 0.7)), record("fast", 512, seeds(0.7, 0.8))
    fast["result"]["longer"] = seeds(0.9, 0.95, epochs=3)
    found = images_to_accuracy([slow, fast, record("slow", 128, seeds(0.4))], [0.55, 0.75, 0.99])
    rows = found.set_index(["global_batch", "accuracy"])
    early = rows.loc[512, 0.55]
    assert (early["remedy"], early["planned_epochs"], early["epochs"]) == ("fast", 3, 1)
    assert (early["images"], early["updates"], early["epochs_max"]) == (640, 5, 1)
    late = rows.loc[512, 0.75]
    assert (late["planned_epochs"], late["epochs"], late["epochs_min"]) == (3, 3, 1)
    assert (late["images"], late["seeds"], late["reached"]) == (3 * 640, 2, 2)
    assert rows.loc[(512, 0.99), "images"] == rows.loc[(128, 0.55), "images"] == math.inf
    assert rows.loc[(512, 0.99), "reached"] == 0


def test_trainings_count_their_slowest_ranks_and_all_gpus_joules():
    one = [full_training(1, seed, seconds, 0.9) for seed, seconds in enumerate((6.0, 6.2, 7.0))]
    two = [full_training(2, seed, seconds, 0.9) for seed, seconds in enumerate((3.0, 3.1, 3.5))]
    two[0]["evaluation"] = {"test_accuracy": 0.5}
    on_one, on_two = trained_to_accuracy([*one, *two], 0.89).to_dict("records")
    assert (on_one["training_seconds"], on_one["run_seconds_max"]) == (6.2, 27)
    assert (on_one["joules"], on_two["joules"]) == (400, 800)
    assert math.isnan(on_one["speedup"]) and on_two["reached"] == 2
    assert on_two["speedup"] == pytest.approx(2) and on_two["speedup_low"] < 2
    two[1]["epochs"][0]["gpu_readings"][0]["energy_joules"] = None
    (alone,) = trained_to_accuracy(two[1:2], 0.89).to_dict("records")
    assert math.isnan(alone["speedup"]) and math.isnan(alone["joules"])
