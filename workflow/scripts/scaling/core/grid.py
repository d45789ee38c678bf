"""The grid of a study: its runs, and the paths of their records."""

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

CELL_KEYS = ["recipe", "strategy", "gpus", "batch_size"]
RUN_KEYS = [*CELL_KEYS, "seed", "repeat"]
RUN_PATTERN = "/".join(f"{key}~{{{key}}}" for key in RUN_KEYS[:-1]) + "{repeat}"
"""Folder of a run's record, relative to the folder `runs`. `repeat_folder` gives `{repeat}`."""
SINGLE = "single"
"""Strategy of a run on one GPU. Tables show it as an empty text."""
LIMITS = ["strategies", "gpus", "batch_sizes"]
"""Keys of `grid` that a recipe may have, too, to be measured with only some of the values."""
REFERENCE_BATCH = 128
TRACE, TRACE_BYTES = "trace.json.gz", 1_000_000
"""Name and maximum size in bytes of a file that traces a step of each rank (ui.perfetto.dev)."""


@dataclass(frozen=True)
class Cell:
    """One run: a configuration (recipe, strategy, GPUs, batch size per GPU), seed and repeat."""

    recipe: str
    strategy: str
    """If `gpus` is 1, any name becomes `SINGLE`. If `gpus` is above 1, `SINGLE` becomes `ddp`."""
    gpus: int
    """Number of GPUs; on a CPU, number of processes."""
    batch_size: int
    """Samples per GPU and step."""
    seed: int
    """Seed of initial weights, order of images, and augmentation."""
    repeat: int = 0
    """Number of the repeat, from 0. Repeats have equal options and seeds, but new processes."""

    def __post_init__(self) -> None:
        if (self.gpus == 1) != (self.strategy == SINGLE):
            object.__setattr__(self, "strategy", SINGLE if self.gpus == 1 else "ddp")

    @property
    def global_batch_size(self) -> int:
        """Return the number of samples per update, summed over GPUs."""
        return self.gpus * self.batch_size

    def record_path(self, runs: Path) -> Path:
        """Return the path of this run's record below the folder `runs`."""
        folder = RUN_PATTERN.format(**asdict(self) | {"repeat": repeat_folder(self.repeat)})
        return runs / folder / "run.json"

    def trace_path(self, runs: Path) -> Path:
        """Return the path of the trace of one step, in the folder of this run's record."""
        return self.record_path(runs).with_name(TRACE)

    def log_path(self, logs: Path) -> Path:
        """Return the path of this run's log below the folder `logs`."""
        return self.record_path(logs / "train_run").parent.with_suffix(".log")

    def __str__(self) -> str:
        several = f"/{self.strategy}, {self.gpus} GPUs"
        named = f"{self.recipe}{several if self.gpus > 1 else ', 1 GPU'}"
        repeat = f", repeat {self.repeat}" if self.repeat else ""
        return f"{named}, batch {self.batch_size} per GPU, seed {self.seed}{repeat}"


def repeat_folder(repeat: int) -> str:
    """Return the last folder of a run's path: "" for repeat 0, `/repeat~1` for repeat 1."""
    return f"/repeat~{repeat}" if repeat else ""


def of(config: Mapping[str, Any]) -> list[Cell]:
    """Return a `Cell` for each run of the grid in `config`; [] if key `parts` lacks `scaling`.

    A recipe has a run for each combination of its strategies, numbers of GPUs, batch sizes, seeds
    and repeats. If `strong_scaling` is true, each recipe also has runs of the configuration that
    `strong_pair` adds, unless the recipe is a command with a fixed batch size.
    """
    keys, cells = config["grid"], []
    for name in keys["recipes"] if "scaling" in config["parts"] else ():
        recipe = config["recipes"][name]
        strategies, gpus, batch_sizes = (
            [entry for entry in keys[key] if entry in (recipe.get(key) or keys[key])]
            for key in LIMITS
        )
        sizes = [*product(gpus, batch_sizes)]
        if keys.get("strong_scaling") and "batch_size}" in recipe.get("command", "{batch_size}"):
            sizes += strong_pair(gpus, batch_sizes)
        cells += [
            Cell(name, strategy, count, batch_size, seed, repeat)
            for strategy in (["own"] if "command" in recipe else strategies)
            for count, batch_size in sizes
            for seed, repeat in product(keys["seeds"], range(keys.get("repeats", 1)))
        ]
    return list(dict.fromkeys(cells))


def used_gpus(config: Mapping[str, Any]) -> list[int]:
    """Return the values in `grid.gpus` that some part of the study uses; all if none is used."""
    gpus, on = config["grid"]["gpus"], config["parts"]
    used = [cell.gpus for cell in of(config)]
    used += config["time_to_accuracy"]["gpus"] if "time_to_accuracy" in on else []
    used += [max(gpus)] if "proofs" in on else []
    return [count for count in gpus if count in used] or gpus


def strong_pair(gpus: Collection[int], batch_sizes: Collection[int]) -> list[tuple[int, int]]:
    """Return a list of (GPUs, batch size per GPU) that a grid lacks to show strong scaling.

    Strong scaling compares one GPU with several at the same global batch. The added configuration
    has the most GPUs. Its global batch is the element of `batch_sizes` nearest to 128 that is
    divisible by the number of GPUs. The list is empty if the grid has a pair or cannot have one.
    """
    several, most = [count for count in gpus if count > 1], max(gpus, default=1)
    there = {count * size for count, size in product(several, batch_sizes)}
    whole = [size for size in batch_sizes if size % most == 0]
    if 1 not in gpus or not several or not there.isdisjoint(batch_sizes) or not whole:
        return []
    ratios = {max(size / REFERENCE_BATCH, REFERENCE_BATCH / size): size for size in whole}
    return [(most, ratios[min(ratios)] // most)]
