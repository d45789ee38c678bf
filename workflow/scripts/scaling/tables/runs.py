"""Read the grid's runs with their records; tables with one row per cell, and provenance."""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd

from scaling.core.errors import UserError
from scaling.core.grid import CELL_KEYS, Cell
from scaling.core.records.run import RUN, RunRecord
from scaling.registry.model import MODELS
from scaling.tables import schema

Run = tuple[Cell, RunRecord | None]
"""A run of the grid and its record, None if it is missing."""
Seeds = list[RunRecord | None]
"""The records of one cell's runs, one for each seed and repeat."""
WORST_FIRST = ["missing", "timeout", "oom", "oom_host", "infeasible", "diverged", "ok"]


def read_runs(cells: list[Cell], folder: Path, partial: bool) -> list[Run]:
    """Return every run of `cells` with its record below `folder`.

    With `partial` a run may have no record (None); otherwise that is a UserError, as is always a
    damaged record or one of another run.
    """
    paths = [cell.record_path(folder) for cell in cells]
    records = [RUN.read(path) if path.exists() else None for path in paths]
    found = list(zip(cells, records, strict=True))
    absent = [cell for cell, record in found if record is None]
    if absent and not partial:
        raise UserError(
            f"{len(absent)} of {len(found)} runs have no record, the first is {absent[0]}: "
            f"see {absent[0].log_path(Path('logs'))}, run them again, or pass --partial"
        )
    return found


def paired(runs: list[Run]) -> list[Run]:
    """Return the runs whose times can be compared over numbers of GPUs.

    These are the seeds with a record on each number of GPUs that has one, by recipe, strategy and
    batch size: machines differ by more than GPUs gain, and seeds may come from several. All runs
    stay where there is no such seed.
    """
    recorded: dict[tuple[str, str, int], dict[int, set[int]]] = {}
    for cell, record in runs:
        line = recorded.setdefault((cell.recipe, cell.strategy, cell.batch_size), {})
        if record:
            line.setdefault(cell.gpus, set()).add(cell.seed)
    found = []
    for cell, record in runs:
        line = recorded[cell.recipe, cell.strategy, cell.batch_size]
        common = set.intersection(*line.values()) if line else set()
        if cell.gpus not in line or not common or cell.seed in common:
            found.append((cell, record))
    return found


def by_cell(runs: list[Run]) -> list[tuple[dict[str, Any], Seeds]]:
    """Return each cell's values of `CELL_KEYS`, and the records of its runs."""
    cells: dict[tuple[Any, ...], Seeds] = {}
    for cell, record in runs:
        cells.setdefault(tuple(getattr(cell, key) for key in CELL_KEYS), []).append(record)
    return [(dict(zip(CELL_KEYS, cell, strict=True)), seeds) for cell, seeds in cells.items()]


def table_of_cells(
    name: str, runs: list[Run], row: Callable[[Seeds], dict[str, Any]]
) -> pd.DataFrame:
    """Return the table called `name` with one row per cell, which `row` makes from its records."""
    return schema.arrange(name, [cell | row(seeds) for cell, seeds in by_cell(runs)])


def worst_status(seeds: Seeds) -> str:
    """Return the worst status of the runs (`WORST_FIRST`); `missing` without records."""
    statuses = [record["status"] if record else "missing" for record in seeds]
    return min(statuses, key=WORST_FIRST.index)


def provenance(runs: list[Run]) -> pd.DataFrame:
    """Return each run's environment, one row per run, with empty fields for missing values.

    Values of several processes are listed without duplicates. `recipe_options` are the applied
    ones, or the requested ones of a run that ended before. `measured_as` is the strategy whose
    single-GPU run this one shares.
    """
    rows, known = [], schema.columns("provenance")
    for cell, record in runs:
        row: dict[str, Any] = {**asdict(cell), "status": "missing"}
        if record:
            row |= {key: record.get(key) for key in ("status", "measured_as")}
            row |= {"model": _model(record["model"]), **in_words(record["training"])}
            row |= {
                key: "; ".join(dict.fromkeys(value)) if isinstance(value, list) else str(value)
                for key, value in record["environment"].items()
                if key in known and value is not None
            }
        rows.append(row)
    return schema.arrange("provenance", rows)


def _model(model: dict[str, Any]) -> str:
    parts = [model["name"]]
    if model["name"] in MODELS.names():
        parts.append(f"width {model['width']}")
    parts += [f"{name} {value}" for name, value in model["options"].items()]
    if model["parameters"]:
        parts.append(f"{model['parameters']:,} parameters")
    return ", ".join(parts)


def in_words(training: dict[str, Any]) -> dict[str, Any]:
    """Return the columns of provenance.csv on how a run trained."""
    if training["engine"] == "command":
        files = [f"{name} {checksum[:12]}" for name, checksum in training["recipe_options"].items()]
        return {
            "training": training["command"],
            "recipe_options": ", ".join(files),
            "cpu_threads": str(training["cpu_threads"]),
        }
    flip = "random" if training["horizontal_flip"] else "no"
    options = training["recipe_applied"] or training["recipe_options"]
    notes = {"notes": "; ".join(options.get("notes", []))}
    said = {name: value for name, value in {**options, **notes}.items() if value != ""}
    parts, seconds = training["micro_batches"], training["measured_seconds"]
    return {
        "training": (
            f"SGD, learning rate {training['learning_rate']:g}, "
            f"momentum {training['momentum']:g}, weight decay {training['weight_decay']:g}; "
            f"random crop with {training['crop_padding']} pixels of padding, "
            f"{flip} horizontal flip. Epochs: {training['warmup_epochs']} to warm up, "
            f"{training['measured_epochs']} measured"
            + (f", for {seconds:g} s at least, until they settle" if seconds else "")
            + (f"; each update of {parts} micro-batches" if parts > 1 else "")
        ),
        "recipe_options": ", ".join(f"{name} {value}" for name, value in said.items()),
        "compiled_batch_sizes": "; ".join(map(str, training["compiled_batch_sizes"] or [])),
        "cpu_threads": str(training["cpu_threads"]),
    }
