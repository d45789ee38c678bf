"""Registry of the figures; names and colours of configurations. Does not import Matplotlib."""

from collections.abc import Iterable
from typing import NamedTuple


class FigureSpec(NamedTuple):
    """Input tables and caption of a figure, which the function `draw_{name}` draws."""

    tables: list[str]
    caption: str


FIGURES = {
    "epoch_time": FigureSpec(["timing"], "Seconds per epoch by batch size."),
    "speedup": FigureSpec(["speedup"], "Speedup by batch size."),
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
COLOURS = {
    ("plain", ""): ("plain", "#1f2428"),
    ("plain", "ddp"): ("plain-ddp", "#0063a8"),
    ("plain", "dp"): ("plain-dp", "#c24f00"),
    ("tuned", ""): ("tuned", "#b0568f"),
    ("tuned", "ddp"): ("tuned-ddp", "#008a50"),
    ("tuned", "flat"): ("tuned-ddp", "#008a50"),
}
"""CSS variable and printed colour, by recipe and strategy ("" on one GPU)."""
OTHERS = ["#5b4bb0", "#00808a", "#b3261e", "#7a5c00", "#8a4b2a", "#4d7c0f"]
"""Colours of all other configurations, used in turn; CSS variables `other-1` to `other-6`."""


def colours(configurations: Iterable[tuple[str, str]]) -> dict[tuple[str, str], tuple[str, str]]:
    """Return the CSS variable and the colour of each recipe and strategy in `configurations`."""
    found = sorted({*configurations})
    others = [one for one in found if one not in COLOURS]
    cycle = [(f"other-{at}", colour) for at, colour in enumerate(OTHERS, 1)]
    return {one: COLOURS.get(one) or cycle[others.index(one) % len(cycle)] for one in found}


def configuration(recipe: str, strategy: str) -> str:
    """Return a configuration's name: `plain/ddp`, or `plain` if the strategy is "" (one GPU)."""
    return "/".join(filter(None, [recipe, strategy]))
