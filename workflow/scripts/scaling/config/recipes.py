"""Recipes: an engine with options, or another recipe with some options changed."""

import re
import textwrap
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, create_model

from scaling.core.errors import UserError
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


def resolved(recipes: Any) -> dict[str, dict[str, Any]]:
    """Return each recipe with its engine and all options that it gives or has from its `base`.

    UserError for a name that is no name, a base that is no recipe, and a recipe without an engine.
    """
    if not isinstance(recipes, dict) or not all(isinstance(own, dict) for own in recipes.values()):
        raise wrong("recipes should be recipes by their names, as {plain: {engine: eager}}")
    for name in recipes:
        if name in RENAMED:
            raise wrong(f"recipes.{name} is called recipes.{RENAMED[name]} now")
        if not re.fullmatch(r"[A-Za-z]\w*", str(name), re.ASCII):
            raise wrong(f"recipes has {name!r} (allowed: a letter, then letters, digits and _)")
    found, known = {name: _with_base(name, recipes, ()) for name in recipes}, ENGINES.names()
    for name, own in found.items():
        if (engine := own["engine"]) not in known:
            raise wrong(f"recipes.{name}.engine is {engine!r} (allowed: {', '.join(known)})")
    return found


def _with_base(
    name: str, recipes: Mapping[str, dict[str, Any]], above: tuple[str, ...]
) -> dict[str, Any]:
    own = dict(recipes[name])
    if "command" in own and own.keys().isdisjoint(("engine", "base")):
        own |= {"engine": "command", "strategies": [OWN]}
    if "base" not in own:
        if "engine" not in own:
            raise wrong(
                f"recipes.{name} has neither engine nor base (allowed: engine: "
                f"{' or '.join(ENGINES.names())}, base: another recipe, or command: your own)"
            )
        return own
    if "engine" in own:
        raise wrong(
            f"recipes.{name} has a base and engine {own['engine']} (allowed: one of them; a recipe "
            "of config/config.yaml keeps its engine, so give yours another name)"
        )
    base = own.pop("base")
    others = [other for other in recipes if other not in (*above, name)]
    if base not in others:
        raise wrong(
            f"recipes.{name}.base is {base!r} (allowed: a recipe that is not based on this one, "
            f"here {', '.join(others) or 'none'})"
        )
    return _with_base(base, recipes, (*above, name)) | own


def wrong(sentence: str) -> UserError:
    """Return the error of a configuration, on one line of at most 1,000 characters."""
    return UserError(textwrap.shorten(f"the configuration is wrong: {sentence}", 1000))


def section(recipes: Mapping[str, Mapping[str, Any]]) -> type[Section]:
    """Return the section of these recipes: each has the keys of its engine and of `Recipe`."""
    fields: Any = {
        name: (create_model(name, __base__=(ENGINES.find(own["engine"]).options, Recipe)), ...)
        for name, own in recipes.items()
    }
    return create_model("Recipes", __base__=Section, **fields)
