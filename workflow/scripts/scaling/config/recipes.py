"""Recipes: an engine with options, or another recipe with some options changed."""

import re
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, create_model

from scaling.config.technique import Technique
from scaling.core.section import Section, Some
from scaling.registry.engine import ENGINES
from scaling.registry.registry import Registry
from scaling.registry.strategy import STRATEGIES

OWN = "own"
"""The strategy of recipes that are a command."""
GONE = {
    "recipes.course": "recipes.course is called recipes.plain now",
    "time_to_accuracy.update": "time_to_accuracy.update is no key any more: its options are a "
    "recipe's, as {fast: {base: tuned, muon: 0.12}}, which time_to_accuracy.recipe names",
    "convergence.precision": "convergence.precision is no key any more: it is the recipes', as "
    "{calm: {base: tuned, precision: float32}}",
    "quantization.peers": "quantization.peers is no key any more: our quantizer alone is measured",
    "convergence.remedies": "convergence.remedies is no key any more: the options of an update are "
    "a recipe's, as {muon: {base: tuned, muon: 0.12}}, and convergence.recipes names it, as [muon, "
    "{name: naive, recipe: tuned, scaling: linear}]",
}
"""What to write in the place of older configurations' keys."""


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


def gone(config: Mapping[str, Any]) -> list[str]:
    """Return a sentence for each key of older configurations."""
    sections = {key: value if isinstance(value, dict) else {} for key, value in config.items()}
    there = {*sections, *(f"{name}.{key}" for name, own in sections.items() for key in own)}
    return [said for key, said in GONE.items() if key in there]


def techniques(config: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the options of each technique of `convergence.recipes`, by its name."""
    return {
        tried["name"]: of_technique(tried, config["recipes"][tried["recipe"]])
        for tried in config["convergence"]["recipes"]
    }


def precision(config: Mapping[str, Any]) -> str:
    """Return the precision of the recipes of `convergence.recipes`, which is one for all."""
    names = [tried["recipe"] for tried in config["convergence"]["recipes"]]
    found: str = config["recipes"][names[0]].get("precision", "float32")
    return found


def of_technique(tried: Mapping[str, Any], recipe: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of the recipe's update and of its trials that differ from their defaults.

    `tried` is an entry of `convergence.recipes`, `recipe` its recipe with all keys.
    """
    own = {**recipe, **tried}
    return {
        key: own[key]
        for key, field in Technique.model_fields.items()
        if own.get(key, field.default) != field.default
    }


def resolved(
    recipes: Mapping[str, Mapping[str, Any]], asks: Mapping[str, str]
) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Return each recipe that some key `asks` for, with all keys, and a sentence for each mistake.

    What it does not give it has from its `base`. Others are looked at by their names alone.
    """
    said = [
        f"recipes has {name!r} (allowed: a letter, then letters, digits and _)"
        for name in recipes
        if not re.fullmatch(r"[A-Za-z]\w*", name, re.ASCII)
    ]
    found: dict[str, dict[str, Any]] = {}
    for name, key in asks.items():
        if name not in recipes:
            allowed = f"(allowed: those of recipes, {', '.join(recipes)})"
            said.append(f"{key} asks for recipe {name} {allowed}")
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
    engine, base = own.get("engine"), own.pop("base", None)
    if (engine is None) == (base is None):
        has = f"a base and engine {engine}" if engine else "neither engine nor base"
        raise ValueError(
            f"recipes.{name} has {has} (allowed: engine: {' or '.join(ENGINES.names())}, base: "
            "another recipe, or command: your own)"
        )
    if engine is not None:
        if engine not in ENGINES.names():
            allowed = ", ".join(ENGINES.names())
            raise ValueError(f"recipes.{name}.engine is {engine!r} (allowed: {allowed})")
        return own
    others = [other for other in recipes if other not in (*above, name)]
    if base not in others:
        raise ValueError(
            f"recipes.{name}.base is {base!r} (allowed: a recipe that is not based on this one, "
            f"here {', '.join(others) or 'none'})"
        )
    return _with_base(base, recipes, (*above, name)) | own
