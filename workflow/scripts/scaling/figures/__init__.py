"""All figures by name, with their tables. Only to draw them is Matplotlib imported."""

from typing import NamedTuple


class FigureSpec(NamedTuple):
    """A figure, which a function `draw_{name}` draws: its place in Snakemake's report, tables."""

    category: str
    tables: list[str]


FIGURES = {
    "epoch_time": FigureSpec("Timing", ["timing"]),
    "step_classes": FigureSpec("Timing", ["step_classes"]),
    "speedup": FigureSpec("Timing", ["speedup"]),
    "communication": FigureSpec("Communication", ["communication"]),
    "bandwidth": FigureSpec("Communication", ["interconnect", "bandwidth", "costs"]),
    "learning": FigureSpec("Accuracy", ["accuracy"]),
    "remedies": FigureSpec("Accuracy", ["remedies"]),
    "quantization_histograms": FigureSpec("Int8 quantization", ["quantization_histograms"]),
}
