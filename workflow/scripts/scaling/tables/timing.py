"""Make tables of the grid's runs: seconds of their epochs, and where and how they ran."""

import math
from collections.abc import Container, Iterable, Iterator
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from scaling.core.grid import CELL_KEYS, Cell
from scaling.core.records.kind import Role
from scaling.core.records.run import RUN, RunRecord
from scaling.registry.entries import MODELS
from scaling.tables import schema
from scaling.tables.noise import ENDS, Noise

Run = tuple[Cell, RunRecord | None]
"""A run of the grid with its record, or None if there is no record."""
WORST_FIRST = ["missing", "timeout", "oom", "oom_host", "infeasible", "diverged", "ok"]
TIMES = ["epoch_seconds", "training_seconds"]
TIMED = ("ok", "diverged")
"""Statuses of runs whose times count. A loss of NaN does not change the time."""
_OVER_RANKS = dict.fromkeys(("seconds", "loader_seconds", "power_capped_seconds"), "max")
_OVER_RANKS |= {"iterations": "first", "samples": "sum"}


def read_runs(cells: list[Cell], folder: Path) -> list[Run]:
    """Return all runs, with their records in `folder`."""
    paths = ((cell, cell.record_path(folder)) for cell in cells)
    return [(cell, RUN.read(path) if path.exists() else None) for cell, path in paths]


def by_cell(runs: list[Run]) -> Iterator[tuple[dict[str, Any], list[RunRecord], int]]:
    """Yield the values of `CELL_KEYS`, the records and the number of runs of each configuration."""
    for cell, same in groupby(runs, lambda run: {key: getattr(run[0], key) for key in CELL_KEYS}):
        found = [record for _, record in same]
        yield cell, [record for record in found if record], len(found)


def epochs(records: Iterable[RunRecord], *roles: Role) -> pd.DataFrame:
    """Return the epochs with one of the `roles`, indexed by run (position in `records`) and epoch.

    Seconds are those of the slowest rank. Samples are summed over ranks.
    """
    runs = enumerate(records)
    rows = [
        row | {"run": run} for run, one in runs for row in one["epochs"] if row["role"] in roles
    ]
    table = pd.DataFrame(rows, columns=["run", "epoch", *_OVER_RANKS])
    types = {"power_capped_seconds": float, "loader_seconds": float}
    return table.astype(types).groupby(["run", "epoch"]).agg(_OVER_RANKS)


def compiled(record: RunRecord) -> bool | None:
    """Return whether a run compiled code that was not in the cache; None if it is not recorded."""
    graphs = record["training"].get("compiled_graphs")
    return bool(graphs["made"]) if graphs else None


def break_even(one: pd.DataFrame, many: pd.DataFrame) -> dict[str, float]:
    """Return the number of epochs from which on `many` ends before `one`: range over machines.

    Both are tables of runs. A run takes `other_seconds`, such as start-up, and `epoch_seconds` for
    each epoch. Medians are compared for each machine and measuring code: of runs that compiled no
    code or, if there are none on both sides, of runs that compiled some. The range is NaN without
    such runs, or if `many` never ends first on one of the machines.
    """
    keys, names = ["compiled", "machine", "code"], ["other_seconds", "epoch_seconds"]
    first, other = (one.dropna(subset=keys).groupby(keys)[names].median() for one in (one, many))
    pairs = (other - first).dropna().reset_index()
    pairs = pairs[pairs["compiled"] == pairs["compiled"].min()]
    lengths = np.ceil(-pairs["other_seconds"] / pairs["epoch_seconds"]).clip(1)
    lengths = lengths.where(pairs["epoch_seconds"] < 0)
    return {f"break_even_{end}": getattr(lengths, end)(skipna=False) for end in ("min", "max")}


def joules(record: RunRecord, *roles: Role) -> float:
    """Return the energy of a run's epochs with one of the `roles`, in J; NaN if it is not known."""
    read = [one["joules"] for one in record.get("energy", ()) if one["role"] in roles]
    epochs = [row["gpu_readings"] for row in record["epochs"] if row["role"] in roles]
    rows = read or [[gpu["energy_joules"] for gpu in gpus] for gpus in epochs]
    counted = np.array([one for row in rows for one in row or [None]], float)
    return counted.sum() if len(counted) else math.nan


def in_memory(record: RunRecord, name: str) -> NDArray[np.float64] | None:
    """Return seconds of an epoch on batches in memory, from each block of steps: [rank, block].

    `name` is `seconds` (steps with gradient exchange) or `seconds_without_exchange`. None if the
    run has no such blocks.
    """
    ranks: list[Any] = [*record["in_memory"]]
    whole = epochs([record], "measured")
    if not ranks or whole.empty or not all(rank["iterations"] and rank[name] for rank in ranks):
        return None
    if all(rank["samples"] for rank in ranks):
        scale = whole["samples"].iloc[0] / sum(rank["samples"] for rank in ranks)
    else:
        scale = whole["iterations"].iloc[0] / ranks[0]["iterations"]
    return np.array([rank[name] for rank in ranks]) * scale


def of_times(ran: pd.DataFrame, name: str) -> Noise:
    """Return the model of noise for the column `name` of the table provenance (`ran`).

    Training times have a fit for each batch size. At small sizes they depend on the host, whose
    speed differs between machines; at large sizes they depend on the GPU.
    """
    return Noise(ran, name, apart=name == "training_seconds")


