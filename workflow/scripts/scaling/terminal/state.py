"""The state of a study, from its files and what runs: each run of the grid, and how long still.

`make status` prints it. What runs is seen by the processes of this machine.
"""

import json
import math
import time
from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from itertools import groupby
from pathlib import Path
from statistics import fmean
from typing import Any

import pandas as pd
import psutil
from snakemake.utils import update_config

from scaling.config import stored
from scaling.config.config import asked, model_options
from scaling.config.stored import read_config
from scaling.core import command_line, environment, files, grid
from scaling.core.errors import UserError
from scaling.core.records.run import RUN

RESULTS, LOGS = Path("results"), Path("logs")
NOT_OF_OTHERS = ("train_run", "train_command", "train_single", "replay")
"""Folders of logs that are not of measurements besides the grid's."""
GUESSED_SECONDS = 10
"""A measurement's duration without any records, with its share of tables and report: the demo's."""
HERE = "as measured here"


class Known:
    """Seconds of the measurements below `records`, and of stored studies that are alike.

    Those have the same model and kind of device; epochs are counted as `config` asks for them.
    """

    def __init__(
        self, config: dict[str, Any], records: Path, studies: Path, *, on_cpu: bool
    ) -> None:
        self._config, self._records = config, records
        self.sources: dict[str, dict[str, list[float]]] = {}
        self._read(HERE, records)
        for path in sorted(studies.glob(f"*/{stored.CONFIG}")):
            try:
                other = stored.read(path.parent)
                alike = model_options(other) == model_options(config)
                if alike and (other["device"] == "cpu") == on_cpu:
                    self._read(f"as in {path.parent}", path.parent)
            except (UserError, LookupError):
                continue  # Another's study; its own start tells what is wrong.

    def add(self, place: Path) -> None:
        """Add a record of this study."""
        self._add(self.sources[HERE], self._records, place)

    def seconds(self, place: Path) -> tuple[float, str]:
        """Return a measurement's estimated seconds and their source: the closest, ours first."""
        for like in _likes(place):
            for name, seconds in self.sources.items():
                if like in seconds:
                    return fmean(seconds[like]), name
        return GUESSED_SECONDS, f"guessed at {GUESSED_SECONDS} s, the demo's on two cores"

    def total(self, places: list[Path]) -> float:
        """Return the estimated seconds of measurements one after another."""
        return sum(self.seconds(place)[0] for place in places)

    def _read(self, name: str, folder: Path) -> None:
        seconds = self.sources[name] = defaultdict(list)
        for kind in stored.RECORDS:
            for path in folder.glob(f"{kind}/**/*.json"):
                self._add(seconds, folder, path.relative_to(folder))

    def _add(self, seconds: dict[str, list[float]], folder: Path, place: Path) -> None:
        try:
            found = files.read_json(folder / place)
            began, ended = (found["environment"][key] for key in ("started", "ended"))
            passed = datetime.fromisoformat(ended) - datetime.fromisoformat(began)
            took = float(found.get("run_seconds") or passed.total_seconds())
            if place.name == "run.json":
                training, full = self._config["training"], self._config["time_to_accuracy"]
                epochs: int = training["warmup_epochs"] + training["measured_epochs"]
                wanted = full["epochs"] if place.parts[0] == "to_accuracy" else epochs
                took *= wanted / max(row["epoch"] for row in found["epochs"])
        except (UserError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            return  # Some old ones have no duration, and some runs no epoch.
        if 0 < took < math.inf:
            for like in _likes(place):
                seconds[like].append(took)


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
    wanted = stored.records(config)
    kinds = [kind for kind in wanted if kind not in ("runs", *stored.BACKENDS)]
    others = [place for kind in kinds for place in wanted[kind]]
    _, *copying = grid.on_one_gpu(config)
    copied = {place for place, run in cells.items() if run.gpus == 1 and run.strategy in copying}
    there = {place for place in [*cells, *others] if (RESULTS / place).exists()}
    if not there.issuperset(others):
        found = [log for log in sorted(LOGS.rglob("*.log")) if log.parts[1] not in NOT_OF_OTHERS]
        logs |= {log: _failed(log)[1] for log in found}
    due = [place for place in [*cells, *others] if place not in there | copied]
    now = time.time()
    left = known.total(due) - sum(now - since for since in {*begun.values()})
    counted = f": {_counted(runs['state'], 0)}" if rows else ""
    first = {*(cells or others)}
    head = f"{'running' if runs_now else 'not running'}, {len(there & first)} of {len(first)}"
    end = f"; until about {_clock(now + max(left, 0))}" if runs_now and due else ""
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
        "measured": not there.issubset(wanted["limits"]),
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


@command_line.script
def main(config: tuple[Path, ...] = ()) -> None:
    """Print the grid; files of `config` are laid over config/config.yaml before a study's start."""
    own = RESULTS / stored.CONFIG
    sources = [own] if own.exists() else [Path("config/config.yaml"), *config]
    study: dict[str, Any] = {}
    for source in sources:
        update_config(study, read_config(source))
    if source != own:
        study = asked(study)
    found = [process.info for process in psutil.process_iter(["cmdline", "create_time", "cwd"])]
    here = [process for process in found if process["cwd"] == str(Path.cwd())]
    begun = {
        Path(word).relative_to(RESULTS): process["create_time"]
        for process in here
        for option, word in zip(process["cmdline"], process["cmdline"][1:], strict=False)
        if option == "--output" and Path(word).is_relative_to(RESULTS)
    }
    runs_now = any("snakemake" in word for process in here for word in process["cmdline"][:3])
    on_cpu = study["device"] == "cpu" or not environment.visible_gpus()
    known = Known(study, RESULTS, Path("studies"), on_cpu=on_cpu)
    told = of(study, begun, known, runs_now or bool(begun))
    print(f"{study['study']} ({source}), {told['head']}\n\n{told['grid'].to_string(index=False)}\n")
    print("\n".join(told["lines"]).encode("ascii", "replace").decode())
    for cell in grid.of(study):
        log = cell.log_path(LOGS)
        if cell.record_path(Path("runs")) in begun and log.exists():
            # A cell that waits for a lease says who holds it.
            last = files.log_end(log).splitlines()[-1:]
            print(*(f"{log}\n  {line}" for line in last if line.startswith("waits for")), sep="\n")
