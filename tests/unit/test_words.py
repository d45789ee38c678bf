"""Docs, templates and messages use the field's terms, not words of this project alone."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DIALECT = re.compile(
    r"""\b(sooner|soonest|told|learned\ as\ well|would\ tell|(?:measured|trained)\ apart
    |equal\ epochs|ranks\ share|laid\ over|at\ the\ least|travel(?:s|ling)?|sets?\ (?:its|the)\ pace
    |still\ changing|without\ waiting|waiting\ for\ data|no\ sound\ record|held-out
    |variances\ apart|by\ now|is\ no\ configuration)\b""",
    re.VERBOSE,
)
PROSE = [*ROOT.glob("docs/*.md"), *(ROOT / name for name in ("README.md", "CONTRIBUTING.md"))]
PROSE += [ROOT / "Makefile", ROOT / "config/README.md"]
TEMPLATES = [*ROOT.glob("report/**/*.j2"), *ROOT.glob("report/**/*.rst")]
MODULES = sorted(ROOT.glob("workflow/scripts/**/*.py"))
NO_PROSE = r"(?s)```.*?```|`[^`]*`|\]\([^)]*\)|\{[{%#].*?[}%#]\}|<[^>]*>"
"""Code, targets of links, tags and what a template computes."""


def texts(path):
    """The prose of a file; of a module its strings of several words that are no docstrings."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        return re.sub(NO_PROSE, " ", text)
    nodes = [*ast.walk(ast.parse(text))]
    docs = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    strings = [node for node in nodes if isinstance(node, ast.Constant) and id(node) not in docs]
    found = [one.value for one in strings if isinstance(one.value, str) and " " in one.value]
    return re.sub(NO_PROSE, " ", "\n".join(found))


@pytest.mark.parametrize("kind", [PROSE, TEMPLATES, MODULES], ids=["docs", "report", "messages"])
def test_texts_use_no_dialect(kind):
    used = {str(path.relative_to(ROOT)): DIALECT.findall(texts(path)) for path in kind}
    assert {path: words for path, words in used.items() if words} == {}
