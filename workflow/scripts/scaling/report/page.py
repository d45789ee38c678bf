"""Render a self-contained HTML page from a template, with inline figures."""

import re
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from scaling.core import files
from scaling.core.errors import printable

REPORT = Path(__file__).parents[4] / "report"
COLOURS = {
    "#222222": "var(--ink)",
    "#767676": "var(--soft)",
    "#e4e4e4": "var(--line)",
    "#ffffff": "var(--paper)",
    "#b8b8b8": "var(--faint)",
    "#0072b2": "var(--blue)",
    "#56b4e9": "var(--sky)",
}
"""Colours of figures that follow the page's light or dark mode; see `scaling.figures.style`."""
_FONT = re.compile(r"'DejaVu Sans'[^;\"]*")
_OWN_IDS = re.compile(
    r' id="(?:figure|axes|patch|text|line2d|legend|matplotlib|xtick|ytick|[A-Z]\w+)[._][\d.]+"'
)
"""Unreferenced ids in a figure, which would be duplicates on a page."""


def render(template: Path, **values: Any) -> str:
    """Return `template`, filled with escaped `values`, as HTML."""
    environment = Environment(
        loader=FileSystemLoader([template.parent, REPORT]),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=lambda value: printable(value) if type(value) is str else value,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template(template.name).render(**values)


def inline_svg(path: Path) -> Markup:
    """Return the SVG file at `path` as an element in the page's colours and font; "" if empty."""
    source = files.read_text(path)
    if "<g" not in source:
        return Markup("")
    source = _FONT.sub("var(--font)", source)
    source = _OWN_IDS.sub("", source[source.index("<svg") :])
    source = re.sub(r"<metadata>.*?</metadata>\s*", "", source, flags=re.DOTALL)
    for colour, variable in COLOURS.items():
        source = source.replace(colour, variable)
    labelled = f'<svg role="img" aria-labelledby="{path.stem}-caption"'
    return Markup(source.replace("<svg", labelled, 1))
