"""Engines: programs that train epochs. Engine `command` runs a command of the user."""

import hashlib
import os
import re
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
QUOTED = re.compile(r"""'[^']*'|"(\\.|[^"\\])*"|\\.""", re.DOTALL)
OF_A_SHELL = re.compile(r"[|&;<>`]|\$\S|^~")
"""Matches an unquoted word that needs a shell: `a;`, `~/train.sh`, `2>&1`, `$HOME`."""


def places(command: str) -> set[str]:
    """Return the names in braces in a command: `seed` for `{seed}`, `seed:` for `{seed:03d}`.
    Raise ValueError for wrong quotes or braces.
    """
    fields = [field for word in shlex.split(command) for field in Formatter().parse(word)]
    known = [(name, form, kind) for _, name, form, kind in fields if name is not None]
    return {f"{name}:" if form or kind else name for name, form, kind in known}


def _can_be_started(command: str) -> str:
    try:
        named = places(command)
    except ValueError as error:
        raise ValueError(f"{error}: it should be words and quotes as in a shell") from error
    if unknown := sorted(named - {*PLACES}):
        allowed = f"allowed in braces: {', '.join(PLACES)}; double other braces"
        raise ValueError(f"it should have no {{{unknown[0]}}} ({allowed})")
    words = shlex.split(command)
    if not words or re.match(r"\w+=", words[0]):
        raise ValueError("it should begin with a program; env NAME=value … sets a variable")
    if shell := next(filter(OF_A_SHELL.search, QUOTED.sub("…", command).split()), None):
        raise ValueError(
            f"no shell starts it, so {shell} has no meaning: write bash -c '… {shell} …', or quote "
            "it as text"
        )
    return command


def files(command: str) -> dict[str, str]:
    """Return the SHA-256 of each existing file whose path is a word of `command`, by path."""
    # Path.is_file raises an error for a word that is longer than a name can be.
    named = [word for word in shlex.split(command) if os.path.isfile(word)]  # noqa: PTH113
    return {word: hashlib.sha256(Path(word).read_bytes()).hexdigest() for word in named}


@dataclass(frozen=True)
class Engine:
    """An engine: its trainer, its options, and which options need a GPU or certain strategies."""

    name: str
    trainer: Reference
    """Reference to a subclass of `training.trainer.Trainer`; for engine `command`, a function."""
    options: type[Section]
    """Class of the options in recipes of this engine."""
    gpu_options: tuple[str, ...] = ()
    """Names of boolean options that need a GPU."""
    only_with: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Maps an option to the strategies that allow it. All strategies allow the other options."""
    kernels: Reference | None = None
    """Reference to a class in the package `extras` that runs a model with hand-written kernels."""


class CommandOptions(Section):
    """Options of a recipe that is a user's own command."""

    command: Annotated[str, AfterValidator(_can_be_started)]
    """Your training command, instead of `engine`. It is started once per run, with values for
    `{gpus}`, `{batch_size}` (per GPU), `{global_batch_size}`, `{seed}`, `{repeat}`, `{epochs}`,
    `{nodes}`, `{gpus_per_node}`, `{host}`, `{port}` and `{folder}` (of the run). See
    docs/own_trainer.md."""
    unit: Annotated[str, StringConstraints(pattern="^[a-z]+$", max_length=20)] = "samples"
    """Unit of the `samples` that the command prints, in the plural, such as `tokens`."""
    samples: Literal["all", "rank"] | None = None
    """Whether the `samples` that the command prints count `all` processes or only one `rank`. Null:
    `rank` if N GPUs print 1/N of the number that one GPU prints, else `all`."""


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
    """Return the modules that measure a run of `engine` and `model`, without strategies."""
    if engine == COMMAND.name:
        return ENGINES.modules(engine)
    ours = ["scaling.training.worker", "scaling.instruments.steps", "scaling.launch.supervisor"]
    return [*ours, *ENGINES.modules(engine), *model_code(model)]
