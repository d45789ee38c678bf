"""Read a page or a figure like a person."""

from html.parser import HTMLParser

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text

_VOID = {"meta", "input", "br"}


class Page(HTMLParser):
    """The tables (title → rows of cell texts), text and elements of a page.

    `prose` is the text outside of tables.
    """

    def __init__(self, source: str) -> None:
        super().__init__()
        self.source = source
        self.tables: dict[str, list[list[str]]] = {}
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = self.prose = ""
        self._open: list[tuple[str, dict[str, str | None]]] = []
        self._title = ""
        self.feed(source)

    def handle_starttag(self, tag, attributes):
        named = dict(attributes)
        self.elements.append((tag, named))
        if tag in _VOID:
            return
        self._open.append((tag, named))
        if tag == "figcaption":
            self._title = ""
        elif tag == "table":
            # Studies of one page have tables of one title.
            while self._title in self.tables:
                self._title += "′"
            self.tables[self._title] = []
        elif tag == "tr":
            self._rows.append([])
        elif tag in ("td", "th"):
            self._rows[-1].append("")
        elif tag in ("small", "span") and self._inside("tr"):
            self._rows[-1][-1] += " "
        self.prose += " "

    def handle_startendtag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_data(self, data):
        if any(self._inside(tag) for tag in ("style", "svg", "title", "pre")):
            return
        self.text += data
        if self._inside("figcaption"):
            self._title += data
        elif self._inside("tr"):
            self._rows[-1][-1] += data
        else:
            self.prose += data

    def contradictions(self) -> list[str]:
        """Return differing values of one cell and quantity, and cells of cards without a page."""
        columns = ["data-cell", "data-quantity", "data-value"]
        told = pd.DataFrame([of for _, of in self.elements if "data-cell" in of], columns=columns)
        values = told["data-value"].astype(float).groupby([told[name] for name in columns[:2]])
        ends = values.agg(["min", "max"])
        apart = ends["max"] - ends["min"] > 1e-6 * ends.abs().max(axis=1)
        wrong = [f"{key}: {low} and {high}" for key, low, high in ends[apart].itertuples()]
        pages = {named.get("id") for tag, named in self.elements if tag == "aside"}
        for cell in told["data-cell"][told["data-quantity"].isna()]:
            name = cell.replace("/", "-")
            if not pages & {f"cell-{name}", f"training-{name}"}:
                wrong.append(f"{cell} of a card has no page")
        return wrong

    @property
    def _rows(self) -> list[list[str]]:
        return self.tables[self._title]

    def _inside(self, tag: str) -> bool:
        return any(name == tag for name, _ in self._open)

    def rows(self, title: str) -> list[list[str]]:
        """Return the rows of a table below the header, with normalized spaces."""
        return [[" ".join(cell.split()) for cell in row] for row in self.tables[title]][1:]


def words(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.findobj(Text) if text.get_text()]


def panel(figure: Figure, title: str) -> Axes:
    titles = {axes: (axes.get_title(loc="left"), axes.get_title()) for axes in figure.axes}
    (found,) = (axes for axes, own in titles.items() if title in own)
    return found


def points(axes: Axes) -> set[tuple[float, ...]]:
    """Return (x, y, low, high) of each point. Without an error bar, low and high equal y."""
    found = set()
    for line, _, (bars,) in axes.containers:
        for x, y, bar in zip(*line.get_data(), bars.get_segments(), strict=True):
            ends = [end for _, end in bar] or [y, y]
            found.add(tuple(round(float(value), 6) for value in (x, y, *ends)))
    return found