def timing(runs: list[Run]) -> pd.DataFrame:
    """Return each configuration's status, counts, and times as on an average machine (noise.py)."""
    ran = provenance(runs)
    rows = (cell | _counted(records, number) for cell, records, number in by_cell(runs))
    table = schema.arrange("timing", rows)
    for name in reversed(TIMES):
        times = of_times(ran, name).times(table)
        table[schema.interval(name)] = times[["value", *ENDS]]
    table[["runs", "machines"]] = times[["runs", "machines"]]
    return table.assign(loader_seconds=table["loader_seconds"] * table[TIMES[0]])


def _counted(records: list[RunRecord], runs: int) -> dict[str, Any]:
    """Return status, message, and numbers of epochs, steps and samples of one configuration.

    `runs` is the number of runs, with or without record. The status is the worst of all records.
    `loader_seconds` is data wait / epoch time; `timing` multiplies this fraction by the epoch time.
    """
    messages = [record["message"] for record in records if record["message"]]
    if len(records) < runs:
        messages.append(f"{len(records)} of {runs} runs")
    statuses = [record["status"] for record in records] or ["missing"]
    row = {"status": min(statuses, key=WORST_FIRST.index)}
    row["message"] = "; ".join(dict.fromkeys(messages))
    timed = epochs((record for record in records if record["status"] in TIMED), "measured")
    if timed.empty:
        return row
    of_runs = timed[["loader_seconds", "seconds"]].groupby(level=0).median()
    waits = (of_runs["loader_seconds"] / of_runs["seconds"]).median()
    of_epoch = timed[["iterations", "samples"]].iloc[0]
    return row | {"loader_seconds": waits, "count": len(timed), **of_epoch}


def provenance(runs: list[Run]) -> pd.DataFrame:
    """Return the model, training, environment, median times and joules per image of each run."""
    rows, known = [], schema.TABLES["provenance"].types
    for cell, record in runs:
        row: dict[str, Any] = {**asdict(cell), "status": "missing"}
        if record:
            row |= {"status": record["status"]} | about(record, known)
            row |= _medians(record) if record["status"] in TIMED else {}
        rows.append(row)
    return schema.arrange("provenance", rows)


def about(record: RunRecord, known: Container[str]) -> dict[str, Any]:
    """Return texts on a run's model, training and options, and on `known` environment keys."""
    training, model = record["training"], {"model": _model(record["model"])}
    texts = {"engine": training["engine"], **_in_words(training)}
    return model | texts | origin(record["environment"], known)


def origin(environment: dict[str, Any], known: Container[str]) -> dict[str, Any]:
    """Return the values of `environment` whose keys are in `known`, as texts.

    `code` is the digest of the measuring code, or the commit if an old record has no digest.
    """
    variables = environment.get("variables") or {}
    values = environment | {"variables": [f"{name}={own}" for name, own in variables.items()]}
    packages = environment.get("code_packages") or {}
    values["code_packages"] = [f"{name} {code}" for name, code in packages.items()]
    values["code"] = values.get("code_digest") or values.get("commit") or ""
    return {"machine": ""} | {
        key: "; ".join(dict.fromkeys(value)) if isinstance(value, list) else str(value)
        for key, value in values.items()
        if key in known and value is not None
    }


def _medians(record: RunRecord) -> dict[str, float]:
    """Return a run's median epoch time and training time in seconds, and joules per image."""
    measured, blocks = epochs([record], "measured"), in_memory(record, "seconds")
    images = measured["samples"].sum() or math.nan
    return {
        "epoch_seconds": measured["seconds"].median(),
        "training_seconds": math.nan if blocks is None else np.median(blocks.max(axis=0)),
        "joules_per_image": joules(record, "measured") / images,
    }


def _model(model: dict[str, Any]) -> str:
    width = {"width": model["width"]} if model["name"] in MODELS.names() else {}
    options = [f"{name} {value}" for name, value in (width | model["options"]).items()]
    counted = [f"{model['parameters']:,} parameters"] if model["parameters"] else []
    return ", ".join([model["name"], *options, *counted])


def _in_words(training: dict[str, Any]) -> dict[str, Any]:
    """Return texts on a training and its options: those applied or, if unknown, requested."""
    if training["engine"] == "command":
        files = [f"{name} {checksum[:12]}" for name, checksum in training["recipe_options"].items()]
        return {"training": training["command"], "recipe_options": ", ".join(files)}
    flip = "random" if training["horizontal_flip"] else "no"
    options = training["recipe_applied"] or training["recipe_options"]
    options = options | {"notes": "; ".join(options.get("notes", []))}
    text = (
        f"SGD, learning rate {training['learning_rate']:g}, momentum {training['momentum']:g}, "
        f"weight decay {training['weight_decay']:g}; random crop with {training['crop_padding']} "
        f"pixels of padding, {flip} horizontal flip. Epochs: {training['warmup_epochs']} to warm "
        f"up, at least {training['measured_epochs']} measured"
    )
    if (parts := training["micro_batches"]) > 1:
        text += f"; each update of {parts} micro-batches"
    shown = ", ".join(f"{name} {one}" for name, one in options.items() if one != "")
    return {"training": text, "recipe_options": shown}
