"""Recipes: an engine with options, or a base recipe with some options changed."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, create_model

from scaling.core.grid import SINGLE
from scaling.core.section import Section, Some, refuse
from scaling.registry.engine import ENGINES
from scaling.registry.registry import Registry
from scaling.registry.strategy import STRATEGIES
from scaling.registry.update_rule import Technique

OWN = "own"
"""Name of the strategy of a recipe that is a user's own command."""
IMPLIED = {OWN: "recipes that are commands have it", SINGLE: "one GPU has no strategy"}
"""Strategies that `grid.strategies` must not contain, and the reasons."""


def one_of(registry: Registry[Any]) -> AfterValidator:
    """Return a pydantic validator that accepts only names of the registry's entries."""

    def check(name: str) -> str:
        if name not in (known := registry.names()):
            raise ValueError(f"it should be one of {', '.join(known)}")
        return name

    return AfterValidator(check)


class Recipe(Section):
    engine: str
    """Training program: `eager` (PyTorch's standard parts, as in the lab), `resident` (images on
    the GPU, compiled steps, CUDA graphs), or your plug-in (docs/extending.md)."""
    strategies: Some[Annotated[str, one_of(STRATEGIES)]] | None = None
    """Entries of `grid.strategies` to measure this recipe with, as `[ddp]`. Null: all."""


def techniques(config: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the options of each technique in `convergence.recipes`, by the technique's name."""
    return {
        tried["name"]: of_technique(tried, config["recipes"][tried["recipe"]])
        for tried in config["convergence"]["recipes"]
    }


def precision(config: Mapping[str, Any]) -> str:
    """Return the precision that all recipes in `convergence.recipes` have in common."""
    names = [tried["recipe"] for tried in config["convergence"]["recipes"]]
    chosen: str = config["recipes"][names[0]].get("precision", "float32")
    return chosen


def of_technique(tried: Mapping[str, Any], recipe: Mapping[str, Any]) -> dict[str, Any]:
    """Return a technique's options that differ from defaults; `tried` overrides `recipe`."""
    values = {**recipe, **tried}
    return {
        key: values[key]
        for key, field in Technique.model_fields.items()
        if values.get(key, field.default) != field.default
    }


def resolved(
    recipes: Mapping[str, Mapping[str, Any]], requests: Mapping[str, str]
) -> dict[str, dict[str, Any]]:
    """Return all options of each recipe in `requests`, by name; UserError for mistakes."""
    complete: dict[str, dict[str, Any]] = {}
    messages: list[str] = []
    for name, key in requests.items():
        try:
            values = _with_base(name, key, recipes)
            options = ENGINES.find(values["engine"]).options
            kind = create_model("Recipe", __base__=(options, Recipe))
            messages += (wrong := kind.sentences(values, above=("recipes", name)))
            complete |= {} if wrong else {name: kind.of(values).model_dump()}
        except ValueError as error:
            messages.append(str(error))
    refuse(messages)
    return complete


def _with_base(name: str, key: str, recipes: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the options of recipe `name` merged with its bases'; ValueError for a mistake."""
    whole: dict[str, Any] = {}
    others, engines = list(recipes), ENGINES.names()
    while "engine" not in whole:
        if name not in others:
            there = ", ".join(others) or "none"
            raise ValueError(f"{key} names recipe {name!r} (allowed: {there})")
        others.remove(name)
        values, place = dict(recipes[name]), f"recipes.{name}"
        if "command" in values and values.keys().isdisjoint(("engine", "base")):
            values |= {"engine": "command", "strategies": [OWN]}
        if ("engine" in values) == ("base" in values):
            raise ValueError(f"{place} needs an engine ({', '.join(engines)}) or else a base")
        whole = values | whole
        name, key = whole.pop("base", None), f"{place}.base"
    if whole["engine"] not in engines:
        raise ValueError(f"{place}.engine is {whole['engine']!r} (allowed: {', '.join(engines)})")
    return whole
