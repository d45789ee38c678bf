"""The figures there are: what draws each, and what it is drawn from.

Rules, the report and tests read this list. `importlib` loads a figure's module only to draw it, so
that the code behind a figure is its own module, and not those of all others.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class FigureSpec:
    """A figure; its name is that of its SVG, its rule (`plot_…`) and its caption.

    The function `draw_{name}` of `module` draws it from its `tables` (names of the schema), in this
    order; without tables, from the record of a quantized variant, or from None where there is none.
    `category` is where Snakemake's own report lists it.
    """

    module: str
    category: str
    tables: tuple[str, ...] = ()


FIGURES = {
    "epoch_time": FigureSpec("scaling.figures.scaling", "Timing", ("timing",)),
    "speedup": FigureSpec("scaling.figures.scaling", "Timing", ("speedup",)),
    "communication": FigureSpec("scaling.figures.scaling", "Communication", ("communication",)),
    "collectives": FigureSpec("scaling.figures.synchronization", "Communication", ("collectives",)),
    "learning": FigureSpec("scaling.figures.learning", "Accuracy", ("accuracy",)),
    "remedies": FigureSpec("scaling.figures.convergence", "Accuracy", ("remedies",)),
    "quantization_histograms": FigureSpec("scaling.figures.quantization", "Int8 quantization"),
    "quantization_sizes": FigureSpec(
        "scaling.figures.quantization", "Int8 quantization", ("quantization",)
    ),
    "comparison": FigureSpec("scaling.figures.comparison", "Side by side", ("comparison",)),
}
STUDY_FIGURES = [name for name in FIGURES if name != "comparison"]
"""The figures of a measured study; the comparison is of published ones."""
