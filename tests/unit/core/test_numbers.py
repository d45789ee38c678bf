"""How the report writes numbers."""

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


@pytest.mark.parametrize(
    ("value", "unit", "written"),
    [
        (797e12, "FLOP/s", "797 TFLOP/s"),
        (51.2e9, "FLOP/s", "51.2 GFLOP/s"),
        (4.27e12, "B/s", "4.27 TB/s"),
        (20e3, "FLOP/s", "0.0200 MFLOP/s"),
    ],
)
def test_a_rate_has_the_prefix_that_suits_it(value, unit, written):
    assert fmt.rate(value, unit) == written


def test_whole_numbers_have_a_span_and_a_standard_error_two_digits():
    assert [fmt.whole_span(values) for values in ([3, 3], [1, 9], [float("nan")])] == [
        "3",
        "1 to 9",
        "–",
    ]
