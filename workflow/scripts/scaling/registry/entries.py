"""Built-in datasets and models, and the registries that find them by name."""

from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from scaling.registry.registry import Reference, Registry


@dataclass(frozen=True)
class Dataset:
    """A dataset: a source of images to train on."""

    name: str
    read: Reference
    """Reference to a function of a `data.dataset.Request` that returns (`ImageDataset`, origin)."""
    options: tuple[str, ...] = ()
    """Keys of the section `dataset` that `read` uses."""
    needs_path: bool = False
    places: tuple[str, ...] = ()
    """Keys in `options` for the location of the images, if `read` accepts only one set of images. A
    changed location repeats no job."""


SYNTHETIC = Dataset(
    "synthetic",
    Reference("scaling.data.generated:synthetic"),
    ("train_images", "test_images", "seed"),
)
DATASETS = Registry[Dataset](
    "dataset",
    Dataset,
    Dataset(
        "cifar10",
        Reference("scaling.data.cifar10:read"),
        ("path", "mirror_url", "download_attempts"),
        places=("path", "mirror_url"),
    ),
    Dataset("digits", Reference("scaling.data.generated:digits")),
    Dataset("images", Reference("scaling.data.images:read"), ("path",), needs_path=True),
    SYNTHETIC,
    # Of a user's own command: nothing is prepared.
    Dataset("own", Reference("scaling.launch.own_trainer:run")),
)


@dataclass(frozen=True)
class Model:
    """A built-in model. Torchvision's models and a user's functions are not registered."""

    name: str
    title: str
    factory: Reference
    """Reference to a function (width, classes) that returns a model with initial weights."""


RESNET = Model("resnet18-cifar", "ResNet-18", Reference("scaling.models.resnet:ResNet18"))
MODELS = Registry[Model]("model", Model, RESNET)


def model_code(name: str) -> list[str | Path]:
    """Return a model's modules, as dotted names or files; [] for a model of torchvision."""
    if ":" not in name:
        return MODELS.modules(name) if name in MODELS.names() else []
    place = name.partition(":")[0]
    if place.endswith(".py"):
        return [Path(place)]
    module = find_spec(place)
    return [Path(module.origin)] if module and module.origin else []


def model_title(name: str) -> str:
    """Return a model's name as shown in reports."""
    return MODELS.find(name).title if name in MODELS.names() else name.rpartition(":")[2]
