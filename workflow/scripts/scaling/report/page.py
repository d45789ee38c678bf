"""Render self-contained HTML pages from templates, with inline figures."""

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from scaling.core import files
from scaling.core.errors import printable

REPORT = Path(__file__).parents[4] / "report"


def render(template: Path, **values: Any) -> str:
    """Return the HTML of `template`, filled with `values`; text in `values` is escaped."""
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
    """Return the SVG at `path` as HTML; "" for an empty SVG."""
    source = files.read_text(path)
    return Markup(source[source.index("<svg") :] if "<g" in source else "")
