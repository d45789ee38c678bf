"""A self-contained HTML page from a template, and figures inside it."""

import re
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from jinja2.exceptions import TemplateError
from markupsafe import Markup

from scaling.core.errors import UserError

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
"""Colours of figures that follow the page's, light or dark; see `scaling.figures.style`."""
_FONT = re.compile(r"'DejaVu Sans'[^;\"]*")
_OWN_IDS = re.compile(
    r' id="(?:figure|axes|patch|text|line2d|legend|matplotlib|xtick|ytick|[A-Z]\w+)[._][\d.]+"'
)
"""Ids of a figure's parts that nothing refers to: two figures of a page have the same ones."""


def render(template: Path, **values: Any) -> str:
    """`template` and what it includes from its folder or `REPORT`, filled with `values`, as HTML.

    Texts are escaped. Raises UserError for a template that does not fit.
    """
    try:
        return _environment(template.parent).get_template(template.name).render(**values)
    except TemplateError as error:
        raise UserError(f"{template}: {type(error).__name__}: {error}") from error


@cache
def _environment(folder: Path) -> Environment:
    """The templates of a folder and of `REPORT`, each compiled once."""
    return Environment(
        loader=FileSystemLoader([folder, REPORT]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def inline_svg(path: Path) -> Markup:
    """The SVG file at `path` as an element of a page, in its colours and font; empty as nothing.

    Raises UserError where it cannot be read.
    """
    try:
        source = path.read_text(encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot read the figure {path}: {error.strerror}") from error
    if "<g" not in source:
        return Markup("")
    source = _FONT.sub("var(--font)", source)
    source = _OWN_IDS.sub("", source[source.index("<svg") :])
    source = re.sub(r"<metadata>.*?</metadata>\s*", "", source, flags=re.DOTALL)
    for colour, variable in COLOURS.items():
        source = source.replace(colour, variable)
    labelled = f'<svg role="img" aria-labelledby="{path.stem}-caption"'
    return Markup(source.replace("<svg", labelled, 1))
