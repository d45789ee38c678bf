"""All figures, with the modules that draw them (loaded only to draw) and their tables."""

from typing import NamedTuple


class FigureSpec(NamedTuple):
    """A figure, which `draw_{name}` of `module` draws, and its place in Snakemake's report."""

    module: str
    category: str
    tables: list[str]


_HISTOGRAMS = "quantization_histograms"
_SCALING, _PART_B = "scaling.figures.scaling", "scaling.figures.quantization"
FIGURES = {
    "epoch_time": FigureSpec(_SCALING, "Timing", ["timing"]),
    "step_classes": FigureSpec(_SCALING, "Timing", ["step_classes"]),
    "speedup": FigureSpec(_SCALING, "Timing", ["speedup"]),
    "communication": FigureSpec(_SCALING, "Communication", ["epoch_parts"]),
    "bandwidth": FigureSpec(_SCALING, "Communication", ["interconnect", "bandwidth"]),
    "learning": FigureSpec(_SCALING, "Accuracy", ["accuracy"]),
    "remedies": FigureSpec(_SCALING, "Accuracy", ["remedies"]),
    _HISTOGRAMS: FigureSpec(_PART_B, "Int8 quantization", [_HISTOGRAMS]),
}
