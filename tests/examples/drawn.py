"""Reading a figure as a person would: its words, its panels, and the points of its lines."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text


def words(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.findobj(Text) if text.get_text()]


def panel(figure: Figure, title: str) -> Axes:
    (found,) = [
        axes
        for axes in figure.axes
        if axes.get_title(loc="left") == title or axes.get_title() == title
    ]
    return found


def points(axes: Axes) -> set[tuple[float, ...]]:
    """(x, y, low, high) of every point, where its error bar begins and ends: itself without one."""
    found = set()
    for line, _, (bars,) in axes.containers:
        for x, y, bar in zip(*line.get_data(), bars.get_segments(), strict=True):
            ends = [end for _, end in bar] or [y, y]
            found.add(tuple(round(float(value), 6) for value in (x, y, *ends)))
    return found
