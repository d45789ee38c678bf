"""All figures, with their drawing functions and tables.

Rules, the report and tests use this list. `importlib` loads a figure's module only to draw it, so
that a figure depends only on the code of its module.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class FigureSpec:
    """A figure; its name is that of its SVG.

    The function `draw_{name}` of `module` draws it from its `tables` (names of the schema), in this
    order. `category` is its place in Snakemake's report.
    """

    module: str
    category: str
    tables: tuple[str, ...]


_SCALING = "scaling.figures.scaling"
_LEARNING, _PART_B = "scaling.figures.learning", "scaling.figures.quantization"
FIGURES = {
    "epoch_time": FigureSpec(_SCALING, "Timing", ("timing",)),
    "step_classes": FigureSpec(_SCALING, "Timing", ("step_classes",)),
    "speedup": FigureSpec(_SCALING, "Timing", ("speedup",)),
    "communication": FigureSpec(_SCALING, "Communication", ("epoch_parts",)),
    "bandwidth": FigureSpec(_SCALING, "Communication", ("interconnect", "bandwidth")),
    "learning": FigureSpec(_LEARNING, "Accuracy", ("accuracy",)),
    "remedies": FigureSpec(_LEARNING, "Accuracy", ("remedies",)),
    "quantization_histograms": FigureSpec(
        _PART_B, "Int8 quantization", ("quantization_histograms",)
    ),
}
