"""Documents of the project as tests read, change and damage them."""

import copy
import random
import re
from collections.abc import Iterator, Sequence
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

import yaml
from snakemake.utils import update_config

from scaling.config import config
from scaling.config.stored import recipes_of

ROOT = Path(__file__).parents[2]
OWN_PAGE = (ROOT / "docs/own_trainer.md").read_text(encoding="utf-8")
OWN_FILES = dict(re.findall(r"```\w+\n# (train\.py|mine\.yaml)\n(.*?)```", OWN_PAGE, re.DOTALL))
"""The files that docs/own_trainer.md shows, by name."""
STRANGE: list[Any] = [None, True, -1, 0, 0.5, 2**64, 10**400, -2.5, "", "x", "\ud800", [], {}, [1]]
WAYS = ["gone", "strange", "other", "negated", "renamed"]


def shipped(name):
    """What is asked for by config.yaml with this file laid over it, all keys."""
    layers = [yaml.safe_load((ROOT / "config" / one).read_text()) for one in ("config.yaml", name)]
    recipes, document = recipes_of(layers), layers[0]
    update_config(document, layers[1])
    return config.requested(document | {"recipes": recipes})


def changed(*changes):
    """The demo's configuration with a value replaced at each dotted path."""
    document = shipped("demo.yaml")
    for path, value in changes:
        *parents, last = path.split(".")
        reduce(getitem, parents, document)[last] = value
    return document


def section(study: str) -> str:
    """The part on a folder of studies/, which links to it."""
    pages = [ROOT / "docs" / name for name in ("findings.md", "quantization.md")]
    parts = "".join(page.read_text(encoding="utf-8") for page in pages).split("\n## ")
    (part,) = (part for part in parts if f"(../studies/{study}/" in part)
    return part


def places(document: Any) -> list[tuple[Any, Any]]:
    """Each container in `document` with each of its keys or positions."""
    inside = document.items() if isinstance(document, dict) else enumerate(document)
    found = []
    for key, value in inside:
        found.append((document, key))
        if isinstance(value, dict | list):
            found += places(value)
    return found


def damaged(
    document: Any, number: int, seed: int, strange: Sequence[Any] = STRANGE
) -> Iterator[Any]:
    """Copies of `document`, each with one place changed, renamed, doubled or gone."""
    chance = random.Random(seed)
    for _ in range(number):
        made = copy.deepcopy(document)
        container, key = chance.choice(places(made))
        way, value = chance.choice(WAYS), container[key]
        if way == "gone":
            del container[key]
        elif way == "negated" and isinstance(value, int | float):
            container[key] = -value
        elif way == "renamed" and isinstance(container, dict):
            container[f"{key}x"] = container.pop(key)
        elif way == "other":
            there, other = chance.choice(places(made))
            container[key] = copy.deepcopy(there[other])
        else:
            container[key] = chance.choice(strange)
        yield made
