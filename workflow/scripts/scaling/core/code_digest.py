"""A digest of the code behind a script, which only a change of its meaning changes."""

import ast
import hashlib
import json
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

from scaling.core import files
from scaling.core.errors import UserError

KEPT = Path(".snakemake/code_digests")
"""What is known of texts read before, in Snakemake's own folder: parsing all takes a second."""


@cache
def digest(script: Path, *modules: str) -> str:
    """Digest the script, `modules` (dotted names) and all of ours that they import, as hex.

    Ours are those below the script's folder. Imports inside functions count; a module that is
    imported by its name as a text does not, and has to be among `modules`. Comments, layout and
    docstrings are not part of a digest.
    """
    covered = files_of(script, *modules)
    parts = [f"{path.relative_to(script.parent)} {_understood(_text(path))[0]}" for path in covered]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def files_of(script: Path, *modules: str) -> list[Path]:
    """The files that `digest` covers, sorted."""
    root = script.parent
    found: set[Path] = set()
    waiting = [script, *(path for module in modules for path in _files(root, module))]
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            waiting += _imported(root, path)
    return sorted(found)


@cache
def _imported(root: Path, path: Path) -> list[Path]:
    return [file for name in _understood(_text(path))[1] for file in _files(root, name)]


@cache
def _files(root: Path, name: str) -> list[Path]:
    """The files that importing the dotted `name` runs: packages on the way, and the module."""
    parts, found = name.split("."), []
    for count in range(1, len(parts) + 1):
        path = root.joinpath(*parts[:count])
        found += [file for file in (path / "__init__.py", path.with_suffix(".py")) if file.exists()]
    return found


@cache
def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def _understood(text: str) -> tuple[str, list[str]]:
    """Digest what a module's text means, and list the dotted names that it imports; keep both."""
    kept = KEPT / hashlib.sha256((_text(Path(__file__)) + text).encode()).hexdigest()
    with suppress(OSError, ValueError):
        meaning, names = json.loads(kept.read_text())
        return meaning, names
    tree = ast.parse(text)
    names = list(_names(tree))
    meaning = hashlib.sha256(repr(_content(_without_docstrings(tree))).encode()).hexdigest()
    if KEPT.parent.exists():
        with suppress(UserError):
            files.write_json(kept, [meaning, names])
    return meaning, names


def _names(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            # What is imported from a package may be a module of it.
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _without_docstrings(tree: ast.Module) -> ast.Module:
    """Remove every statement that is a text alone: those that document fields and constants too."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            body[:] = [s for s in body if not _is_text(s)]
    return tree


def _content(node: object) -> object:
    """Convert a syntax tree to lists without positions and empty fields.

    Empty fields differ between versions of Python, as does the text that `ast.unparse` writes.
    """
    if isinstance(node, list):
        return [_content(child) for child in node]
    if not isinstance(node, ast.AST):
        return node
    fields = [(name, value) for name, value in ast.iter_fields(node) if value not in (None, [])]
    return [type(node).__name__, *((name, _content(value)) for name, value in fields)]


def _is_text(statement: ast.AST) -> bool:
    value = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)
