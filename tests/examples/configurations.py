"""Configurations that are shipped, as they are and changed."""

from functools import reduce
from operator import getitem
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]


def shipped(name):
    return yaml.safe_load((ROOT / "config" / name).read_text())


def changed(*changes):
    """The demo's configuration with a value replaced at each dotted path."""
    document = shipped("demo.yaml")
    for path, value in changes:
        *parents, last = path.split(".")
        reduce(getitem, parents, document)[last] = value
    return document
