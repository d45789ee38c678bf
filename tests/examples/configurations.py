"""Configurations and documents of the project, which tests read and change."""

import re
from functools import reduce
from operator import getitem
from pathlib import Path

import yaml
from snakemake.utils import update_config

from scaling.config import config
from scaling.config.stored import recipes_of

ROOT = Path(__file__).parents[2]
OWN_PAGE = (ROOT / "docs/own_trainer.md").read_text(encoding="utf-8")
OWN_FILES = dict(re.findall(r"```\w+\n# (train\.py|mine\.yaml)\n(.*?)```", OWN_PAGE, re.DOTALL))
"""Files that docs/own_trainer.md shows, by name."""


def shipped(name):
    """Return all keys of config.yaml with the file `name` of config/ merged into it."""
    layers = [yaml.safe_load((ROOT / "config" / one).read_text()) for one in ("config.yaml", name)]
    recipes, document = recipes_of(layers), layers[0]
    update_config(document, layers[1])
    return config.requested(document | {"recipes": recipes}).model_dump()


def changed(*changes):
    """Return the demo's configuration, with a new value at each dotted path."""
    return assign(shipped("demo.yaml"), changes)


def assign(document, changes):
    """Set a value of `document` at each dotted path, and return `document`."""
    for path, value in changes:
        *parents, last = path.split(".")
        reduce(getitem, parents, document)[last] = value
    return document


def section(study: str) -> str:
    """Return the section of the docs that links to the folder `study` of studies/."""
    pages = [ROOT / "docs" / name for name in ("findings.md", "quantization.md")]
    parts = "".join(page.read_text(encoding="utf-8") for page in pages).split("\n## ")
    (part,) = (part for part in parts if f"(../studies/{study}/" in part)
    return part
