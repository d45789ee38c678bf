"""The grid of a study: which cells it has and where the record of each run lies."""

import csv
from dataclasses import asdict, astuple, dataclass
from itertools import product
from pathlib import Path

from scaling.core import files

CELL_KEYS = ["recipe", "strategy", "gpus", "batch_size"]
RUN_KEYS = [*CELL_KEYS, "seed"]
RUN_PATTERN = "/".join(f"{key}~{{{key}}}" for key in RUN_KEYS)


@dataclass(frozen=True)
class Cell:
    """One run of the grid: a cell (recipe, strategy, gpus, batch_size per GPU) and its seed."""

    recipe: str
    """How to train, a name of the registry of recipes."""
    strategy: str
    """How to spread it over GPUs, a name of the registry of strategies."""
    gpus: int
    """GPUs; on a CPU, processes."""
    batch_size: int
    """Samples per GPU and step."""
    seed: int
    """Of initial weights, order and augmentation."""

    @property
    def global_batch_size(self) -> int:
        """Samples of one update, over all GPUs."""
        return self.gpus * self.batch_size

    def record_path(self, runs: Path) -> Path:
        """Where the record of this run lies below the folder `runs`."""
        return runs.joinpath(*(f"{key}~{value}" for key, value in asdict(self).items()), "run.json")

    def log_path(self, logs: Path) -> Path:
        """Where the log of this run lies below the folder `logs`."""
        return self.record_path(logs / "train_run").parent.with_suffix(".log")

    def __str__(self) -> str:
        return (
            f"{self.recipe}/{self.strategy}, {self.gpus} GPU{'s' if self.gpus > 1 else ''}, "
            f"batch {self.batch_size} per GPU, seed {self.seed}"
        )


def expand(
    recipes: list[str],
    strategies: list[str],
    gpus: list[int],
    batch_sizes: list[int],
    seeds: list[int],
) -> list[Cell]:
    """Every combination, in the order of the contracts' path."""
    return [Cell(*values) for values in product(recipes, strategies, gpus, batch_sizes, seeds)]


def write_table(cells: list[Cell], target: Path) -> None:
    """Write one CSV row per run: recipe, strategy, gpus, batch_size, seed."""
    with files.atomic_path(target) as temporary, temporary.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(RUN_KEYS)
        writer.writerows(astuple(cell) for cell in cells)
