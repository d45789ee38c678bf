"""How far ranks' running statistics are apart, and strategies' weights."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from scaling.synchronization import training
from scaling.synchronization.training import drift


def statistics(mean, variance):
    return {"mean": np.array(mean), "variance": np.array(variance)}


def test_variances_are_compared_with_their_mean_and_means_with_the_deviation():
    # Channel 0: variances 3 and 5, range 2 over mean 4; means 0 and 1, over sqrt(4).
    # Channel 1: equal variances 9; means -3 and 3: 6 over 3.
    found = drift([statistics([0, -3], [3, 9]), statistics([1, 3], [5, 9])])
    assert found == {
        "mean_max": pytest.approx(2.0),
        "mean_mean": pytest.approx((0.5 + 2.0) / 2),
        "variance_max": pytest.approx(0.5),
        "variance_mean": pytest.approx(0.25),
    }


def test_the_range_is_over_all_ranks():
    ranks = [statistics([value], [1.0]) for value in (0.0, 0.5, 0.2, -0.5)]
    assert drift(ranks)["mean_max"] == pytest.approx(1.0)
    assert set(drift(ranks[:1] * 3).values()) == {0.0}


def test_a_training_that_diverged_has_no_drift_to_tell():
    nan = float("nan")
    found = drift([statistics([0, nan], [1, nan]), statistics([0, nan], [1, nan])])
    assert all(np.isnan(value) for value in found.values())


def test_a_channel_that_never_varies_is_left_out():
    found = drift([statistics([0, 5], [1, 0]), statistics([1, 6], [1, 0])])
    assert found["mean_max"] == found["mean_mean"] == pytest.approx(1.0)
    silent = statistics([1.0], [0.0])
    assert set(drift([silent, silent]).values()) == {0.0}


def test_weights_are_apart_by_a_share_of_the_way_that_the_first_strategys_went(monkeypatch):
    ways = {"ddp": (0.0, 2.0), "fsdp": (1.0, 2.0)}

    def plain(strategy, rank, model, dataset):
        def train(count):
            model.weight.data += torch.tensor(ways[strategy])
            return SimpleNamespace(iterations=count)

        return SimpleNamespace(in_memory=lambda limit: train)

    monkeypatch.setattr(training, "STRATEGIES", [*ways])
    monkeypatch.setattr(training, "fresh", lambda *_: torch.nn.PReLU(2))
    monkeypatch.setattr(training, "Eager", plain)
    plan = SimpleNamespace(seeds=[0], spec_of=lambda recipe, strategy, seed: strategy)
    assert [row["distance"] for row in training.distances(plan, None, None)] == [0.5]
