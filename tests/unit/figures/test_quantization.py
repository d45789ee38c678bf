"""What a reader sees of the int8 network's values."""

import pytest

from examples.drawn import words
from examples.quantization_example import HISTOGRAM, histograms
from scaling.figures.quantization import (
    _shares,
    draw_quantization_histograms,
)


def test_a_drawn_bin_holds_the_share_of_four_levels():
    # The bins begin at levels -8, -4, 0.
    rows = histograms()
    fc = rows[(rows["quantity"] == "weights") & (rows["values"] == "int8")]
    assert fc["count"].sum() == sum(HISTOGRAM["counts"])
    shares, bounds = _shares(fc, 4)
    assert shares.tolist() == [0.05, 0.15, 0.8]
    assert bounds.tolist() == [-4.25, -2.25, -0.25, 1.75]


@pytest.mark.parametrize(
    ("bits", "limits", "bins"),
    [
        ({}, [[-127.5, 127.5], [-128.5, 127.5]], 3),
        ({"weight_bits": 4, "output_steps": [-8, 7]}, [[-7.5, 7.5], [-8.5, 7.5]], 9),
    ],
)
def test_a_layer_is_drawn_between_its_own_limits_and_below_8_bits_level_by_level(
    bits, limits, bins
):
    figure = draw_quantization_histograms(histograms(**bits))
    weights, before, after = figure.axes
    assert weights.get_ylabel() == "fc\nshare of values"
    assert "weights+activations+bias, seed 3" in words(figure)
    for axes, expected in zip((weights, before), limits, strict=True):
        assert [line.get_xdata()[0] * 2 for line in axes.lines] == expected
        assert len(axes.patches[0].get_data().values) == bins
    assert after.texts[0].get_text() == "no ReLU after this layer"
