"""Recipes: an engine with options, or another recipe with some options changed."""

import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, create_model

from scaling.core.section import Section, Some
from scaling.registry.engine import ENGINES
from scaling.registry.registry import Registry
from scaling.registry.strategy import STRATEGIES

OWN = "own"
"""The strategy of recipes that are a command."""
RENAMED = {"course": "plain"}
"""Today's names of recipes, by those of older configurations."""


def one_of(registry: Registry[Any]) -> AfterValidator:
    """Return a type that allows the names of a registry's entries."""

    def check(name: str) -> str:
        if name not in (known := registry.names()):
            raise ValueError(f"it should be one of {', '.join(known)}")
        return name

    return AfterValidator(check)


class Recipe(Section):
    engine: str
    """What trains: `eager` (the lab's own way, with PyTorch's standard parts), `resident` (images
    on the GPU, compiled steps, CUDA graphs), or one of yours (docs/extending.md)."""
    strategies: Some[Annotated[str, one_of(STRATEGIES)]] | None = None
    """Of `grid.strategies` those that this recipe is for, as `[ddp]`: it has no cells with others.
    Null: all of them. May be left out."""


def resolved(
    recipes: Mapping[str, Mapping[str, Any]], asks: Mapping[str, str]
) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Return each recipe that some key `asks` for, with all keys, and a sentence for each mistake.

    A recipe has the keys of its engine and of `Recipe`; what it does not give it has from its
    `base`. Others are looked at by their names alone.
    """
    said: list[str] = []
    found: dict[str, dict[str, Any]] = {}
    for name in recipes:
        if name in RENAMED:
            said.append(f"recipes.{name} is called recipes.{RENAMED[name]} now")
        elif not re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII):
            said.append(f"recipes has {name!r} (allowed: a letter, then letters, digits and _)")
    for name, key in asks.items():
        if name not in recipes:
            now = f", which is called {RENAMED[name]} now" if name in RENAMED else ""
            allowed = f"(allowed: those of recipes, {', '.join(recipes)})"
            said.append(f"{key} asks for recipe {name}{now} {allowed}")
            continue
        try:
            own = _with_base(name, recipes, ())
            options = ENGINES.find(own["engine"]).options
            kind = create_model("Recipe", __base__=(options, Recipe))
            said += (wrong := kind.sentences(own, above=("recipes", name)))
            found |= {} if wrong else {name: kind.of(own).model_dump()}
        except ValueError as error:
            said.append(str(error))
    return found, said


def _with_base(
    name: str, recipes: Mapping[str, Mapping[str, Any]], above: tuple[str, ...]
) -> dict[str, Any]:
    """Return the options of a recipe and those of its base; ValueError for what is wrong there."""
    own = dict(recipes[name])
    if "command" in own and own.keys().isdisjoint(("engine", "base")):
        own |= {"engine": "command", "strategies": [OWN]}
    if "base" not in own:
        known = ENGINES.names()
        if "engine" not in own:
            raise ValueError(
                f"recipes.{name} has neither engine nor base (allowed: engine: "
                f"{' or '.join(known)}, base: another recipe, or command: your own)"
            )
        if (engine := own["engine"]) not in known:
            raise ValueError(f"recipes.{name}.engine is {engine!r} (allowed: {', '.join(known)})")
        return own
    if "engine" in own:
        raise ValueError(
            f"recipes.{name} has a base and engine {own['engine']} (allowed: one of them; a recipe "
            "of config/config.yaml keeps its engine, so give yours another name)"
        )
    base = own.pop("base")
    others = [other for other in recipes if other not in (*above, name)]
    if base not in others:
        raise ValueError(
            f"recipes.{name}.base is {base!r} (allowed: a recipe that is not based on this one, "
            f"here {', '.join(others) or 'none'})"
        )
    return _with_base(base, recipes, (*above, name)) | own
