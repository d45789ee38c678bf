"""Tables and pages of a study's configurations."""

import base64
import gzip
import mimetypes
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from scaling.claims.claim import label, measured, nearest
from scaling.core import files
from scaling.core import numbers as fmt
from scaling.core.grid import CELL_KEYS, TRACE, Cell
from scaling.report.table import cell_id, named
from scaling.tables import accuracy
from scaling.tables.accuracy import AS_WELL
from scaling.tables.epoch_parts import exchange
from scaling.tables.schema import StudyTables, rows_of
from scaling.tables.work import IMPORTS_SECONDS

LARGE_BYTES = 4_000
"""A file of more bytes is compressed inside the page."""
OF_TRAININGS = (
    "epochs reached test_accuracy training_seconds run_seconds run_cold_seconds joules speedup"
)
FACTS = (
    "epoch_seconds training_seconds loading_share rank_step_seconds speedup efficiency"
    " test_accuracy peak_memory_bytes slurm_job_id slurm_gpus message note"
)


def of_study(tables: StudyTables) -> pd.DataFrame:
    """Return a row for each configuration, with columns of all tables.

    `other_seconds` is the start-up time of runs that compiled no code or, if there are none, of
    runs that did. `unsettled` says whether epoch times still changed at the end of the runs.
    """
    found = tables.timing
    parts = [tables.utilization, tables.speedup, tables.costs, tables.provenance]
    sent = exchange(tables.communication)[[*CELL_KEYS, "delay_seconds", "exchange_share"]]
    for part in [accuracy.compare_batches(tables), *parts, sent]:
        new = part.columns.difference(found.columns)
        found = found.merge(part.drop_duplicates(CELL_KEYS)[[*CELL_KEYS, *new]], "left", CELL_KEYS)
    started = found["startup_seconds"].fillna(found["startup_cold_seconds"])
    return found.assign(
        gpu_seconds=found["gpus"] * found["epoch_seconds"],
        other_seconds=started.where(found["status"] == "ok"),
        unsettled=(found["count"] > 1) & found["drift"].notna() & ~found["settled"].eq(True),
    )


def fastest(cells: pd.DataFrame) -> Any | None:
    """Return the row with the shortest epoch time, or None if no row has a time.

    If all timed rows are of commands that print samples, return the row with the most samples per
    second. A whole run timed as one epoch counts only from `IMPORTS_SECONDS` on.
    """
    timed = measured(cells, "epoch_seconds")
    timed = timed[~timed["whole"].eq(True) | (timed["epoch_seconds"] >= IMPORTS_SECONDS)]
    rates = timed["samples"] / timed["epoch_seconds"]
    printed = (timed["unit"].fillna("") != "").all() and rates.notna().all()
    order = (-rates if printed else timed["epoch_seconds"]).sort_values(kind="stable")
    return next(rows_of(timed.loc[order.index]), None)


def learned(cells: pd.DataFrame) -> pd.Series:
    """Return a Boolean for each row: whether its test accuracy is good enough to recommend it.

    The row must be its recipe's `reference`, or as accurate as this reference (`as_well`). The
    accuracy of the reference must be at most `AS_WELL` below the best reference of all recipes.
    """
    reference = cells["reference"].eq(True) & cells["test_accuracy"].notna()
    reached = cells["test_accuracy"].where(reference)
    of_recipe = reached.groupby(cells["recipe"]).transform("max")
    return (reference | cells["as_well"].eq(True)) & (of_recipe >= reached.max() - AS_WELL)


def by_status(cells: pd.DataFrame) -> str:
    """Return how many configurations have each status, as text: `3 ok, 2 out of memory`."""
    counts = cells["status"].value_counts(sort=False)
    return ", ".join(f"{count} {fmt.words(status)}" for status, count in counts.items())


def pages(study: StudyTables, cells: pd.DataFrame, runs: Path, logs: Path) -> list[dict[str, Any]]:
    """Return the contents of a page for each configuration and each time-to-accuracy training.

    A page has records of the first repeat only. One page per recipe, strategy and number of GPUs
    has the trace of a step: the page of the traced batch size nearest to 128.
    """
    numbers = study.provenance[["seed", "repeat"]].drop_duplicates().astype(int).to_numpy()
    made = [_page(row, FACTS, numbers, runs, logs / "train_run") for row in rows_of(cells)]
    warnings = [(cell_id(row), row.message) for row in rows_of(study.audit)]
    traced = cells.loc[[any(name == TRACE for name, _ in page["files"]) for page in made]]
    kept = {cell_id(row) for row in rows_of(nearest(traced).drop_duplicates(CELL_KEYS[:3]))}
    for page in made:
        if page["id"] not in kept:
            page["files"] = [file for file in page["files"] if file[0] != TRACE]
        page["warnings"] = [message for place, message in warnings if place == page["id"]]
    folders = runs.with_name("to_accuracy"), logs / "train_to_accuracy"
    for row in rows_of(study.trained_to_accuracy.assign(status="ok")):
        seeds = [(seed,) for seed in range(int(row.seeds))]
        name = f"{label(row)}: training to {fmt.percent(row.target_accuracy)}"
        made.append(_page(row, OF_TRAININGS, seeds, *folders) | {"name": name})
    return made


def _page(row: Any, facts: str, numbers: Iterable[Any], runs: Path, logs: Path) -> dict[str, Any]:
    """Return a configuration's page with quantities `facts`. `numbers`: (seed, repeat) of runs."""
    own = [Cell(*(getattr(row, key) for key in CELL_KEYS), *run) for run in numbers]
    ended = [cell.record_path(logs).parent.with_suffix(".log") for cell in own]
    there = [cell for cell in own if cell.record_path(runs).exists()]
    first = [cell for cell in there if cell.repeat == there[0].repeat]
    paths = [cell.record_path(runs) for cell in first]
    paths += [cell.trace_path(runs) for cell in first[:1]]
    known = [
        one for one in named(facts) if pd.notna(value := getattr(row, one.name)) and value != ""
    ]
    return {
        "id": cell_id(row),
        "name": label(row),
        "status": fmt.words(row.status),
        "facts": [(one.head, one.cell(row)) for one in known],
        "files": [download(path) for path in paths if path.exists()],
        "log": "".join(files.log_end(path) for path in ended if path.exists()),
        "record": (there or own)[0].record_path(Path("results", runs.name)).as_posix(),
        "warnings": [],
    }


def download(path: Path) -> tuple[str, str]:
    """Return a file's name and its content as a data URL. Large content is compressed."""
    content, name = path.read_bytes(), path.name
    if path.suffix != ".gz" and len(content) > LARGE_BYTES:
        content, name = gzip.compress(content, mtime=0), f"{name}.gz"
    kind = "application/gzip" if name.endswith(".gz") else mimetypes.guess_type(name)[0]
    return name, f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"
