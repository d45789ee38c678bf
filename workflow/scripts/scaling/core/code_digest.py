"""Hash the code behind a script; comments, layout and docstrings do not change the hash."""

import ast
import hashlib
import json
from contextlib import suppress
from functools import cache
from pathlib import Path

from scaling.core import files
from scaling.core.errors import UserError

KEPT = Path(".snakemake/code_digests")
"""Cache of parsed modules, in Snakemake's folder: parsing all of them takes a second."""
MEASURES = (
    *("scaling/data/", "scaling/models/", "scaling/training/", "scaling/instruments/"),
    *("scaling/convergence/", "scaling/synchronization/", "scaling/quantization/", "extras/"),
    # Data of ranks, meanings of options, counters.
    *("scaling/launch/from_outside", "scaling/launch/measure", "scaling/launch/own_trainer"),
    *("scaling/launch/ranks", "scaling/launch/run_spec", "scaling/launch/supervisor"),
    *("scaling/registry/eager", "scaling/registry/resident", "scaling/registry/update_rule"),
    *("scaling/config/scheme", "scaling/core/gpu_counters", "scaling/core/paired_accuracy"),
    "scaling/core/training_options",
)
"""The modules that decide what is measured. Other imports of a measuring script launch it, check
its input, word its messages or write its record."""


@cache
def digest(script: Path, *modules: str | Path, measuring: bool = False) -> str:
    """Return the hash (hex) of the script, of `modules` (dotted names or files) and their imports.

    Imports from the script's folder, or that of its package, are followed, in functions too. If
    `measuring`, only those count that `MEASURES` lists or that are user plugins.
    """
    root, parts = _root(script), []
    for path in files_of(script, *modules):
        own = root in path.parents
        name = path.relative_to(root).as_posix() if own else path.name
        if not measuring or path == script or not own or name.startswith(MEASURES):
            parts.append(f"{name} {_understood(_text(path))[0]}")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _root(script: Path) -> Path:
    """Return the folder from which the script's imports are found."""
    return next(folder for folder in script.parents if not (folder / "__init__.py").exists())


def files_of(script: Path, *modules: str | Path) -> list[Path]:
    """Return the files that `digest` covers, sorted."""
    root = _root(script)
    found: set[Path] = set()
    waiting: list[str | Path] = [script, *modules]
    while waiting:
        path = waiting.pop()
        if isinstance(path, str):
            waiting += _files(root, path)
        elif path not in found:
            found.add(path)
            waiting += _understood(_text(path))[1]
    return sorted(found)


@cache
def _files(root: Path, name: str) -> list[Path]:
    """Return the files that importing the dotted `name` runs: parent packages and the module."""
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
    """Return the hash of a module's meaning and the dotted names it imports; cached by text."""
    kept = KEPT / hashlib.sha256((_text(Path(__file__)) + text).encode()).hexdigest()
    with suppress(OSError, ValueError):
        meaning, names = json.loads(kept.read_text())
        return meaning, names
    imported: list[str] = []
    meaning = hashlib.sha256(repr(_content(ast.parse(text), imported)).encode()).hexdigest()
    if KEPT.parent.exists():
        with suppress(UserError):
            files.write_json(kept, [meaning, imported])
    return meaning, imported


def _content(node: object, imported: list[str]) -> object:
    """Convert a syntax tree to lists, and add the dotted names that it imports to `imported`.

    Positions, docstrings, and empty fields, which differ between Pythons, are left out.
    """
    if isinstance(node, list):
        return [_content(child, imported) for child in node if not _is_text(child)]
    if not isinstance(node, ast.AST):
        return node
    if isinstance(node, ast.Import):
        imported += [alias.name for alias in node.names]
    elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
        # A name imported from a package may be a module.
        imported += [f"{node.module}.{alias.name}" for alias in node.names]
    fields = [(name, getattr(node, name, None)) for name in node._fields]
    kept = [(name, _content(value, imported)) for name, value in fields if value not in (None, [])]
    return [type(node).__name__, *kept]


def _is_text(statement: ast.AST) -> bool:
    value = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)
