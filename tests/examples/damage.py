"""Damages documents at random, as editors and people do."""

import copy
import random
from collections.abc import Iterator, Sequence
from typing import Any

STRANGE: list[Any] = [None, True, -1, 0, 0.5, 2**64, 10**400, -2.5, "", "x", "\ud800", [], {}, [1]]
WAYS = ["gone", "strange", "other", "negated", "renamed"]


def places(document: Any) -> list[tuple[Any, Any]]:
    """Each container in `document` with each of its keys or positions."""
    inside = document.items() if isinstance(document, dict) else enumerate(document)
    found = []
    for key, value in inside:
        found.append((document, key))
        if isinstance(value, dict | list):
            found += places(value)
    return found


def values(
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
