"""Recipe `plain`: the lab as a student writes it."""

from pydantic import Field

from scaling.core.section import Section
from scaling.registry.recipe import Recipe
from scaling.registry.registry import Reference


class Options(Section):
    """The options of recipe `plain`."""

    loader_workers: int = Field(ge=0)
    """DataLoader processes of each training process."""


ENTRY = Recipe(name="plain", trainer=Reference("scaling.training.plain:Plain"), options=Options)
