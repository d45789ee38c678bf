"""Engines: the code that trains an epoch, whatever the strategy; a recipe is one with options."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from scaling.core.section import Section
from scaling.registry.registry import Reference, Registry


@dataclass(frozen=True)
class Engine:
    """What the study has to know of an engine.

    `trainer` refers to a class as `scaling.training.trainer.Trainer` describes it. A recipe of this
    engine has the keys of `options`; `gpu_options` are switches that a CPU cannot have on, and
    `only_with` names the strategies that an option needs, where it does not go with all. Under a
    strategy in `sweep_kinds` the engine sends messages of its own, which the interconnect sweep
    knows as that kind. `kernels` refers to what an extra has for its models, if that is here.
    """

    name: str
    trainer: Reference
    options: type[Section]
    gpu_options: tuple[str, ...] = ()
    only_with: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    sweep_kinds: Mapping[str, str] = field(default_factory=dict)
    kernels: Reference | None = None


# By reference, so that a cell's digest has the options of its own engine alone.
ENGINES = Registry[Engine](
    "engine",
    Engine,
    Reference("scaling.registry.eager:ENTRY"),
    Reference("scaling.registry.resident:ENTRY"),
    Reference("scaling.registry.command:ENTRY"),
)
