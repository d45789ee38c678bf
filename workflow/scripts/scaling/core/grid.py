"""The grid of a study: its cells, and the paths of their records."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

CELL_KEYS = ["recipe", "strategy", "gpus", "batch_size"]
RUN_KEYS = [*CELL_KEYS, "seed", "repeat"]
RUN_PATTERN = "/".join(f"{key}~{{{key}}}" for key in RUN_KEYS[:-1]) + "{repeat}"
"""The folder of a run's record below `runs`; `repeat` is "" for the first, else a folder."""
TRACE, TRACE_BYTES = "trace.json.gz", 1_000_000
"""The file with one step of each rank, for ui.perfetto.dev, and its largest size."""


def single_gpu(strategy: str) -> str:
    """Return the `RUN_PATTERN` of a strategy's runs on one GPU."""
    return RUN_PATTERN.replace("{strategy}", strategy).replace("{gpus}", "1")


@dataclass(frozen=True)
class Cell:
    """One run of the grid: a cell (recipe, strategy, gpus, batch_size per GPU) and its seed."""

    recipe: str
    strategy: str
    gpus: int
    """On a CPU, processes."""
    batch_size: int
    """Samples per GPU and step."""
    seed: int
    """Of initial weights, order and augmentation."""
    repeat: int = 0
    """From 0: repeats are processes that do the same work."""

    @property
    def global_batch_size(self) -> int:
        """The samples of one update, over all GPUs."""
        return self.gpus * self.batch_size

    def record_path(self, runs: Path) -> Path:
        """Return the path of this run's record below the folder `runs`."""
        repeat = f"/repeat~{self.repeat}" if self.repeat else ""
        return runs / RUN_PATTERN.format(**asdict(self) | {"repeat": repeat}) / "run.json"

    def trace_path(self, runs: Path) -> Path:
        """Return the path of the trace of one step, in the folder of this run's record."""
        return self.record_path(runs).with_name(TRACE)

    def log_path(self, logs: Path) -> Path:
        """Return the path of this run's log below the folder `logs`."""
        rule = "train_command" if self.strategy == "own" else "train_run"
        return self.record_path(logs / rule).parent.with_suffix(".log")

    def __str__(self) -> str:
        named = f"{self.recipe}/{self.strategy}, {self.gpus} GPU{'s' if self.gpus > 1 else ''}"
        repeat = f", repeat {self.repeat}" if self.repeat else ""
        return f"{named}, batch {self.batch_size} per GPU, seed {self.seed}{repeat}"


def of(config: dict[str, Any]) -> list[Cell]:
    """Return every run of a configuration's grid; see `expand`."""
    return expand(**section(config))


def on_one_gpu(config: dict[str, Any]) -> list[str]:
    """Return the strategies: the first is measured on one GPU, its record copied for the others."""
    return sorted(config["grid"]["strategies"], key=lambda name: name != "ddp")


def section(config: dict[str, Any]) -> dict[str, Any]:
    """Return the section `grid` with the strategies of each recipe, for `expand`."""
    asked, found = config["grid"], {}
    for name in asked["recipes"]:
        own = config["recipes"][name].get("strategies")
        among = [strategy for strategy in asked["strategies"] if own is None or strategy in own]
        found[name] = own if own == ["own"] else among
    return {key: value for key, value in asked.items() if key != "strategies"} | {"recipes": found}


def recipe_options(config: dict[str, Any], recipe: str) -> dict[str, Any]:
    """Return the options that a recipe passes to its engine."""
    own = config["recipes"][recipe]
    return {key: value for key, value in own.items() if key not in ("engine", "strategies")}


def expand(
    recipes: Mapping[str, Sequence[str]],
    gpus: list[int],
    batch_sizes: list[int],
    seeds: list[int],
    repeats: int = 1,
) -> list[Cell]:
    """Return every combination; `recipes` are the strategies of each."""
    return [
        Cell(name, *values)
        for name, strategies in recipes.items()
        for values in product(strategies, gpus, batch_sizes, seeds, range(repeats))
    ]
