"""A self-contained HTML page from a template and figures."""

import base64
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from jinja2.exceptions import TemplateError

from scaling.core.errors import UserError


def render(template: Path, **values: Any) -> str:
    """`template` and what it includes from its folder, filled with `values`, as HTML.

    Texts are escaped. Raises UserError for a template that does not fit.
    """
    environment = Environment(
        loader=FileSystemLoader(template.parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    try:
        return environment.get_template(template.name).render(**values)
    except TemplateError as error:
        raise UserError(f"{template}: {type(error).__name__}: {error}") from error


def figure_uri(path: Path) -> str:
    """The SVG file at `path` as a data URI.

    As an image it keeps its ids, clip paths and styles to itself, and runs no script.
    """
    try:
        encoded = base64.b64encode(path.read_bytes()).decode("ascii")
    except OSError as error:
        raise UserError(f"cannot read the figure {path}: {error.strerror}") from error
    return f"data:image/svg+xml;base64,{encoded}"
