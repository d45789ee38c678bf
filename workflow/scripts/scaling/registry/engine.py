"""Engines, which train epochs under any strategy. Engine `command` runs a script of the user."""

import hashlib
import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from string import Formatter
from typing import Annotated, Literal

from pydantic import AfterValidator, StringConstraints

from scaling.core.section import Section
from scaling.registry.entries import model_code
from scaling.registry.registry import Reference, Registry

PLACES = (
    *("gpus", "batch_size", "global_batch_size", "seed", "repeat", "epochs"),
    *("nodes", "gpus_per_node", "host", "port", "folder"),
)


def places(command: str) -> set[str]:
    """Return the names in braces in a command. Raises ValueError if it cannot be parsed."""
    words = shlex.split(command)
    return {name for word in words for _, name, _, _ in Formatter().parse(word) if name is not None}


def _can_be_started(command: str) -> str:
    try:
        named = places(command)
    except ValueError as error:
        raise ValueError(f"{error}: it should be words and quotes as in a shell") from error
    if unknown := sorted(named - {*PLACES}):
        allowed = f"allowed in braces: {', '.join(PLACES)}; double other braces"
        raise ValueError(f"it should have no {{{unknown[0]}}} ({allowed})")
    return command


def files(command: str) -> dict[str, str]:
    """Return the SHA-256 of each file that a command names, by its path."""
    # Path.is_file raises an error for a word that is longer than a name can be.
    named = [word for word in shlex.split(command) if os.path.isfile(word)]  # noqa: PTH113
    return {word: hashlib.sha256(Path(word).read_bytes()).hexdigest() for word in named}


@dataclass(frozen=True)
class Engine:
    """An engine: its class, the options of its recipes, and where they can be used."""

    name: str
    trainer: Reference
    """A class as `scaling.training.trainer.Trainer` describes it."""
    options: type[Section]
    """The class of the options that its recipes have."""
    gpu_options: tuple[str, ...] = ()
    """Switches that need a GPU."""
    only_with: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Strategies that allow an option, by its name; options not listed go with all strategies."""
    kernels: Reference | None = None
    """A class in the package extras that computes a model by kernels of the project."""


class CommandOptions(Section):
    """The options of a recipe that is a command."""

    command: Annotated[str, AfterValidator(_can_be_started)]
    """A command of yours that trains, in the place of `engine`, started once for each cell with
    values in the place of `{gpus}`, `{batch_size}` (per GPU), `{global_batch_size}`, `{seed}`,
    `{repeat}`, `{epochs}`, `{nodes}`, `{gpus_per_node}`, `{host}`, `{port}` and
    `{folder}` (of the run). See docs/own_trainer.md."""
    unit: Annotated[str, StringConstraints(pattern="^[a-z]+$", max_length=20)] = "samples"
    """What its `samples` are, in the plural, as `tokens`."""
    samples: Literal["all", "rank"] | None = None
    """Whether the `samples` that it prints are those of `all` processes together or of one `rank`.
    Null: all, or of one where several GPUs have as many times fewer than one GPU."""


COMMAND = Engine("command", Reference("scaling.launch.own_trainer:run"), CommandOptions)
# By reference, so that a cell's digest has the options of its own engine alone.
ENGINES = Registry[Engine](
    "engine",
    Engine,
    COMMAND,
    Reference("scaling.registry.eager:ENTRY"),
    Reference("scaling.registry.resident:ENTRY"),
)


def measuring_code(engine: str, model: str) -> list[str | Path]:
    """Return the modules that measure a run, without the modules of its strategy."""
    if engine == COMMAND.name:
        return ENGINES.modules(engine)
    ours = ["scaling.training.worker", "scaling.instruments.steps", "scaling.launch.supervisor"]
    return [*ours, *ENGINES.modules(engine), *model_code(model)]
