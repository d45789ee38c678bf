"""Intervals of differences of means."""

import pytest
from scipy.stats import ttest_ind

from scaling.core.statistics import difference


def test_interval_of_two_means_is_welchs():
    one, other = [14.2, 15.1, 13.8, 16.0], [15.9, 16.3, 15.7, 19.2, 17.0, 16.4]
    found = difference(one, other)
    expected = ttest_ind(other, one, equal_var=False).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx(tuple(expected))
