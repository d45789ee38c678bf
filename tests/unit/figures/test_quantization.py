"""What a reader sees of the int8 network's values, of a layer of a made-up network."""

import pytest

from examples.drawn import words
from scaling.config.scheme import STAGES
from scaling.figures.quantization import draw_quantization_histograms
from scaling.tables.experiments import quantization

EDGES = [(level - 0.5) / 2 for level in range(-5, 5)]
HISTOGRAM = {"bin_edges": EDGES, "counts": [1, 0, 2, 0, 1, 10, 3, 2, 1]}
"""Of levels -5 to 3 at 2 levels per unit."""


def histograms(**layer):
    """The table of a record of one layer without ReLU."""
    entries = [
        {"layer": "fc", "quantity": quantity, "scale": 2.0, "int8": HISTOGRAM, "float": HISTOGRAM}
        for quantity in ("weights", "before_relu")
    ]
    layers = [{"layer": "fc", "weight_bits": 8, "output_steps": [-128, 127], **layer}]
    record = {"seed": 3, "variant": STAGES[-1], "layers": layers, "histograms": entries}
    return quantization.histograms([{"seed": 0, "layers": []}, record, {**record, "seed": 4}])


@pytest.mark.parametrize(
    ("bits", "limits", "shares", "edges"),
    [
        # The bins begin at levels -8, -4, 0.
        ({}, [127.5, -127.5, 127.5, -128.5], [0.05, 0.15, 0.8], [-4.25, -2.25, -0.25, 1.75]),
        (
            {"weight_bits": 4, "output_steps": [-8, 7]},
            [7.5, -7.5, 7.5, -8.5],
            [each / 20 for each in HISTOGRAM["counts"]],
            EDGES,
        ),
    ],
)
def test_a_layer_is_drawn_between_its_limits_by_four_levels_and_below_8_bits_level_by_level(
    bits, limits, shares, edges
):
    figure = draw_quantization_histograms(histograms(**bits))
    weights, before, after = figure.axes
    assert weights.get_ylabel() == "fc\nshare of values"
    assert "weights+activations+bias, seed 3" in words(figure)
    drawn = [line.get_xdata()[0] * 2 for axes in (weights, before) for line in axes.lines]
    assert drawn == limits
    for axes in (weights, before):
        found = axes.patches[0].get_data()
        assert (found.values.tolist(), found.edges.tolist()) == (shares, edges)
    assert after.texts[0].get_text() == "no ReLU after this layer"
