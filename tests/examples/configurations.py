"""Configurations that are shipped, as they are and changed."""

from functools import reduce
from operator import getitem
from pathlib import Path

import yaml
from snakemake.utils import update_config

from scaling.config import config
from scaling.config.stored import recipes_of

ROOT = Path(__file__).parents[2]


def shipped(name):
    """What is asked for by config.yaml with this file laid over it, all keys."""
    layers = [yaml.safe_load((ROOT / "config" / one).read_text()) for one in ("config.yaml", name)]
    recipes, document = recipes_of(layers), layers[0]
    update_config(document, layers[1])
    return config.asked(document | {"recipes": recipes})


def changed(*changes):
    """The demo's configuration with a value replaced at each dotted path."""
    document = shipped("demo.yaml")
    for path, value in changes:
        *parents, last = path.split(".")
        reduce(getitem, parents, document)[last] = value
    return document
