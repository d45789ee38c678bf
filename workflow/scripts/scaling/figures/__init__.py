"""Registry of the figures; names and colours of configurations. Does not import Matplotlib."""

from collections.abc import Iterable
from itertools import cycle
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
    "plain": "#1f2428",
    "plain/ddp": "#0063a8",
    "plain/dp": "#c24f00",
    "tuned": "#b0568f",
    "tuned/flat": "#008a50",
    "tuned/ddp": "#008a50",
}
"""Printed colours by configuration; the page's CSS variables are `plain-ddp` and so on."""
OTHERS = ["#5b4bb0", "#00808a", "#b3261e", "#7a5c00", "#8a4b2a", "#4d7c0f"]
"""Colours of all other configurations, reused in turn: CSS variables `other-1` to `other-6`."""


def colours(configurations: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """Return a colour for each recipe and strategy of a study."""
    others = cycle(OTHERS)
    named = {one: COLOURS.get(configuration(*one)) for one in sorted({*configurations})}
    return {one: colour or next(others) for one, colour in named.items()}


def configuration(recipe: str, strategy: str) -> str:
    """Return a configuration's name: `plain/ddp`, or `plain` if the strategy is "" (one GPU)."""
    return "/".join(filter(None, [recipe, strategy]))
