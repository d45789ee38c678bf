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
    own = {"cpu_threads": str(training["cpu_threads"])}
    if training["engine"] == "command":
        files = [f"{name} {checksum[:12]}" for name, checksum in training["recipe_options"].items()]
        return own | {"training": training["command"], "recipe_options": ", ".join(files)}
    flip = "random" if training["horizontal_flip"] else "no"
    options = training["recipe_applied"] or training["recipe_options"]
    options = options | {"notes": "; ".join(options.get("notes", []))}
    parts = training["micro_batches"]
    said = (
        f"SGD, learning rate {training['learning_rate']:g}, momentum {training['momentum']:g}, "
        f"weight decay {training['weight_decay']:g}; random crop with {training['crop_padding']} "
        f"pixels of padding, {flip} horizontal flip. Epochs: {training['warmup_epochs']} to warm "
        f"up, {training['measured_epochs']} measured"
    )
    return own | {
        "training": said + (f"; each update of {parts} micro-batches" if parts > 1 else ""),
        "recipe_options": ", ".join(f"{name} {own}" for name, own in options.items() if own != ""),
        "compiled_batch_sizes": "; ".join(map(str, training["compiled_batch_sizes"] or [])),
    }
