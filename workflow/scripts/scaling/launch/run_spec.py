"""The parameters of one run of the grid, and references to the functions that measure it.

The grid has all configured combinations of recipe, strategy, number of GPUs, batch size and seed. A
recipe is an engine (a training loop) with its options.
"""

from typing import Any

from pydantic import Field

from scaling.config.devices import need_newer_gpu, unsupported
from scaling.core import environment
from scaling.core.environment import Device
from scaling.core.errors import UserError
from scaling.core.grid import Cell
from scaling.core.records.kind import Role
from scaling.core.section import Count
from scaling.core.statistics import drift
from scaling.core.training_options import Limits, Model, Training
from scaling.registry.engine import ENGINES
from scaling.registry.registry import Reference
from scaling.registry.strategy import STRATEGIES

WORKER = Reference("scaling.training.worker:start")
INSTRUMENTS = Reference("scaling.instruments.steps:measure_all")


class CommandOptions(Limits):
    """Options of a run of a user's own command. `RunSpec` adds the options of other recipes."""

    warmup_epochs: Count = 1
    measured_epochs: Count = 4
    device: Device = "auto"
    nodes: int = 1
    """Number of nodes of the Slurm job. Each node has the same number of the run's GPUs."""


class RunSpec(CommandOptions, Training):
    """Parameters of one run of the grid. The record of the run contains all of them."""

    cell: Cell = Cell("plain", "ddp", 1, 128, 0)
    model: Model = Model()
    engine: str = "eager"
    recipe_options: dict[str, Any] = Field(default={"loader_workers": 2})

    @property
    def epochs(self) -> int:
        """Number of epochs, with warm-up, after which to evaluate. A run may train for longer."""
        return self.warmup_epochs + self.measured_epochs

    def next_role(self, warmup: list[float], measured: list[float]) -> Role | None:
        """Return the role of the next epoch, or None to stop training.

        `warmup` and `measured` have the seconds of each earlier epoch of that role.
        """
        if len(warmup) < self.warmup_epochs or sum(warmup) < self.warmup_seconds:
            return "warmup"
        enough = len(measured) >= self.measured_epochs and sum(measured) >= self.measured_seconds
        if enough and (sum(measured) >= self.max_measured_seconds or drift(measured)[1]):
            return None
        return "measured"

    @property
    def processes(self) -> int:
        """Number of training processes on all nodes."""
        return STRATEGIES.find(self.cell.strategy).processes(self.cell.gpus)

    def resolved(self) -> "RunSpec":
        """Return a copy whose `device` is cpu or cuda. UserError for unsupported options."""
        STRATEGIES.find(self.cell.strategy)
        ENGINES.find(self.engine).options.of(self.recipe_options, "recipe_options")
        device = environment.resolve_device(self.device)
        recipes = {self.cell.recipe: {"engine": self.engine, **self.recipe_options}}
        lacks = unsupported(device, [self.cell.strategy], recipes, self.cell.gpus)
        for problem in (*lacks, *need_newer_gpu(device, recipes)):
            raise UserError(problem)
        return self.model_copy(update={"device": device})

    def parameters(self) -> dict[str, Any]:
        """Return the field `training` of a record: all parameters except `cell` and `model`."""
        return self.model_dump(exclude={"cell", "model"})
