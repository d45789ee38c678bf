"""Reading a figure as a person would: its words, its panels, and what is drawn in them."""

from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.text import Text


def words(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.findobj(Text) if text.get_text()]


def panel(figure: Figure, title: str) -> Axes:
    (found,) = [axes for axes in figure.axes if axes.get_title() == title]
    return found


def points(axes: Axes) -> set[tuple[float, float]]:
    """Every point of every line, at the tick on x it stands beside."""
    ticks = axes.get_xticks()
    return {
        (min(ticks, key=lambda tick: abs(tick - x)), round(float(y), 6))
        for line in axes.lines
        for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)
    }


def error_bars(axes: Axes) -> set[tuple[float, float]]:
    """(low, high) of every error bar."""
    return {
        (round(float(low), 6), round(float(high), 6))
        for bars_of_line in axes.collections
        if isinstance(bars_of_line, LineCollection)
        for (_, low), (_, high) in bars_of_line.get_segments()
    }
