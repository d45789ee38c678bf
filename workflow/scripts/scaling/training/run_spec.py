"""Everything one run of the grid depends on."""

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import Any, Literal

from scaling.core.grid import Cell

Device = Literal["cpu", "cuda"]


@dataclass(frozen=True)
class RunSpec:
    """The parameters of one run; they are all in its record.

    `cpu_threads` is the number of threads of each process, `crop_padding` is in pixels,
    `instrumented_iterations` bounds each instrumented epoch (0: none),
    `collective_timeout_seconds` bounds the wait of one rank for another,
    `recipe_options` are the recipe's own switches, `nodes` is how many machines the GPUs are in.
    """

    cell: Cell
    device: Device
    model_width: int
    warmup_epochs: int
    measured_epochs: int
    instrumented_iterations: int
    learning_rate: float
    momentum: float
    weight_decay: float
    crop_padding: int
    horizontal_flip: bool
    recipe_options: dict[str, Any]
    cpu_threads: int
    time_limit_seconds: float
    collective_timeout_seconds: float
    nodes: int = 1

    @property
    def epochs(self) -> int:
        """Warm-up and measured epochs together."""
        return self.warmup_epochs + self.measured_epochs

    def parameters(self) -> dict[str, Any]:
        """Every parameter but the cell, as the record's `training`."""
        values = asdict(self)
        del values["cell"]
        return values

    def digest(self) -> str:
        """SHA-256 over all parameters, the cell included."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()
