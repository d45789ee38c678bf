"""The state of a study, from its files and from what runs: of each run of the grid, and in all."""

import json
import time
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

import pandas as pd

from scaling.config import stored
from scaling.core import environment, files, grid
from scaling.core.errors import UserError
from scaling.core.records.run import RUN
from scaling.terminal.estimate import Known

RESULTS, LOGS = Path("results"), Path("logs")
NOT_OF_OTHERS = ("train_run", "train_command", "train_single", "replay")
"""Folders of logs that are not of measurements besides the grid's."""


def of(
    config: dict[str, Any], begun: Mapping[Path, float], known: Known, runs_now: bool
) -> dict[str, Any]:
    """Return the state of the study in results/: a `head`, the `grid` as a table, and `lines`.

    A run that was `begun` (times by the records' paths below results/) is `running`, as is one
    whose ranks on another machine have reported within the time limit; another's state is its
    record's status, `done` for ok; without a record it is `failed` if its log has an error, else
    `waiting`. `measured` is whether there is more than the machine's limits.
    """
    cells = {cell.record_path(Path("runs")): cell for cell in grid.of(config)}
    begun, limit = dict(begun), config["machine"]["time_limit_seconds"]
    rows: list[dict[str, Any]] = []
    logs: dict[Path, str] = {}
    for place, cell in cells.items():
        record, log = RESULTS / place, cell.log_path(LOGS)
        if place not in begun and (since := _elsewhere(record.parent, limit)):
            begun[place] = since
        state, logs[log] = "running", ""
        if place not in begun and record.exists():
            state, logs[log] = _status(record, record.stat().st_mtime)
        elif place not in begun:
            state, logs[log] = _failed(log)
        rows.append({**vars(cell), "state": state})
    runs = pd.DataFrame(rows, columns=[*grid.RUN_KEYS, "state"]).rename(columns={"gpus": "GPUs"})
    asked = stored.records(config)
    kinds = [kind for kind in asked if kind not in ("runs", *stored.BACKENDS)]
    others = [place for kind in kinds for place in asked[kind]]
    _, *copying = grid.on_one_gpu(config)
    copied = {place for place, run in cells.items() if run.gpus == 1 and run.strategy in copying}
    there = {place for place in [*cells, *others] if (RESULTS / place).exists()}
    if not there.issuperset(others):
        found = [log for log in sorted(LOGS.rglob("*.log")) if log.parts[1] not in NOT_OF_OTHERS]
        logs |= {log: _failed(log)[1] for log in found}
    wanted = [place for place in [*cells, *others] if place not in there | copied]
    now = time.time()
    left = known.total(wanted) - sum(now - since for since in {*begun.values()})
    counted = f": {_counted(runs['state'], 0)}" if rows else ""
    first = {*(cells or others)}
    head = f"{'running' if runs_now else 'not running'}, {len(there & first)} of {len(first)}"
    end = f"; until about {_clock(now + max(left, 0))}" if runs_now and wanted else ""
    table = runs.pivot_table(
        "state", ["recipe", "strategy", "GPUs"], "batch_size", _counted, sort=False
    )
    return {
        "head": head + counted + end,
        "grid": table.reset_index().rename_axis(columns=None),
        "lines": [
            *_running(begun, cells, known),
            f"Other measurements: {len(there & {*others})} of {len(others)} done",
            *(f"{log}\n  {error}" for log, error in logs.items() if error),
        ],
        "measured": not there.issubset(asked["limits"]),
    }


def _running(begun: dict[Path, float], cells: dict[Path, grid.Cell], known: Known) -> list[str]:
    """Return a line for each job that runs: since when, and until when by the estimates."""
    said = []
    for since, group in groupby(sorted(begun, key=lambda place: begun[place]), begun.__getitem__):
        places = list(group)
        name = cells.get(places[0], places[0].with_suffix(""))
        until = _clock(since + known.total(places))
        said.append(f"running: {name}, since {_clock(since)}, until about {until}")
    return said


def _counted(states: pd.Series, alone: int = 1) -> str:
    """Return `done`, or for more than `alone` runs `2 done, 1 waiting`."""
    counts = states.value_counts(sort=False).items()
    return ", ".join(str(state) if len(states) <= alone else f"{n} {state}" for state, n in counts)


def _clock(seconds: float) -> str:
    """Return `Thu 14:03`."""
    return f"{datetime.fromtimestamp(seconds):%a %H:%M}"


@cache
def _status(record: Path, changed: float) -> tuple[str, str]:
    """Return the state by a record, read once for each time it has `changed`, and what is wrong."""
    try:
        return RUN.read(record)["status"].replace("ok", "done"), ""
    except UserError as error:
        return "failed", str(error)


def _failed(log: Path) -> tuple[str, str]:
    """Return `failed` with the last error at the end of a log, `waiting` if there is none."""
    lines = files.log_end(log).splitlines() if log.exists() else []
    error = next((line for line in reversed(lines) if "rror: " in line), "")
    return "failed" if error else "waiting", error


def _elsewhere(folder: Path, limit: float) -> float | None:
    """Return since when ranks of another machine run, which report every `limit` seconds."""
    for path in folder.glob(".run.ranks.*/rank*.jsonl"):
        first = path.read_text(encoding="utf-8").partition("\n")[0]
        young = time.time() - path.stat().st_mtime < limit
        if young and first and json.loads(first)["host"] != environment.host():
            return path.parent.stat().st_mtime
    return None
