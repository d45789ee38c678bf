"""Recipe `course`: the lab as a student writes it."""

from dataclasses import dataclass

from scaling.registry.recipe import Recipe
from scaling.registry.registry import Reference


@dataclass(frozen=True)
class Options:
    """The options of recipe `course`."""

    loader_workers: int
    """DataLoader processes of each training process."""


ENTRY = Recipe(name="course", trainer=Reference("scaling.training.course:Course"), options=Options)
