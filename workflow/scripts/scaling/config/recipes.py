"""Recipes: an engine with options, or another recipe with some options changed."""

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
"""The name of the strategy of recipes that are commands."""
IMPLIED = {OWN: "recipes that are commands have it", SINGLE: "one GPU has no strategy"}
"""Names of strategies that `grid.strategies` must not have, and why."""


def one_of(registry: Registry[Any]) -> AfterValidator:
    """Return a validator that allows only names of the registry's entries."""

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
    """Of `grid.strategies` those that this recipe is for, as `[ddp]`. Null: all of them."""


def techniques(config: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the options of each technique of `convergence.recipes`, by its name."""
    return {
        tried["name"]: of_technique(tried, config["recipes"][tried["recipe"]])
        for tried in config["convergence"]["recipes"]
    }


def precision(config: Mapping[str, Any]) -> str:
    """Return the precision that all recipes of `convergence.recipes` share."""
    names = [tried["recipe"] for tried in config["convergence"]["recipes"]]
    chosen: str = config["recipes"][names[0]].get("precision", "float32")
    return chosen


def of_technique(tried: Mapping[str, Any], recipe: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a technique that differ from defaults; `tried` overrides `recipe`."""
    values = {**recipe, **tried}
    return {
        key: values[key]
        for key, field in Technique.model_fields.items()
        if values.get(key, field.default) != field.default
    }


def resolved(
    recipes: Mapping[str, Mapping[str, Any]], requests: Mapping[str, str]
) -> dict[str, dict[str, Any]]:
    """Return each recipe in `requests`, with all options; UserError for mistakes in recipes."""
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
    """Return the options of the recipe `name`, merged with its bases; ValueError for a mistake."""
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
