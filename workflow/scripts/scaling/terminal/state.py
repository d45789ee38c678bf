"""The state of a study, from its files and from what runs: of each run of the grid, and in all."""

import json
import time
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from scaling.config import stored
from scaling.core import environment, files, grid
from scaling.core.errors import UserError
from scaling.core.records.run import RUN
from scaling.terminal import estimate

RESULTS, LOGS = Path("results"), Path("logs")


class State(NamedTuple):
    """What `make status` prints of a study, and its page shows while it runs."""

    head: str
    grid: pd.DataFrame
    lines: list[str]
    """What runs, how many other measurements are done, and what has failed with its log."""
    measured: bool
    """Whether more than the machine's limits has been measured."""


def of(
    config: dict[str, Any], begun: Mapping[Path, float], known: estimate.Known, runs_now: bool
) -> State:
    """Return the state of the study in results/.

    A run's state is its record's status (`done` for ok); without a record it is `running` if it was
    `begun` (times by the records' paths below results/), or ranks of another machine have reported
    within the time limit; `failed` if its log has an error; else `waiting`.
    """
    cells = {cell.record_path(Path("runs")): cell for cell in grid.of(config)}
    begun, limit = dict(begun), config["machine"]["time_limit_seconds"]
    rows, failed = [], []
    for place, cell in cells.items():
        state, error = "running", ""
        if (RESULTS / place).exists():
            begun.pop(place, None)
            state, error = _status(RESULTS / place, (RESULTS / place).stat().st_mtime)
        elif since := begun.get(place) or _elsewhere((RESULTS / place).parent, limit):
            begun[place] = since
        else:
            error = _error(cell.log_path(LOGS))
            state = "failed" if error else "waiting"
        rows.append({**vars(cell), "state": state})
        failed += [f"{cell.log_path(LOGS)}\n  {error}"] if error else []
    runs = pd.DataFrame(rows).rename(columns={"gpus": "GPUs"})
    asked = stored.records(config)
    kinds = [kind for kind in asked if kind not in ("runs", *stored.BACKENDS)]
    others = [place for kind in kinds for place in asked[kind]]
    _, copying = grid.measured_on_one(config)
    copied = {place for place, run in cells.items() if run.gpus == 1 and run.strategy in copying}
    there = {place for place in [*cells, *others] if (RESULTS / place).exists()}
    wanted = [place for place in [*cells, *others] if place not in there | copied]
    now, done = time.time(), [*there - copied]
    left = estimate.left(done, wanted, known) - sum(now - since for since in {*begun.values()})
    head = f"{'running' if runs_now else 'not running'}, {len(there & {*cells})} of {len(cells)}"
    end = f"; until about {_clock(now + max(left, 0))}" if runs_now and wanted else ""
    table = runs.pivot_table(
        "state", ["recipe", "strategy", "GPUs"], "batch_size", _counted, sort=False
    )
    return State(
        f"{head}: {_counted(runs['state'], 0)}{end}",
        table.reset_index().rename_axis(columns=None),
        [
            *_running(begun, cells, known),
            f"Other measurements: {len(there & {*others})} of {len(others)} done",
            *failed,
        ],
        bool(there - {*asked["limits"]}),
    )


def _running(
    begun: dict[Path, float], cells: dict[Path, grid.Cell], known: estimate.Known
) -> list[str]:
    """Return a line for each job that runs: since when, and until when by the estimates."""
    said = []
    for since, group in groupby(sorted(begun, key=lambda place: begun[place]), begun.__getitem__):
        places = list(group)
        end = since + sum(estimate.seconds(place, known)[0] for place in places)
        name = cells.get(places[0], places[0].with_suffix(""))
        said.append(f"running: {name}, since {_clock(since)}, until about {_clock(end)}")
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


def _error(log: Path) -> str:
    """Return the last line of a log's end with an error, or ""."""
    lines = files.log_end(log).splitlines() if log.exists() else []
    return next((line for line in reversed(lines) if "rror: " in line), "")


def _elsewhere(folder: Path, limit: float) -> float | None:
    """Return since when ranks of another machine run, which report every `limit` seconds."""
    for path in folder.glob(".run.ranks.*/rank*.jsonl"):
        first = path.read_text(encoding="utf-8").partition("\n")[0]
        young = time.time() - path.stat().st_mtime < limit
        if young and first and json.loads(first)["host"] != environment.host():
            return path.parent.stat().st_mtime
    return None
