"""Hash the code that a job runs. Comments, layout and docstrings do not change the hash."""

import ast
import hashlib
import json
import re
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

from scaling.core import files
from scaling.core.errors import UserError

SCRIPTS = Path(__file__).parents[2]
"""Folder of the scripts. Its subfolder `scaling` is the library."""
KEPT = Path(".snakemake/code_digests")
"""Cache of parsed modules, in Snakemake's folder. Without the cache, a digest takes a second."""
MEASURES = (
    *("scaling/data/", "scaling/models/", "scaling/training/", "scaling/instruments/"),
    *("scaling/large_batches/", "scaling/synchronization/", "scaling/quantization/", "extras/"),
    # Data of ranks, meanings of options, counters.
    *("scaling/launch/measure", "scaling/launch/own_trainer"),
    *("scaling/launch/ranks", "scaling/launch/run_spec", "scaling/launch/supervisor"),
    *("scaling/registry/eager", "scaling/registry/resident", "scaling/registry/update_rule"),
    *("scaling/config/scheme", "scaling/core/gpu_counters", "scaling/core/paired_accuracy"),
    "scaling/core/training_options",
)
"""Path prefixes of the modules that determine what is measured. Other modules of a measuring job
launch it, check its input, word its messages or write its record."""


@cache
def digest(*modules: str | Path, measuring: bool = False) -> str:
    """Return a hash of `modules` and of all modules that they import, as 16 hexadecimal digits.

    `modules` are dotted names or paths of files. Imports from outside `SCRIPTS` are ignored. If
    `measuring`, an imported module counts only if its path begins with one of `MEASURES`.
    """
    return _hash(_parts(modules, measuring))


def described(*modules: str | Path) -> dict[str, Any]:
    """Return fields `code_digest` and `code_packages` of a record that `modules` measure."""
    return {"code_digest": digest(*modules, measuring=True), "code_packages": packages(*modules)}


def packages(*modules: str | Path) -> dict[str, str]:
    """Return {package: hash} of the measuring code in `modules` and in all that they import."""
    parts = _parts(modules, measuring=True)
    found = groupby(parts, key=lambda part: re.split(r"[/ ]", part.removeprefix("scaling/"))[0])
    return {package: _hash(own) for package, own in found}


def _hash(parts: Iterable[str]) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _parts(modules: Iterable[str | Path], measuring: bool) -> list[str]:
    """Return the text `PATH HASH` for each module that `digest` includes, sorted by path."""
    named = {
        file
        for one in modules
        for file in (_files(SCRIPTS, one) if isinstance(one, str) else [one])
    }
    names, waiting = dict[str, Path](), [*named]
    while waiting:
        path = waiting.pop()
        name = path.relative_to(SCRIPTS).as_posix() if _is_ours(path) else path.name
        if name not in names:
            names[name] = path
            imported = _understood(_text(path))[1]
            waiting += [file for one in imported for file in _files(SCRIPTS, one)]
    return [
        f"{name} {_understood(_text(path))[0]}"
        for name, path in sorted(names.items())
        if not measuring or path in named or not _is_ours(path) or name.startswith(MEASURES)
    ]


def _is_ours(path: Path) -> bool:
    return SCRIPTS in path.parents


@cache
def _files(root: Path, name: str) -> list[Path]:
    """Return the files below `root` that `import name` runs: parent packages, then the module."""
    paths, path = [], root
    for part in name.split("."):
        path /= part
        paths += [file for file in (path / "__init__.py", path.with_suffix(".py")) if file.exists()]
    return paths


@cache
def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def _understood(text: str) -> tuple[str, list[str]]:
    """Return a hash of the syntax tree of a module's `text`, and its imports; cached on disk."""
    kept = KEPT / hashlib.sha256((_text(Path(__file__)) + text).encode()).hexdigest()
    with suppress(OSError, ValueError):
        meaning, imported = json.loads(kept.read_text())
        return meaning, imported
    tree, imported = ast.parse(text), []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            # A name imported from a package may be a module.
            imported += [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(body := getattr(node, "body", None), list):
            vars(node)["body"] = [statement for statement in body if not _is_text(statement)]
    meaning = hashlib.sha256(re.sub(r"(, )?\w+=\[\]", "", ast.dump(tree)).encode()).hexdigest()
    if KEPT.parent.exists():
        with suppress(UserError):
            files.write_json(kept, [meaning, imported])
    return meaning, imported


def _is_text(statement: ast.AST) -> bool:
    value = statement.value if isinstance(statement, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)
