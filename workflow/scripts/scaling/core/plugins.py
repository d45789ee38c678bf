"""Load plugins: Python files of the user (models, strategies, …)."""

import importlib.util
import os
import sys
from functools import cache
from pathlib import Path
from pkgutil import resolve_name
from types import ModuleType
from typing import Any

from scaling.core.errors import UserError

VARIABLE = "SCALING_PLUGINS"
"""Environment variable that lists the plugin files, separated as in PATH."""

EXTRAS = Path(__file__).parents[2] / "extras"
"""What a study can do without: a package each, with its rules and its scripts."""


def has_extra(name: str) -> bool:
    """Whether that extra is here; its folder may be deleted."""
    return (EXTRAS / name / "__init__.py").exists()


def files() -> list[Path]:
    """Return the files that the environment variable lists."""
    return [Path(name) for name in os.environ.get(VARIABLE, "").split(os.pathsep) if name]


@cache
def load(path: Path) -> ModuleType:
    """Import the file as a module named after it, which may import those in its folder.

    Raises UserError if the file is missing or cannot be imported.
    """
    if not path.is_file():
        raise UserError(f"{path} does not exist from {Path.cwd()}: give the path of a Python file")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    sys.path.append(str(path.parent.resolve()))
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise UserError(f"{path} cannot be imported: {type(error).__name__}: {error}") from error
    return module


def find(target: str) -> Any:
    """Return the object named by `file.py:name` or `module:name`; UserError if there is none."""
    place, _, name = target.partition(":")
    try:
        return getattr(load(Path(place)), name) if place.endswith(".py") else resolve_name(target)
    except (ImportError, AttributeError, ValueError) as error:
        raise UserError(f"there is no {target}: {error}") from error


def source(target: str) -> Path | None:
    """Return the file behind a `target` of `find`; None if there is no readable one."""
    place = target.partition(":")[0]
    if place.endswith(".py"):
        return Path(place)
    found = importlib.util.find_spec(place)
    return Path(found.origin) if found and found.origin else None
