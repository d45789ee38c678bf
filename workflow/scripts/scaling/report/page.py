"""A self-contained HTML page from a template and figures."""

import base64
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from jinja2.exceptions import TemplateError

from scaling.claims.texts import FILTERS
from scaling.core import numbers
from scaling.core.errors import UserError


def render(template: Path, **values: Any) -> str:
    """`template` and what it includes from its folder, filled with `values`, as HTML.

    Texts are escaped. A template may write figures with the filters that claims use.
    Raises UserError for a template that does not fit.
    """
    environment = Environment(
        loader=FileSystemLoader(template.parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= FILTERS | {
        "cell_names": numbers.cell_names,
        "integer": numbers.integer,
        "rate": numbers.rate,
    }
    environment.tests["known"] = pd.notna
    try:
        return environment.get_template(template.name).render(**values)
    except TemplateError as error:
        raise UserError(f"{template}: {type(error).__name__}: {error}") from error


class Figures(dict[str, str]):
    """The SVG files of a folder as data URIs, by name; each is read when a template asks for it."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder

    def __missing__(self, name: str) -> str:
        return figure_uri(self.folder / f"{name}.svg")


def figure_uri(path: Path) -> str:
    """The SVG file at `path` as a data URI.

    As an image it keeps its ids, clip paths and styles to itself, and runs no script.
    """
    try:
        encoded = base64.b64encode(path.read_bytes()).decode("ascii")
    except OSError as error:
        raise UserError(f"cannot read the figure {path}: {error.strerror}") from error
    return f"data:image/svg+xml;base64,{encoded}"
