"""Models: networks of ours by a registry, torchvision's, and functions of the user's own."""

from dataclasses import dataclass
from pathlib import Path

from scaling.core import plugins
from scaling.registry.registry import Reference, Registry


@dataclass(frozen=True)
class Model:
    """What the study has to know of a model of ours.

    `factory` refers to what makes it with fresh weights from (width, classes), where the width is
    the channels of its first stage.
    """

    name: str
    title: str
    factory: Reference


MODELS = Registry[Model]("model", "scaling.registry.models", Model)


def code(name: str) -> list[str | Path]:
    """The modules whose code a model adds, dotted names or files; none for torchvision's."""
    if ":" in name:
        return [path for path in [plugins.source(name)] if path]
    return MODELS.modules(name) if name in MODELS.names() else []


def title(name: str) -> str:
    """What a report calls a model: a name of ours, torchvision's, or a function's."""
    return MODELS.find(name).title if name in MODELS.names() else name.rpartition(":")[2]
