"""Implements `make status`, which prints the state of a study's runs and the time left."""

import json
import math
import re
import time
from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import Any

import pandas as pd
import psutil

from scaling.config import stored
from scaling.core import command_line, environment, files, grid
from scaling.core.errors import UserError
from scaling.core.records.run import RUN

RESULTS, LOGS = stored.RESULTS, Path("logs")
NOT_OF_OTHERS = ("train_run", "replay", "partial")
"""Folders of logs that belong to runs of the grid, or to no measurement."""


class DurationEstimates:
    """Estimates durations (seconds) of measurements from records in the folder `records`."""

    def __init__(self, config: dict[str, Any], records: Path) -> None:
        self._records, training = records, config["training"]
        self._epochs = {"runs": training["warmup_epochs"] + training["measured_epochs"]}
        self._epochs["to_accuracy"] = config["time_to_accuracy"]["epochs"]
        self._took = defaultdict[str, list[float]](list)
        before = records / stored.CONFIG
        own = before.exists() and stored.read_config(before)
        # Of another study, and so perhaps another device, nothing is known.
        same = own and all(own.get(key) == config.get(key) for key in ("study", "device"))
        for kind in stored.RECORDS if same else ():
            for path in records.glob(f"{kind}/**/*.json"):
                self.add(path.relative_to(records))

    def add(self, place: Path) -> None:
        """Add the duration of the record at `place`, a path relative to the folder of records."""
        try:
            found = files.read_json(self._records / place)
            began, ended = (found["environment"][key] for key in ("started", "ended"))
            passed = datetime.fromisoformat(ended) - datetime.fromisoformat(began)
            took = float(found.get("run_seconds") or passed.total_seconds())
            if place.name == "run.json":
                took *= self._epochs[place.parts[0]] / max(row["epoch"] for row in found["epochs"])
        except (UserError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            return  # Some have no duration, and some runs no epoch.
        if 0 < took < math.inf:
            for key in _similarity_keys(place):
                self._took[key].append(took)

    def seconds(self, place: Path) -> float | None:
        """Return the mean seconds of the most similar measurements; None if there are none."""
        key = next((key for key in _similarity_keys(place) if key in self._took), None)
        return fmean(self._took[key]) if key else None

    def total(self, places: list[Path]) -> float:
        """Return the sum of seconds of measurements; without an estimate, the mean counts."""
        known = [took for place in places if (took := self.seconds(place))]
        mean = fmean(known or chain(*self._took.values())) if self._took else 0
        return sum(known) + mean * (len(places) - len(known))


def _similarity_keys(place: Path) -> list[str]:
    """Return keys of a record for its run, configuration, recipe and kind, in this order."""
    folders = [one for one in place.parts[:-1] if not one.startswith(("seed~", "repeat~"))]
    cell, recipe = "/".join(folders), "/".join(folders[:3])
    return [place.as_posix(), cell, recipe, f"{folders[0]} {place.name}"]


def duration(value: float) -> str:
    """Return a number of seconds as text: `40 s`, `12 min`, `3.4 h`."""
    if value < 90:
        return f"{value:.0f} s"
    return f"{value / 60:.0f} min" if value < 5400 else f"{value / 3600:.1f} h"


def study_status(config: dict[str, Any], begun: dict[Path, float], runs_now: bool) -> str:
    """Return the state of the study in results/ as text; `begun` has start times of runs."""
    known = DurationEstimates(config, RESULTS)
    cells = {cell.record_path(Path("runs")): cell for cell in grid.of(config)}
    wanted = stored.records(config)
    others = [place for kind, places in wanted.items() if kind != "runs" for place in places]
    there = {place for place in [*cells, *others] if (RESULTS / place).exists()}
    begun = _remote_runs(cells, config["machine"]["time_limit_seconds"]) | begun
    rows, logs = [], {}
    for place, cell in cells.items():
        log, strategy = cell.log_path(LOGS), cell.strategy if cell.gpus > 1 else ""
        state = "running", ""
        if place not in begun:
            state = _status(RESULTS / place) if place in there else _failed(log)
        rows.append([cell.recipe, strategy, cell.gpus, cell.batch_size, state[0]])
        logs[log] = state[1]
    runs = pd.DataFrame(rows, columns=["recipe", "strategy", "GPUs", "batch_size", "state"])
    if not there.issuperset(others):
        paths = [log for log in sorted(LOGS.rglob("*.log")) if log.parts[1] not in NOT_OF_OTHERS]
        logs |= {log: _failed(log)[1] for log in paths}
    due = [place for place in [*cells, *others] if place not in there]
    now = time.time()
    left = known.total(due) - sum(now - since for since in begun.values())
    counted = f": {_counted(runs['state'], 0)}" if cells else ""
    first = {*(cells or others)}
    head = f"{config['study']} ({RESULTS / stored.CONFIG}), {'' if runs_now else 'not '}running, "
    end = f"; until about {_clock(now + max(left, 0))}" if runs_now and due else ""
    table = runs.pivot_table(
        "state", ["recipe", "strategy", "GPUs"], "batch_size", _counted, sort=False, fill_value="-"
    )
    lines = [
        f"{head}{len(there & first)} of {len(first)}{counted}{end}\n",
        table.reset_index().rename_axis(columns=None).to_string(index=False) + "\n",
        *(
            f"running: {cells.get(place, place.with_suffix(''))}, since {_clock(since)}, until "
            f"about {_clock(since + known.total([place]))}"
            for place, since in begun.items()
        ),
        f"Other measurements: {len(there & {*others})} of {len(others)} done",
        *(f"{log}\n  {error}" for log, error in logs.items() if error),
    ]
    return "\n".join(lines)


def _counted(states: pd.Series, alone: int = 1) -> str:
    """Return numbers of runs by state, `2 done, 1 waiting`; of `alone` or fewer only the state."""
    counts = states.value_counts(sort=False).items()
    return ", ".join(str(state) if len(states) <= alone else f"{n} {state}" for state, n in counts)


def _clock(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds):%a %H:%M}"


