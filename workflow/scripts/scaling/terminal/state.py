"""Implements `make status`, which prints the state of a study's runs and the time left."""

import math
import time
from collections import defaultdict
from datetime import datetime
from itertools import chain
from pathlib import Path
from statistics import fmean
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


class DurationEstimates:
    """Estimates durations (seconds) of measurements from records in the folder `records`."""

    def __init__(self, records: Path) -> None:
        self._records = records
        self._took = defaultdict[str, list[float]](list)
        for kind in stored.RECORDS:
            for path in records.glob(f"{kind}/**/*.json"):
                self.add(path.relative_to(records))

    def add(self, place: Path) -> None:
        """Add the duration of the record at `place`, a path relative to the folder of records."""
        try:
            found = files.read_json(self._records / place)
            began, ended = (found["environment"][key] for key in ("started", "ended"))
            passed = datetime.fromisoformat(ended) - datetime.fromisoformat(began)
            took = float(found.get("run_seconds") or passed.total_seconds())
        except (UserError, AttributeError, LookupError, TypeError, ValueError):
            return  # Some records have no duration.
        if took > 0:
            for key in _similarity_keys(place):
                self._took[key].append(took)

    def seconds(self, place: Path) -> float | None:
        """Return the mean seconds of the most similar measurements; None if there are none."""
        key = next((key for key in _similarity_keys(place) if key in self._took), None)
        return fmean(self._took[key]) if key else None

    def total(self, places: list[Path]) -> float:
        """Return estimated seconds of all measurements; one without an estimate has the mean."""
        known = [took for place in places if (took := self.seconds(place))]
        mean = fmean(known or chain(*self._took.values())) if self._took else 0
        return sum(known) + mean * (len(places) - len(known))


def _similarity_keys(place: Path) -> list[str]:
    """Return four keys that similar records share: of run, configuration, recipe and kind."""
    folders = [one for one in place.parts[:-1] if not one.startswith(("seed~", "repeat~"))]
    cell, recipe = "/".join(folders), "/".join(folders[:3])
    return [place.as_posix(), cell, recipe, f"{folders[0]} {place.name}"]


def duration(value: float) -> str:
    """Return a number of seconds as text: `40 s`, `12 min`, `3.4 h`."""
    if value < 90:
        return f"{value:.0f} s"
    return f"{value / 60:.0f} min" if value < 5400 else f"{value / 3600:.1f} h"


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
    due = [place for place in [*cells, *others] if place not in there]
    counted = f": {_counted(runs['state'], 0)}" if cells else ""
    first, end = {*(cells or others)}, ""
    if (runs_now := since < math.inf) and due:
        left = DurationEstimates(RESULTS).total(due)
        end = f"; until about {datetime.fromtimestamp(time.time() + left):%a %H:%M}"
    head = f"{config['study']} ({RESULTS / stored.CONFIG}), {'' if runs_now else 'not '}running, "
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
