"""Rendering the report of made-up tables, and reading the page as a person would."""

from collections import defaultdict
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd

import claims_evaluate
import report_render
from examples import report_tables
from examples.report_tables import STUDY
from scaling.figures.registry import FIGURES
from scaling.report import report

REPORT = Path(__file__).parents[2] / "report"


class Page(HTMLParser):
    """A page as its titled tables (title, rows of cell texts), its lists, text and elements."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.source = source
        self.tables: dict[str, list[list[str]]] = {}
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._open: list[str] = []
        self._title: str | None = None
        self._skipped = 0
        self.items: list[str] = []
        self.feed(source)

    def handle_starttag(self, tag, attributes):
        named = dict(attributes)
        self.elements.append((tag, named))
        if tag == "p" and named.get("class") == "title":
            self._title = ""
        elif tag == "tr":
            self.tables[self._heading].append([])
        elif tag in ("td", "th"):
            self.tables[self._heading][-1].append("")
            self._open.append(tag)
        elif tag == "li":
            self._item = len(self.text)
        elif tag in ("style", "title"):
            self._skipped += 1
        elif tag in ("small", "span") and self._open:
            self.tables[self._heading][-1][-1] += " "

    def handle_endtag(self, tag):
        if tag == "p" and self._title is not None:
            self._heading = self._title
            self.tables[self._heading] = []
            self._title = None
        elif tag in ("td", "th"):
            self._open.pop()
        elif tag == "li":
            self.items.append(" ".join(self.text[self._item :].split()))
        elif tag in ("style", "title"):
            self._skipped -= 1

    def handle_data(self, data):
        if self._title is not None:
            self._title += data
        elif self._open:
            self.tables[self._heading][-1][-1] += data.strip()
        if not self._skipped:
            self.text += data

    def rows(self, title: str) -> list[list[str]]:
        """The rows of a table below its header, spaces normalised."""
        header = 2 if any(row[0] == "" for row in self.tables[title][:1]) else 1
        return [[" ".join(cell.split()) for cell in row] for row in self.tables[title][header:]]

    def row(self, title: str, head: str) -> list[str]:
        """The cells beside the first row heading `head`."""
        return next(row[1:] for row in self.rows(title) if row[0] == head)


def arguments(folder: Path, *more: str) -> list[str]:
    return [
        *("--study", STUDY),
        *("--results", str(folder)),
        *("--manifest", str(folder / "manifest.json")),
        *("--template", str(REPORT / "report.html.j2")),
        *("--output", str(folder / "report.html")),
        *more,
    ]


def lay_out(folder: Path, tables: dict[str, pd.DataFrame]) -> None:
    """Tables, claims, manifest and figures, as the pipeline leaves them."""
    report_tables.write(folder, tables)
    made = [str(path) for path in sorted((folder / "tables").rglob("*.csv"))]
    claims = folder / "tables" / "claims.json"
    claims_evaluate.main(["--study", STUDY, "--tables", *made, "--output", str(claims)])
    figures = folder / "figures" / STUDY
    figures.mkdir(parents=True)
    for name in FIGURES:
        (figures / f"{name}.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")


def render(folder: Path, tables: dict[str, pd.DataFrame], *more: str) -> Page:
    """The whole page by the script, with its claims."""
    lay_out(folder, tables)
    report_render.main(arguments(folder, *more))
    return Page((folder / "report.html").read_text(encoding="utf-8"))


def section(folder: Path, names: str | tuple[str, ...], tables: dict[str, pd.DataFrame]) -> Page:
    """The page with this one section, or these, and without claims."""
    chosen = (names,) if isinstance(names, str) else names
    wanted = [one for one in report.SECTIONS if one.name in chosen]
    study = report_tables.study(folder, tables)
    figures: dict[str, str] = defaultdict(str)
    template = REPORT / "report.html.j2"
    return Page(report.render(study, [], figures, template, sections=wanted, partial=True))