def _status(record: Path) -> tuple[str, str]:
    """Return the state of a run from its record, and an error if the record is invalid."""
    try:
        return RUN.read(record)["status"].replace("ok", "done"), ""
    except UserError as error:
        return "failed", str(error)


def _failed(log: Path) -> tuple[str, str]:
    """Return ("failed", last error) if the end of a log has an error, else ("waiting", "")."""
    lines = files.log_end(log).splitlines() if log.exists() else []
    error = next((line for line in reversed(lines) if "rror: " in line), "")
    return "failed" if error else "waiting", error


def _remote_runs(places: Iterable[Path], limit: float) -> dict[Path, float]:
    """Return start times of runs on other machines that logged in the last `limit` seconds."""
    begun = {}
    for place in places:
        for path in (RESULTS / place).parent.glob(".run.ranks.*/rank*.jsonl"):
            first = path.read_text(encoding="utf-8").partition("\n")[0]
            young = time.time() - path.stat().st_mtime < limit
            if young and first and json.loads(first)["host"] != environment.host():
                begun[place] = path.parent.stat().st_mtime
    return begun


@command_line.script
def main() -> None:
    """Print the state of the study in results/; its first job must have begun."""
    study, keys = stored.read(RESULTS), ["cmdline", "create_time", "cwd"]
    processes = [process.info for process in psutil.process_iter(keys)]
    here = [process for process in processes if process["cwd"] == str(Path.cwd())]
    begun = {
        Path(path).relative_to(RESULTS): process["create_time"]
        for process in here
        for word in process["cmdline"]
        for path in re.findall('"output": "([^"]+)"', word if word.startswith("{") else "")
        if Path(path).is_relative_to(RESULTS)
    }
    runs_now = any("snakemake" in word for process in here for word in process["cmdline"][:3])
    text = study_status(study, begun, runs_now or bool(begun))
    print(text.encode("ascii", "replace").decode())
