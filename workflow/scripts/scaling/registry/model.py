"""Models: registered ones, torchvision's, and the user's functions."""

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from scaling.registry.registry import Reference, Registry


@dataclass(frozen=True)
class Model:
    """A registered model."""

    name: str
    title: str
    factory: Reference
    """A function from (width, classes) to the model with initial weights."""


RESNET = Model("resnet18-cifar", "ResNet-18", Reference("scaling.models.resnet:ResNet18"))
MODELS = Registry[Model]("model", Model, RESNET)


def code(name: str) -> list[str | Path]:
    """Return the modules of a model's code, as dotted names or files; none for torchvision's."""
    if ":" not in name:
        return MODELS.modules(name) if name in MODELS.names() else []
    place = name.partition(":")[0]
    if place.endswith(".py"):
        return [Path(place)]
    found = find_spec(place)
    return [Path(found.origin)] if found and found.origin else []


def title(name: str) -> str:
    """Return a model's name in reports."""
    return MODELS.find(name).title if name in MODELS.names() else name.rpartition(":")[2]
