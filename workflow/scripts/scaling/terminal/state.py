"""The state of a study, from its files and what runs: each run of the grid, and how long still.

`make status` prints it. What runs is seen by the processes of this machine.
"""

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
"""Folders of logs that are not of measurements besides the grid's."""


class Known:
    """Seconds of the measurements below `records`; epochs are counted as `config` asks for them."""

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
        """Add a record."""
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
            for like in _likes(place):
                self._took[like].append(took)

    def seconds(self, place: Path) -> float | None:
        """Return the mean seconds of the measurements most like this one; None without any."""
        alike = next((like for like in _likes(place) if like in self._took), None)
        return fmean(self._took[alike]) if alike else None

    def total(self, places: list[Path]) -> float:
        """Return the estimated seconds of measurements one after another.

        Those like none that is known take as long as the mean of the others, 0 without any.
        """
        known = [took for place in places if (took := self.seconds(place))]
        mean = fmean(known or chain(*self._took.values())) if self._took else 0
        return sum(known) + mean * (len(places) - len(known))


def _likes(place: Path) -> list[str]:
    """Return a measurement's keys from specific to general: itself, its cell, its recipe, kind."""
    folders = [one for one in place.parts[:-1] if not one.startswith(("seed~", "repeat~"))]
    cell, recipe = "/".join(folders), "/".join(folders[:3])
    return [place.as_posix(), cell, recipe, f"{folders[0]} {place.name}"]


def duration(value: float) -> str:
    """Format a duration: `40 s`, `12 min`, `3.4 h`."""
    if value < 90:
        return f"{value:.0f} s"
    return f"{value / 60:.0f} min" if value < 5400 else f"{value / 3600:.1f} h"


def of(config: dict[str, Any], begun: dict[Path, float], runs_now: bool) -> str:
    """Return the state of the study in results/, as text.

    A run that was `begun` (times by records' paths below results/) is `running`, another what its
    record says, `done` for ok; without one it is `failed` if its log has an error, else `waiting`.
    """
    known = Known(config, RESULTS)
    cells = {cell.record_path(Path("runs")): cell for cell in grid.of(config)}
    wanted = stored.records(config)
    others = [place for kind, places in wanted.items() if kind != "runs" for place in places]
    there = {place for place in [*cells, *others] if (RESULTS / place).exists()}
    begun = _elsewhere(cells, config["machine"]["time_limit_seconds"]) | begun
    states: dict[Path, str] = {}
    logs: dict[Path, str] = {}
    for place, cell in cells.items():
        record, log = RESULTS / place, cell.log_path(LOGS)
        if place in begun:
            states[place] = "running"
        elif place in there:
            states[place], logs[log] = _status(record)
        else:
            states[place], logs[log] = _failed(log)
    if not there.issuperset(others):
        found = [log for log in sorted(LOGS.rglob("*.log")) if log.parts[1] not in NOT_OF_OTHERS]
        logs |= {log: _failed(log)[1] for log in found}
    due = [place for place in [*cells, *others] if place not in there]
    now = time.time()
    left = known.total(due) - sum(now - since for since in begun.values())
    counted = f": {_counted(pd.Series(states), 0)}" if cells else ""
    first = {*(cells or others)}
    head = f"{config['study']} ({RESULTS / stored.CONFIG}), {'' if runs_now else 'not '}running, "
    end = f"; until about {_clock(now + max(left, 0))}" if runs_now and due else ""
    rows = [
        vars(cell)
        | {"GPUs": cell.gpus, "state": states[place]}
        | ({"strategy": ""} if cell.gpus == 1 else {})
        for place, cell in cells.items()
    ]
    runs = pd.DataFrame(rows, columns=["recipe", "strategy", "GPUs", "batch_size", "state"])
    table = runs.pivot_table(
        "state", ["recipe", "strategy", "GPUs"], "batch_size", _counted, sort=False
    )
    lines = [
        f"{head}{len(there & first)} of {len(first)}{counted}{end}\n",
        table.reset_index().rename_axis(columns=None).to_string(index=False) + "\n",
        *(
            f"running: {cells.get(place, place.with_suffix(''))}, since {_clock(since)}, until "
            f"about {_clock(since + known.total([place]))}{_waits(cells.get(place))}"
            for place, since in begun.items()
        ),
        f"Other measurements: {len(there & {*others})} of {len(others)} done",
        *(f"{log}\n  {error}" for log, error in logs.items() if error),
    ]
    return "\n".join(lines)


def _counted(states: pd.Series, alone: int = 1) -> str:
    """Return `done`, or for more than `alone` runs `2 done, 1 waiting`."""
    counts = states.value_counts(sort=False).items()
    return ", ".join(str(state) if len(states) <= alone else f"{n} {state}" for state, n in counts)


def _clock(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds):%a %H:%M}"


def _status(record: Path) -> tuple[str, str]:
    """Return the state by a record, and what is wrong with it."""
    try:
        return RUN.read(record)["status"].replace("ok", "done"), ""
    except UserError as error:
        return "failed", str(error)


def _failed(log: Path) -> tuple[str, str]:
    """Return `failed` with the last error at the end of a log, `waiting` if there is none."""
    lines = files.log_end(log).splitlines() if log.exists() else []
    error = next((line for line in reversed(lines) if "rror: " in line), "")
    return "failed" if error else "waiting", error


def _waits(cell: grid.Cell | None) -> str:
    """Return what a run waits for, by the end of its log."""
    log = cell and cell.log_path(LOGS)
    last = files.log_end(log).strip().rpartition("\n")[2] if log and log.exists() else ""
    return f", {last}" if last.startswith("waits for") else ""


def _elsewhere(places: Iterable[Path], limit: float) -> dict[Path, float]:
    """Return since when ranks of other machines run, which report every `limit` seconds."""
    found = {}
    for place in places:
        for path in (RESULTS / place).parent.glob(".run.ranks.*/rank*.jsonl"):
            first = path.read_text(encoding="utf-8").partition("\n")[0]
            young = time.time() - path.stat().st_mtime < limit
            if young and first and json.loads(first)["host"] != environment.host():
                found[place] = path.parent.stat().st_mtime
    return found


@command_line.script
def main() -> None:
    """Print the state of the study in results/, from its first job on."""
    study = stored.read(RESULTS)
    found = [process.info for process in psutil.process_iter(["cmdline", "create_time", "cwd"])]
    here = [process for process in found if process["cwd"] == str(Path.cwd())]
    begun = {
        Path(path).relative_to(RESULTS): process["create_time"]
        for process in here
        for word in process["cmdline"]
        for path in re.findall('"output": "([^"]+)"', word if word.startswith("{") else "")
        if Path(path).is_relative_to(RESULTS)
    }
    runs_now = any("snakemake" in word for process in here for word in process["cmdline"][:3])
    print(of(study, begun, runs_now or bool(begun)).encode("ascii", "replace").decode())
