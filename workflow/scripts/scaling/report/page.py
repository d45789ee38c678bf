"""Render self-contained HTML pages from templates, with inline figures."""

import re
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from scaling.core import files
from scaling.core.errors import printable

REPORT = Path(__file__).parents[4] / "report"


def render(template: Path, **values: Any) -> str:
    """Return the HTML of `template`, filled with `values`, in which text is escaped."""
    environment = Environment(
        loader=FileSystemLoader([template.parent, REPORT]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return printable(environment.get_template(template.name).render(**values))


def inline_svg(path: Path) -> Markup:
    """Return the SVG at `path` as HTML, or "" if the SVG is empty."""
    source = files.read_text(path)
    return Markup(source[source.index("<svg") :] if "<g" in source else "")


def arranged(text: str, points: dict[str, float]) -> str:
    """Return the answers `text` (Markdown) in the order of the questions in `points`.

    `points` maps questions to maximum points, for headings. Missing answers are "Not measured".
    """
    head, *sections = re.split(r"(?m)^## ", text)
    names = {section.partition(":")[0]: section for section in sections}
    # Part B of the answers are all questions B1, B2 … of a form.
    names |= {name: names["Part B"] for name in points if name[:1] == "B" and "Part B" in names}
    parts = [head]
    for name, full in points.items():
        title, _, body = names.get(name, f"{name}\n\nNot measured.\n").partition("\n")
        parts.append(f"{re.sub(r'^(Part B|Q[^:]*)', name, title)} ({full:g} points)\n{body}")
    return "## ".join(parts)
