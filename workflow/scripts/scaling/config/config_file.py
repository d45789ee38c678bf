"""Read a configuration file, and refuse ambiguous YAML."""

import math
from itertools import chain
from pathlib import Path
from typing import Any

import yaml

from scaling.core import files
from scaling.core.errors import UserError

MOST_BYTES, MOST_VALUES = 1_000_000, 100_000


def read_config(path: Path) -> dict[str, Any]:
    """Return the configuration in `path`; UserError for ambiguous YAML."""
    try:
        loader = yaml.SafeLoader(files.read_text(path, MOST_BYTES))
        node = loader.get_single_node()
        if _values(node, {}) > MOST_VALUES:
            raise ValueError(f"more than {MOST_VALUES:,} values: write fewer aliases")
        config = loader.construct_document(node) if node else None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        said = " ".join(str(error).split())
        raise UserError(f"{path} is no configuration ({said[:200]})") from error
    if not isinstance(config, dict):
        raise UserError(f"{path} has no keys: write them as config/README.md says")
    return config


def _values(node: Any, known: dict[Any, float]) -> float:
    """Count the values below `node`, aliases expanded; ValueError for a duplicate key."""
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
