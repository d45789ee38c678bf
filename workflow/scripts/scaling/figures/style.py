"""Common style of the figures: palette, panels, lines, axes and legends."""

import io
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullLocator

from scaling.core import files
from scaling.tables import schema

matplotlib.use("agg")

# Okabe & Ito, "Color Universal Design", 2008: distinguishable with any colour vision.
BLUE, VERMILLION, GREEN, PURPLE = "#0072b2", "#d55e00", "#009e73", "#cc79a7"
ORANGE, SKY, INK, GREY = "#e69f00", "#56b4e9", "#222222", "#767676"
COLOURS = [BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, INK]
DASHES = ["-", "--", ":", "-."]
"""Styles of lines for the numbers of GPUs."""
MARKERS = ["o", "s", "^", "D", "v", "P", "X"]

STYLE = Path(__file__).parents[4] / "report/figures.mplstyle"
WIDTH_INCHES, PANEL_INCHES = 4.2, 1.9
POWERS = [2.0**power for power in range(-16, 16)]
IDEAL: dict[str, Any] = {"color": GREY, "linestyle": "--", "linewidth": 1}
EMPTY = '<svg xmlns="http://www.w3.org/2000/svg"/>\n'
"""The contents of a figure without data."""


def save(draw: Callable[..., Figure | None], tables: list[pd.DataFrame], path: Path) -> None:
    """Draw `tables` and write the figure as SVG without date or version; None as an empty file.

    Its name salts the ids, so that two figures share a page.
    """
    drawn = io.StringIO(EMPTY)
    with matplotlib.rc_context({"svg.hashsalt": path.stem}, fname=STYLE):
        if (figure := draw(*tables)) is not None:
            figure.savefig(drawn, format="svg", metadata={"Date": None, "Creator": None})
    files.write_text(path, drawn.getvalue())


def lines(axes: Axes, groups: Iterable[pd.DataFrame], x: str, column: str, **look: Any) -> None:
    """Draw `column` over `x` for each group, with bars from `column`_low to _high if it has them.

    Else they are from _min to _max.
    """
    for index, rows in enumerate(groups):
        names = ("_low", "_high") if f"{column}_low" in rows else ("_min", "_max")
        value, low, high = (rows.get(f"{column}{end}", rows[column]) for end in ("", *names))
        ends = [(value - low).clip(0), (high - value).clip(0)]
        axes.errorbar(rows[x], value, yerr=ends, **(numbered(index) | look))


def panels(titles: Sequence[str], x: str = "", y: str = "") -> tuple[Figure, list[Axes]]:
    """Return a figure with one panel for each title, two per row, and axis labels."""
    columns = min(2, len(titles))
    rows = -(-len(titles) // columns)
    size = WIDTH_INCHES, rows * (PANEL_INCHES + 0.5) + 0.2
    figure = Figure(figsize=size, layout="constrained")
    for index, title in enumerate(titles):
        labels = {"xlabel": x, "ylabel": "" if index % 2 else y}
        figure.add_subplot(rows, columns, index + 1, **labels).set_title(title)
    return figure, figure.axes


def log2_axis(axis: Any, values: Sequence[float], ends: tuple[float, float] | None = None) -> None:
    """Make an axis logarithmic, with ticks at sorted `values`, or at most eight within `ends`."""
    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    if ends is not None:
        axis.axes.set(**{f"{axis.axis_name}lim": ends})
        values = [value for value in values if ends[0] <= value <= ends[1]]
        values = values[:: -(-len(values) // 8) or 1]
    axis.set_ticks(values)
    axis.set_minor_locator(NullLocator())
    digits = FuncFormatter(lambda value, _: f"{value:.2g}" if value < 1 else f"{value:g}")
    axis.set_major_formatter(digits)


def batch_axis(axes: Axes, sizes: pd.Series) -> None:
    """Make the x axis one of these batch sizes."""
    log2_axis(axes.xaxis, sorted(sizes.unique()), (sizes.min() / 1.6, sizes.max() * 1.6))


def numbered(index: int) -> dict[str, Any]:
    """Return colour and marker of line number `index`."""
    return {"color": COLOURS[index % len(COLOURS)], "marker": MARKERS[index % len(MARKERS)]}


def legend(figure: Figure, names: Iterable[Any], *more: Any, **look: Any) -> None:
    """Add a legend above all panels: numbered lines of these names, then the handles of `more`."""
    handles = [line_handle(str(name), **numbered(i), **look) for i, name in enumerate(names)]
    handles += more
    inches = 0.5 + 0.065 * max(len(str(handle.get_label())) for handle in handles)
    columns = min(len(handles), max(1, int(figure.get_figwidth() / inches)))
    look = {"ncols": columns, "handletextpad": 0.5, "columnspacing": 1.4}
    figure.legend(handles=handles, loc="outside upper left", **look)


def by_configuration(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Return the rows of each recipe and strategy, by their names `tuned · ddp`."""
    groups = schema.by_configuration(table).items()
    return {name.replace("/", " · "): rows for name, rows in groups}


def line_handle(label: str, **style: Any) -> Line2D:
    """Return a legend entry for a line."""
    return Line2D([], [], label=label, **style)
