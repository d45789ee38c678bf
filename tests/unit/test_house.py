"""Imports have one direction; docs, templates and messages use the field's terms."""

import ast
import re

import pytest

from examples.configurations import ROOT

LIBRARY = ROOT / "workflow/scripts/scaling"
EXTRAS = LIBRARY.parent / "extras"
APART = [LIBRARY.parent / "grader", *(path.parent for path in EXTRAS.glob("*/__init__.py"))]
"""Packages that can be deleted. The library imports none of them, and they import no other of
them."""
ORDER = [
    *("core", "registry", "config", "data", "models", "launch", "training", "instruments"),
    *("large_batches", "synchronization", "quantization"),
    *("tables", "claims", "figures", "report", "terminal"),
]
"""Packages in order. Each imports only packages before it."""
DERIVING = ORDER[ORDER.index("tables") :]
SHARED = ["core", "registry", "config"]
"""Packages that both the measuring and the deriving packages import. The two share only files."""


def modules(*packages):
    found = (path for package in packages for path in package.rglob("*.py"))
    return sorted(path for path in found if path.name != "__init__.py")


def imports(path):
    """Yield the dotted names that a module imports (`scaling.core.files`), also in functions."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom | ast.Import):
            module = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            yield from (module + alias.name for alias in node.names)


def test_imports_run_one_way():
    assert {path.parent.name for path in LIBRARY.glob("*/*.py")} == set(ORDER)
    for path in modules(LIBRARY):
        package = path.relative_to(LIBRARY).parts[0]
        allowed = set(ORDER[: ORDER.index(package) + 1])
        if package in DERIVING:
            allowed &= {*SHARED, *DERIVING}
        used = {name.split(".")[1] for name in imports(path) if name.startswith("scaling.")}
        assert used <= allowed, path


def test_deletable_packages_are_imported_by_nothing_else():
    for path in modules(LIBRARY, *APART):
        others = {folder for folder in APART if folder not in path.parents}
        names = [".".join(folder.relative_to(LIBRARY.parent).parts) for folder in others]
        assert not [name for name in imports(path) if name.startswith(tuple(names))], path


def test_architecture_names_files_and_names_that_exist():
    page = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
    named = re.findall(r"`([\w/]+\.(?:py|smk))`(?: `([\w.]+)`)?", page)
    assert len(page.splitlines()) <= 60 and len(named) > 16
    for file, name in named:
        (path,) = (one / file for one in (LIBRARY, LIBRARY.parent, ROOT) if (one / file).exists())
        assert name.rpartition(".")[2] in path.read_text(encoding="utf-8"), (file, name)


DIALECT = re.compile(
    r"""\b(sooner|soonest|told|learned\ as\ well|would\ tell|(?:measured|trained)\ apart
    |equal\ epochs|ranks\ share|laid\ over|at\ the\ least|travel(?:s|ling)?|sets?\ (?:its|the)\ pace
    |still\ changing|without\ waiting|waiting\ for\ data|no\ sound\ record|held-out
    |variances\ apart|by\ now|is\ no\ configuration)\b""",
    re.VERBOSE,
)
PROSE = [*ROOT.glob("docs/*.md"), *(ROOT / name for name in ("README.md", "CONTRIBUTING.md"))]
PROSE += [ROOT / "Makefile", ROOT / "config/README.md"]
TEMPLATES = [*ROOT.glob("report/**/*.j2")]
MODULES = sorted(ROOT.glob("workflow/scripts/**/*.py"))
NO_PROSE = r"(?s)```.*?```|`[^`]*`|\]\([^)]*\)|\{[{%#].*?[}%#]\}|<[^>]*>"
"""Code, targets of links, tags, and template expressions."""


def texts(path):
    """Return the prose of a file. In a module, this is strings of several words, not docstrings."""
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
