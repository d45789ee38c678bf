"""How far ranks' running statistics are apart."""

import numpy as np
import pytest

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
