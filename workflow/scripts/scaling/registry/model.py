"""Models: networks that cells of the grid train."""

from dataclasses import dataclass

from scaling.registry.registry import Reference, Registry


@dataclass(frozen=True)
class Model:
    """What the study has to know of a model for images of 3×32×32.

    `factory` refers to what makes it with fresh weights from (width, classes), where the width is
    the channels of its first stage.
    """

    name: str
    title: str
    factory: Reference


MODELS = Registry[Model]("model", "scaling.registry.models")
