"""Registry of the figures; names and colours of configurations. Does not import Matplotlib."""

from typing import NamedTuple


class FigureSpec(NamedTuple):
    """Input tables and caption of the figure that the function `draw_{name}` draws."""

    tables: list[str]
    caption: str


FIGURES = {
    "epoch_time": FigureSpec(["timing"], "Seconds per epoch by batch size."),
    "speedup": FigureSpec(["speedup"], "Speedup of an epoch, data loading included."),
    "communication": FigureSpec(
        ["communication"],
        "Communication by batch size: the delay by the exchange, else exposed messages.",
    ),
    "bandwidth": FigureSpec(
        ["interconnect", "bandwidth", "costs"],
        "Bus bandwidth of all-reduces by message size; alone on any machine.",
    ),
    "learning": FigureSpec(["accuracy"], "Test accuracy after the same number of epochs."),
    "remedies": FigureSpec(["remedies"], "Test accuracy of techniques: means of seeds."),
    "quantization_histograms": FigureSpec(
        ["quantization_histograms"],
        "Share of values in float32 (line) and int8 (area), between its end levels (dotted).",
    ),
}
PALETTE = ["#1f2428", "#0063a8", "#c24f00", "#b0568f", "#008a50", "#5b4bb0", "#00808a", "#b3261e"]
PALETTE += ["#7a5c00", "#8a4b2a", "#4d7c0f"]
"""Colours of configurations in figures: on the page, the CSS variables `colour-1` and so on."""


def configuration(recipe: str, strategy: str) -> str:
    """Return a configuration's name: `plain/ddp`, or `plain` if the strategy is "" (one GPU)."""
    return "/".join(filter(None, [recipe, strategy]))
