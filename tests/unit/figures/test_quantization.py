"""What a reader sees of the int8 network's values, of a layer of a made-up network."""

from examples.page import panel, words
from scaling.config.scheme import STAGES
from scaling.figures.quantization import draw_quantization_histograms
from scaling.tables import quantization
from scaling.tables.schema import StudyTables

EDGES = [(level - 0.5) / 2 for level in range(-5, 5)]
HISTOGRAM = {"bin_edges": EDGES, "counts": [1, 0, 2, 0, 1, 10, 3, 2, 1]}
"""Of levels -5 to 3 at 2 levels per unit."""


def test_layer_is_drawn_between_limits_by_four_levels():
    entries = [
        {"layer": "fc", "quantity": quantity, "scale": 2.0, "int8": HISTOGRAM, "float": HISTOGRAM}
        for quantity in ("weights", "before_relu")
    ]
    record = {"seed": 3, "variant": STAGES[-1], "histograms": entries}
    table = quantization.quantization_histograms([{"seed": 0}, record, {**record, "seed": 4}])
    tables = StudyTables("own", {"quantization_histograms": table})
    figure = draw_quantization_histograms(tables)
    weights, before = (
        panel(figure, f"{name}\n1 level = 0.5") for name in ("weights", "before ReLU")
    )
    assert "fc" in words(figure) and len(figure.axes) == 2
    drawn = [sorted(line.get_xdata()[0] * 2 for line in axes.lines) for axes in (weights, before)]
    assert drawn == [[-127.5, 127.5], [-128.5, 127.5]]
    for axes in (weights, before):
        found = axes.patches[0].get_data()
        # The bins begin at levels -8, -4, 0.
        assert found.edges.tolist() == [-4.25, -2.25, -0.25, 1.75]
        assert found.values.round(6).tolist() == [0.05, 0.15, 0.8]
