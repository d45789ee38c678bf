"""What a reader sees of the int8 network's values, of a layer of a made-up network."""

from examples.drawn import words
from scaling.config.scheme import STAGES
from scaling.figures.quantization import draw_quantization_histograms
from scaling.tables.experiments import quantization

EDGES = [(level - 0.5) / 2 for level in range(-5, 5)]
HISTOGRAM = {"bin_edges": EDGES, "counts": [1, 0, 2, 0, 1, 10, 3, 2, 1]}
"""Of levels -5 to 3 at 2 levels per unit."""


def test_a_layer_is_drawn_between_the_limits_of_int8_by_four_levels():
    entries = [
        {"layer": "fc", "quantity": quantity, "scale": 2.0, "int8": HISTOGRAM, "float": HISTOGRAM}
        for quantity in ("weights", "before_relu")
    ]
    record = {"seed": 3, "variant": STAGES[-1], "histograms": entries}
    table = quantization.histograms([{"seed": 0}, record, {**record, "seed": 4}])
    figure = draw_quantization_histograms(table)
    weights, before, after = figure.axes
    assert weights.get_ylabel() == "fc\nshare of values"
    assert "weights+activations+bias, seed 3" in words(figure)
    drawn = [sorted(line.get_xdata()[0] * 2 for line in axes.lines) for axes in (weights, before)]
    assert drawn == [[-127.5, 127.5], [-128.5, 127.5]]
    for axes in (weights, before):
        found = axes.patches[0].get_data()
        # The bins begin at levels -8, -4, 0.
        assert found.edges.tolist() == [-4.25, -2.25, -0.25, 1.75]
        assert found.values.round(6).tolist() == [0.05, 0.15, 0.8]
    assert after.texts[0].get_text() == "no ReLU after this layer"
