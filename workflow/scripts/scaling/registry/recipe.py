"""Recipes: how a model is trained, whatever the strategy."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from scaling.core.section import Section
from scaling.registry.registry import Reference, Registry


@dataclass(frozen=True)
class Recipe:
    """What the study has to know of a recipe.

    `trainer` refers to a class as `scaling.training.trainer.Trainer` describes it. `options` are
    its own (`recipes` in the configuration); `gpu_options` are switches that a CPU cannot have on.
    Under a strategy in `sweep_kinds` it sends messages of its own, which the interconnect sweep
    knows as that kind.
    """

    name: str
    trainer: Reference
    options: type[Section]
    gpu_options: tuple[str, ...] = ()
    sweep_kinds: Mapping[str, str] = field(default_factory=dict)


RECIPES = Registry[Recipe]("recipe", "scaling.registry.recipes", Recipe, {"course": "plain"})
