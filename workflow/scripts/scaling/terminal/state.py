"""Implements `make status`, which prints the state of a study's runs and the time left."""

import math
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import psutil

from scaling.config import stored
from scaling.core import command_line, files, grid
from scaling.core.errors import UserError
from scaling.core.records.run import RUN

RESULTS, LOGS = stored.RESULTS, Path("logs")
NOT_OF_OTHERS = ("train_run", "replay", "partial")
"""Folders of logs that belong to runs of the grid, or to no measurement."""


def time_left(since: float, done: int, due: int) -> timedelta:
    """Return how long `due` measurements will take, if each takes as long as one did so far.

    `done` measurements have ended since the time `since`, in seconds since 1970.
    """
    return timedelta(seconds=round(due * (time.time() - since) / done))


def study_status(config: dict[str, Any], since: float) -> str:
    """Return the state of the study in results/ as text.

    `since` is when its Snakemake started, in seconds since 1970; infinity if none runs.
    """
    cells = {cell.record_path(Path("runs")): cell for cell in grid.of(config)}
    wanted = stored.records(config)
    others = [place for kind, places in wanted.items() if kind != "runs" for place in places]
    there = {place for place in [*cells, *others] if (RESULTS / place).exists()}
    rows, logs = [], {}
    for place, cell in cells.items():
        log, strategy = cell.log_path(LOGS), cell.strategy if cell.gpus > 1 else ""
        state, logs[log] = _status(RESULTS / place) if place in there else _unfinished(log, since)
        rows.append([cell.recipe, strategy, cell.gpus, cell.batch_size, state])
    runs = pd.DataFrame(rows, columns=["recipe", "strategy", "GPUs", "batch_size", "state"])
    if not there.issuperset(others):
        paths = [log for log in sorted(LOGS.rglob("*.log")) if log.parts[1] not in NOT_OF_OTHERS]
        logs |= {log: _unfinished(log, since)[1] for log in paths}
    counted = f": {_counted(runs['state'], 0)}" if cells else ""
    first, end = {*(cells or others)}, ""
    made = sum((RESULTS / place).stat().st_mtime >= since for place in first & there)
    if made and (due := len(first - there)):
        end = f"; until about {datetime.now() + time_left(since, made, due):%a %H:%M}"
    runs_now = "" if since < math.inf else "not "
    head = f"{config['study']} ({RESULTS / stored.CONFIG}), {runs_now}running, "
    table = runs.pivot_table(
        "state", ["recipe", "strategy", "GPUs"], "batch_size", _counted, sort=False, fill_value="-"
    )
    lines = [
        f"{head}{len(there & first)} of {len(first)}{counted}{end}\n",
        table.reset_index().rename_axis(columns=None).to_string(index=False) + "\n",
        f"Other measurements: {len(there & {*others})} of {len(others)} done",
        *(f"{log}\n  {error}" for log, error in logs.items() if error),
    ]
    return "\n".join(lines)


def _counted(states: pd.Series, alone: int = 1) -> str:
    """Return numbers of runs by state, `2 done, 1 waiting`; of `alone` or fewer only the state."""
    counts = states.value_counts(sort=False).items()
    return ", ".join(str(state) if len(states) <= alone else f"{n} {state}" for state, n in counts)


def _status(record: Path) -> tuple[str, str]:
    """Return the state of a run from its record, and an error if the record is invalid."""
    try:
        return RUN.read(record)["status"].replace("ok", "done"), ""
    except UserError as error:
        return "failed", str(error)


def _unfinished(log: Path, since: float) -> tuple[str, str]:
    """Return the state of a run without a record from its log, and the log's last error."""
    lines = files.log_end(log).splitlines() if log.exists() else []
    if error := next((line for line in reversed(lines) if "rror: " in line), ""):
        return "failed", error
    waits = lines and lines[-1].startswith(("waits for", "Slurm has not begun"))
    begun = log.exists() and log.stat().st_mtime >= since and not waits
    return "running" if begun else "waiting", ""


@command_line.script
def main() -> None:
    """Print the state of the study in results/; its first job must have begun."""
    study, here = stored.read(RESULTS), str(Path.cwd())
    processes = [one.info for one in psutil.process_iter(["cmdline", "create_time", "cwd"])]
    started = [
        process["create_time"]
        for process in processes
        if process["cwd"] == here and "snakemake" in " ".join(process["cmdline"][:3])
    ]
    print(study_status(study, min(started, default=math.inf)).encode("ascii", "replace").decode())
