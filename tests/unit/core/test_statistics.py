"""Intervals of differences of means, and differences of accuracies on the same images."""

import numpy as np
import pytest
from scipy.stats import ttest_ind

from scaling.core.paired_accuracy import mean_difference, paired
from scaling.core.statistics import difference


def test_interval_of_two_means_is_welchs():
    one, other = [14.2, 15.1, 13.8, 16.0], [15.9, 16.3, 15.7, 19.2, 17.0, 16.4]
    found = difference(one, other)
    expected = ttest_ind(other, one, equal_var=False).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx(tuple(expected))


def test_paired_accuracy_counts_all_test_images():
    labels = np.array([5, 6, 7, 8])
    found = paired(labels, np.array([5, 6, 7, 0]), np.array([5, 6, 1, 8]))
    assert found.pop("standard_error_points") == pytest.approx(100 * (2 / 3) ** 0.5 / 2)
    expected = {"accuracy_percent": 75, "difference_points": 0, "agreement_percent": 50}
    assert found == expected | {"gained": 1, "lost": 1, "test_images": 4}


def test_differences_are_averaged_over_seeds_first():
    labels = np.zeros(4, dtype=np.uint8)
    # Right (0) or wrong (1): by seed, four images.
    references = [np.array([0, 1, 1, 0]), np.array([0, 1, 0, 0])]
    picked = [np.array([0, 0, 1, 1]), np.array([1, 0, 0, 0])]
    # Differences 0, 1, 0, -1 and -1, 1, 0, 0; by image -0.5, 1, 0, -0.5 with mean 0.
    found = mean_difference(labels, references, picked)
    assert found["difference_points"] == 0
    variance = (0.25 + 1 + 0 + 0.25) / 3
    assert found["standard_error_points"] == pytest.approx(100 * (variance / 4) ** 0.5)
