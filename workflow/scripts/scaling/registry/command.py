"""Engine `command`: a training script of one's own, which starts its processes itself."""

import hashlib
import shlex
from pathlib import Path
from string import Formatter
from typing import Annotated

from pydantic import AfterValidator

from scaling.core.section import Section
from scaling.registry.engine import Engine
from scaling.registry.registry import Reference

PLACES = (
    *("gpus", "batch_size", "global_batch_size", "seed", "repeat", "epochs"),
    *("nodes", "gpus_per_node", "host", "port"),
)


def places(command: str) -> set[str]:
    """Return the names in braces; ValueError for a command that is no words with such names."""
    words = shlex.split(command)
    return {name for word in words for _, name, _, _ in Formatter().parse(word) if name is not None}


def _can_be_started(command: str) -> str:
    try:
        named = places(command)
    except ValueError as error:
        raise ValueError(f"{error}: it should be words and quotes as in a shell") from error
    if unknown := sorted(named - {*PLACES}):
        raise ValueError(
            f"it should have no {{{unknown[0]}}} (allowed in braces: {', '.join(PLACES)}; double "
            "other braces)"
        )
    if "gpus" not in named and "gpus_per_node" not in named:
        raise ValueError("it should have {gpus}, by which it starts as many processes")
    return command


def files(command: str) -> dict[str, str]:
    """Return the SHA-256 of each file that a command names, by its path."""
    there = {word: Path(word) for word in shlex.split(command)}
    return {
        word: hashlib.sha256(path.read_bytes()).hexdigest()
        for word, path in there.items()
        if path.is_file()
    }


class Options(Section):
    """The option of a recipe that is a command."""

    command: Annotated[str, AfterValidator(_can_be_started)]
    """A command of yours that trains, in the place of `engine`. It is started once for each cell,
    without a shell, with values in the place of `{gpus}`, `{batch_size}` (per GPU),
    `{global_batch_size}`, `{seed}`, `{repeat}`, `{epochs}` (warm-up and measured), `{nodes}`,
    `{gpus_per_node}`, `{host}` and `{port}` (a free one). See docs/own_trainer.md."""


ENTRY = Engine(name="command", trainer=Reference("scaling.launch.own_trainer:run"), options=Options)
