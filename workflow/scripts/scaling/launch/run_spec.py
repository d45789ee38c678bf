"""Everything one run of the grid depends on."""

import hashlib
import json
from typing import Any

from pydantic import Field

from scaling.config.devices import need_newer_gpu, unsupported
from scaling.core import code_digest, environment
from scaling.core.environment import Device
from scaling.core.errors import UserError
from scaling.core.grid import Cell
from scaling.core.records.kind import Role
from scaling.core.section import Count
from scaling.core.statistics import drift
from scaling.core.training_options import Limits, Model, Training
from scaling.registry.engine import ENGINES
from scaling.registry.entries import model_code
from scaling.registry.registry import Reference
from scaling.registry.strategy import STRATEGIES

WORKER = Reference("scaling.training.worker:start")
"""What trains a cell."""
INSTRUMENTS = Reference("scaling.instruments.steps:measure_all")
"""What looks at the steps of the trained model."""


def code(engine: str, model: str) -> list[Any]:
    """Return the modules that measure a cell, apart from its strategy's."""
    own = [WORKER.module, INSTRUMENTS.module, "scaling.launch.supervisor"]
    return [*own, *ENGINES.modules(engine), *model_code(model)]


class CommandOptions(Limits):
    """What any run has, also one whose recipe is a command of the user's own."""

    warmup_epochs: Count = 1
    """Epochs at the start; a training to its end may have none."""
    measured_epochs: Count = 4
    """Epochs after them."""
    device: Device = "auto"
    """Where to train; `auto` means GPUs where one is visible."""
    nodes: int = 1
    """Nodes of a Slurm job that share the GPUs."""


class RunSpec(CommandOptions, Training):
    """The parameters of one run, all of which are in its record."""

    cell: Cell = Cell("plain", "ddp", 1, 128, 0)
    """Which cell of the grid, and its seed."""
    model: Model = Model()
    """What is trained."""
    engine: str = "eager"
    """What trains: the recipe's engine."""
    recipe_options: dict[str, Any] = Field(default={"loader_workers": 2})
    """The engine's options in this recipe."""

    @property
    def epochs(self) -> int:
        """Warm-up and measured epochs together, at least: after so many a model is evaluated."""
        return self.warmup_epochs + self.measured_epochs

    def next_role(self, warmup: list[float], measured: list[float]) -> Role | None:
        """What the next epoch is for, after epochs of so many seconds; None where they suffice."""
        if len(warmup) < self.warmup_epochs or sum(warmup) < self.warmup_seconds:
            return "warmup"
        enough = len(measured) >= self.measured_epochs and sum(measured) >= self.measured_seconds
        if enough and (sum(measured) >= self.max_measured_seconds or drift(measured)[1]):
            return None
        return "measured"

    @property
    def processes(self) -> int:
        """How many processes train."""
        return STRATEGIES.find(self.cell.strategy).processes(self.cell.gpus)

    def resolved(self) -> "RunSpec":
        """Put what `device` means here in its place; UserError for what is not, or cannot be."""
        STRATEGIES.find(self.cell.strategy)
        ENGINES.find(self.engine).options.of(self.recipe_options, "recipe_options")
        device = environment.resolve_device(self.device)
        recipes = {self.cell.recipe: {"engine": self.engine, **self.recipe_options}}
        lacks = unsupported(device, [self.cell.strategy], recipes, self.cell.gpus)
        for problem in (*lacks, *need_newer_gpu(device, recipes)):
            raise UserError(problem)
        return self.model_copy(update={"device": device})

    def parameters(self) -> dict[str, Any]:
        """Every parameter but the cell and the model, as the record's `training`."""
        return self.model_dump(exclude={"cell", "model"})

    def digest(self) -> str:
        """SHA-256 over all parameters, the cell included."""
        return hashlib.sha256(json.dumps(self.model_dump(), sort_keys=True).encode()).hexdigest()

    def code_digest(self) -> str:
        """Return the digest of the code that measures this run, apart from its strategy's."""
        return code_digest.digest(*code(self.engine, self.model.name), measuring=True)
