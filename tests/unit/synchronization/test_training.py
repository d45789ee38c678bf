"""How far ranks' running statistics are apart, and strategies' weights."""

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from scaling.synchronization import training
from scaling.synchronization.plan import Plan
from scaling.synchronization.training import drift

NAN = float("nan")
# Mean and variance of each channel, of each rank.
OF_RANKS = [
    # Variances 3 and 5, range 2 over mean 4; means 0 and 1, over sqrt(4). The other channel: equal
    # variances 9; means -3 and 3, 6 over 3.
    ([([0, -3], [3, 9]), ([1, 3], [5, 9])], [2.0, (0.5 + 2.0) / 2, 0.5, 0.25]),
    # The range is over all ranks.
    ([([value], [1.0]) for value in (0.0, 0.5, 0.2, -0.5)], [1.0, 1.0, 0.0, 0.0]),
    # A training that diverged has none.
    ([([0, NAN], [1, NAN])] * 2, 4 * [NAN]),
    # A channel that never varies is left out.
    ([([0, 5], [1, 0]), ([1, 6], [1, 0])], [1.0, 1.0, 0.0, 0.0]),
    ([([1.0], [0.0])] * 2, 4 * [0.0]),
]


@pytest.mark.parametrize(("ranks", "expected"), OF_RANKS)
def test_a_drift_is_a_range_relative_to_the_deviation_or_to_the_variance(ranks, expected):
    found = drift([{"mean": np.array(m), "variance": np.array(v)} for m, v in ranks])
    assert list(found) == ["mean_max", "mean_mean", "variance_max", "variance_mean"]
    assert list(found.values()) == pytest.approx(expected, nan_ok=True)


def test_weights_are_apart_by_a_share_of_the_way_that_the_first_strategys_went(monkeypatch):
    ways = {"ddp": (0.0, 2.0), "fsdp": (1.0, 2.0)}

    def trainer_of(plan, chosen, rank, dataset):
        model = torch.nn.PReLU(2)

        def train(count):
            model.weight.data += torch.tensor(ways[chosen.strategy])
            return SimpleNamespace(iterations=count)

        return model, SimpleNamespace(in_memory=lambda limit: train)

    monkeypatch.setattr(training, "STRATEGIES", [*ways])
    monkeypatch.setattr(training, "trainer_of", trainer_of)
    plan = Plan(dataset=Path(), manifest=Path(), output=Path())
    assert [row["distance"] for row in training.distances(plan, None, None)] == [0.5]
