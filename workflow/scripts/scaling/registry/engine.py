"""Engines: the code that trains an epoch, whatever the strategy; a recipe is one with options."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from scaling.core.section import Section
from scaling.registry.registry import Reference, Registry


@dataclass(frozen=True)
class Engine:
    """What the study has to know of an engine."""

    name: str
    trainer: Reference
    """A class as `scaling.training.trainer.Trainer` describes it."""
    options: type[Section]
    """The keys of its recipes."""
    gpu_options: tuple[str, ...] = ()
    """Switches that a CPU cannot have on."""
    only_with: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The strategies that an option needs, where it does not go with all."""
    sweep_kinds: Mapping[str, str] = field(default_factory=dict)
    """The kind of its own messages in the interconnect sweep, by the strategies that have some."""
    kernels: Reference | None = None
    """What an extra has for its models."""


# By reference, so that a cell's digest has the options of its own engine alone.
ENGINES = Registry[Engine](
    "engine",
    Engine,
    *(Reference(f"scaling.registry.{name}:ENTRY") for name in ("eager", "resident", "command")),
)
