"""Share style, palette, panels, batch-size axes and legends among the figures."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, NullLocator

from scaling.core import files

matplotlib.use("agg")

# Okabe & Ito, "Color Universal Design", 2008: distinguishable with any colour vision.
BLUE, VERMILLION, GREEN, PURPLE = "#0072b2", "#d55e00", "#009e73", "#cc79a7"
ORANGE, SKY, INK, GREY = "#e69f00", "#56b4e9", "#222222", "#767676"
COLOURS = [BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, INK]
MARKERS = ["o", "s", "^", "D", "v", "P", "X"]

STYLE = Path(__file__).parents[4] / "report/figures.mplstyle"
PANEL_INCHES = (3.7, 2.5)
LONE_PANEL_INCHES = 5.4
LEGEND_ENTRY_INCHES = 1.0


@contextmanager
def style(name: str) -> Iterator[None]:
    """Draw and save the figure `name` in the common style, the same bytes for the same table.

    `name` salts the ids inside the SVG, so that two figures can share one page.
    """
    with matplotlib.rc_context({"svg.hashsalt": name}, fname=STYLE):
        yield


def save(figure: Figure, path: Path) -> None:
    """Write `figure` as SVG without date or program version, atomically."""
    with files.atomic_path(path) as temporary:
        figure.savefig(temporary, format="svg", metadata={"Date": None, "Creator": None})


def panels(titles: Sequence[str]) -> tuple[Figure, list[Axes]]:
    """Make a figure with one panel for each title, two abreast; a lone one is wider."""
    columns = min(2, len(titles))
    rows = -(-len(titles) // columns)
    width = LONE_PANEL_INCHES if columns == 1 else PANEL_INCHES[0] * columns
    figure = Figure(figsize=(width, rows * (PANEL_INCHES[1] + 0.5) + 0.45), layout="constrained")
    grid = figure.add_gridspec(rows, columns)
    made = [figure.add_subplot(grid[divmod(index, columns)]) for index in range(len(titles))]
    for axes, title in zip(made, titles, strict=True):
        axes.set_title(title)
    return figure, made


def message_figure(message: str) -> Figure:
    """Make a figure that says why there is nothing to draw."""
    figure = Figure(figsize=(2 * PANEL_INCHES[0], 1.2), layout="constrained")
    figure.text(0.5, 0.5, message, ha="center", va="center", color=GREY)
    return figure


def log2_axis(axis: Any, values: Sequence[float]) -> None:
    """Make an axis logarithmic to base 2, with a tick in plain digits at each of `values`."""
    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    axis.set_ticks(list(values))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def batch_axis(axes: Axes, sizes: Sequence[int]) -> None:
    """Make the x axis one of these batch sizes, in ascending order; at most 8 have a tick."""
    log2_axis(axes.xaxis, sizes[:: -(-len(sizes) // 8)])
    axes.set_xlim(sizes[0] / 1.6, sizes[-1] * 1.6)


def dodge(values: Any, index: int, count: int, step: float) -> Any:
    """Move `values` on a logarithmic axis so that error bars of `count` lines do not overlap.

    Line number `index` is moved by `step` (a factor) for each place it is from the middle one.
    """
    return values * step ** (index - (count - 1) / 2)


def numbered(index: int) -> dict[str, Any]:
    """Colour and marker of line number `index`."""
    return {"color": COLOURS[index % len(COLOURS)], "marker": MARKERS[index % len(MARKERS)]}


def open_marker(style: dict[str, Any]) -> dict[str, Any]:
    """Turn a line's style into that of a lone marker that is not filled."""
    return {**style, "linestyle": "none", "markerfacecolor": "white"}


def legend(figure: Figure, handles: Sequence[Any], longest_row: int = 10) -> None:
    """Add one legend above all panels, in rows that fit the figure and read from left to right."""
    fitting = int(figure.get_figwidth() / LEGEND_ENTRY_INCHES)
    columns = min(len(handles), fitting, longest_row)
    figure.legend(
        handles=[handle for first in range(columns) for handle in handles[first::columns]],
        loc="outside upper left",
        ncols=columns,
        handletextpad=0.5,
        columnspacing=1.4,
    )


def line_handle(label: str, **style: Any) -> Line2D:
    """Make a legend entry for a line."""
    return Line2D([], [], label=label, **style)
