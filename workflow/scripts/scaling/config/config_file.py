"""Read a configuration file, and refuse ambiguous YAML; as a program, the files it is given."""

import math
import sys
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from typing import Any

import yaml

from scaling.core import files
from scaling.core.errors import UserError, program

MOST_BYTES, MOST_VALUES, MOST_DIGITS = 100_000, 100_000, 100
PLAIN = {"null", "bool", "int", "float", "str", "seq", "map", "merge"}
"""The tags of YAML whose values are JSON's too."""
WHOLE = {"engine", "base", "command"}
"""The keys by which a recipe is one without another of its name."""


def read_config(path: Path) -> dict[str, Any]:
    """Return the configuration in `path`; UserError for ambiguous YAML."""
    try:
        config = parsed(files.read_text(path, MOST_BYTES))
    except ValueError as error:
        raise UserError(f"{path} is no configuration ({error})") from error
    if not isinstance(config, dict):
        raise UserError(f"{path} has no keys: write them as config/README.md says")
    return config


def recipes_of(layers: Iterable[Any]) -> Any:
    """Return the recipes of configurations, each laid over those before it.

    A recipe with an engine, a base or a command replaces the one of its name, of which it would
    have options by Snakemake's own rule. Another changes what it gives.
    """
    found: dict[str, Any] = {}
    for given in [layer["recipes"] for layer in layers if "recipes" in layer]:
        if not isinstance(given, dict):
            return given
        for name, own in given.items():
            whole = not isinstance(own, dict) or not WHOLE.isdisjoint(own)
            found[name] = own if whole else found.get(name, {}) | own
    return found


def parsed(text: str) -> Any:
    """Return the document in a YAML `text`; ValueError unless it is plain, small and unambiguous.

    The error is on one line. In C, PyYAML would be faster, and crash on deep nesting.
    """
    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        if node and _values(node, {}) > MOST_VALUES:
            raise ValueError(f"more than {MOST_VALUES:,} values: write fewer aliases")
        return loader.construct_document(node) if node else None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f"line {mark.line + 1}: " if mark else ""
        raise ValueError(f"{line}{error.problem or error.context}"[:200]) from error
    except (yaml.YAMLError, ValueError, LookupError, TypeError, RecursionError) as error:
        raise ValueError(" ".join(str(error).split())[:200]) from error


def _values(node: Any, known: dict[Any, float]) -> float:
    """Count the values below `node`, aliases expanded; ValueError for what is not plain."""
    tag, line = node.tag.rpartition(":")[2], node.start_mark.line + 1
    if tag not in PLAIN:
        raise ValueError(f"line {line} has a value of the kind {tag}: write it as text, in quotes")
    if tag in ("int", "float") and len(node.value) > MOST_DIGITS:
        raise ValueError(f"line {line} has a number of more than {MOST_DIGITS} digits")
    if isinstance(node, yaml.CollectionNode) and node not in known:
        known[node] = math.inf  # a recursive alias
        inside = node.value
        if isinstance(node, yaml.MappingNode):
            keys = {str(key.value): key for key, _ in node.value}
            for key in {key for key, _ in node.value} - set(keys.values()):
                line = key.start_mark.line + 1
                raise ValueError(f"line {line} has the key {key.value}, as another line has")
            inside = list(chain(*node.value))
        known[node] = 1 + sum(_values(inner, known) for inner in inside)
    return known.get(node, 1)


@program
def main() -> None:
    for path in filter(None, sys.argv[1:]):
        read_config(Path(path))
