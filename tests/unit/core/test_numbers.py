"""Numbers as the report prints them."""

import pytest

from scaling.core import numbers as fmt


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (0.345, "0.345"),
        (12.44, "12.4"),
        (1234.4, "1,234"),
        (0.0099999, "0.0100"),
        (-0.01, "−0.0100"),
        (0, "0"),
        (999999, "999,999"),
        (16592464668, "1.66e10"),
        (-9999999, "−1.00e7"),
        (float("nan"), "–"),
    ],
)
def test_numbers_keep_three_significant_digits(value, written):
    assert fmt.significant(value) == written
