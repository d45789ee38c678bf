"""Models: networks that the study trains."""

from dataclasses import dataclass

from scaling.registry.registry import Reference, Registry


@dataclass(frozen=True)
class Model:
    """What the study has to know of a model for images of 3×32×32.

    `factory` refers to what makes it with fresh weights: from (width, classes) for a model that is
    `in_grid`, which cells of the grid can train, from nothing for one of Part B alone.
    """

    name: str
    title: str
    factory: Reference
    in_grid: bool


MODELS = Registry[Model]("model", "scaling.registry.models")
