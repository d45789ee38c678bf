"""The grid of a study: which cells it has and where the record of each run lies."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

CELL_KEYS = ["recipe", "strategy", "gpus", "batch_size"]
RUN_KEYS = [*CELL_KEYS, "seed", "repeat"]
RUN_PATTERN = "/".join(f"{key}~{{{key}}}" for key in RUN_KEYS[:-1]) + "{repeat}"
"""The folder of a run's record, from that of all; `repeat` is "" for the first, else a folder."""


def single_gpu(strategy: str) -> str:
    """`RUN_PATTERN` of a strategy's runs on one GPU."""
    return RUN_PATTERN.replace("{strategy}", strategy).replace("{gpus}", "1")


@dataclass(frozen=True)
class Cell:
    """One run of the grid: a cell (recipe, strategy, gpus, batch_size per GPU) and its seed."""

    recipe: str
    """How to train, a name of the configuration's `recipes`."""
    strategy: str
    """How to spread it over GPUs, a name of the registry of strategies."""
    gpus: int
    """GPUs; on a CPU, processes."""
    batch_size: int
    """Samples per GPU and step."""
    seed: int
    """Of initial weights, order and augmentation."""
    repeat: int = 0
    """Which of several processes that do the same work, from 0."""

    @property
    def global_batch_size(self) -> int:
        """Samples of one update, over all GPUs."""
        return self.gpus * self.batch_size

    def record_path(self, runs: Path) -> Path:
        """Where the record of this run lies below the folder `runs`."""
        repeat = f"/repeat~{self.repeat}" if self.repeat else ""
        return runs / RUN_PATTERN.format(**asdict(self) | {"repeat": repeat}) / "run.json"

    def log_path(self, logs: Path) -> Path:
        """Where the log of this run lies below the folder `logs`."""
        return self.record_path(logs / "train_run").parent.with_suffix(".log")

    def __str__(self) -> str:
        return (
            f"{self.recipe}/{self.strategy}, {self.gpus} GPU{'s' if self.gpus > 1 else ''}, "
            f"batch {self.batch_size} per GPU, seed {self.seed}"
            f"{f', repeat {self.repeat}' if self.repeat else ''}"
        )


def of(config: dict[str, Any]) -> list[Cell]:
    """Every run of a configuration's grid; see `expand`."""
    return expand(**section(config))


def section(config: dict[str, Any]) -> dict[str, Any]:
    """The section `grid` with what its recipes say of their strategies: arguments of `expand`."""
    recipes = {name: config["recipes"][name] for name in config["grid"]["recipes"]}
    limits = {name: own["strategies"] for name, own in recipes.items() if own.get("strategies")}
    return config["grid"] | ({"limits": limits} if limits else {})


def recipe_options(config: dict[str, Any], recipe: str) -> dict[str, Any]:
    """Return the options that a recipe passes to its engine."""
    own = config["recipes"][recipe]
    return {key: value for key, value in own.items() if key not in ("engine", "strategies")}


def expand(
    recipes: list[str],
    strategies: list[str],
    gpus: list[int],
    batch_sizes: list[int],
    seeds: list[int],
    repeats: list[dict[str, Any]] | int = 1,
    limits: Mapping[str, Sequence[str]] | None = None,
) -> list[Cell]:
    """Every combination, in the order of the contracts' path, with its repeats.

    `repeats` is their number, or a number for some cells each (see `repeats_of`); a recipe in
    `limits` has the strategies named there alone.
    """
    limits = limits or {}
    wanted = [{"repeats": repeats}] if isinstance(repeats, int) else repeats
    return [
        Cell(*values, repeat)
        for values in product(recipes, strategies, gpus, batch_sizes, seeds)
        if values[1] in limits.get(values[0], strategies)
        for repeat in range(max([1, *(repeats_of(each, *values) for each in wanted)]))
    ]


def repeats_of(wanted: dict[str, Any], *values: Any) -> int:
    """How many runs an entry of `grid.repeats` asks for of a cell: 0 where it is of others.

    It is of the cells whose recipe is among its `recipes`, and so on; of all without such a key.
    """
    chosen = (wanted.get(key) for key in ("recipes", "strategies", "gpus", "batch_sizes"))
    named = all(some is None or value in some for some, value in zip(chosen, values, strict=False))
    return int(wanted["repeats"]) if named else 0
