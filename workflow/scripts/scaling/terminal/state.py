"""The state of a study, from its files and what runs: each run of the grid, and how long still.

`make status` prints it. What runs is seen by the processes of this machine.
"""

import json
import math
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import cache
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
        self._records, training = records, config["training"]
        self._epochs = {"runs": training["warmup_epochs"] + training["measured_epochs"]}
        self._epochs["to_accuracy"] = config["time_to_accuracy"]["epochs"]
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

    def add(self, place: Path, folder: Path | None = None, name: str = HERE) -> None:
        """Add a record of this study, or of another one in `folder`."""
        try:
            found = files.read_json((folder or self._records) / place)
            began, ended = (found["environment"][key] for key in ("started", "ended"))
            passed = datetime.fromisoformat(ended) - datetime.fromisoformat(began)
            took = float(found.get("run_seconds") or passed.total_seconds())
            if place.name == "run.json":
                took *= self._epochs[place.parts[0]] / max(row["epoch"] for row in found["epochs"])
        except (UserError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            return  # Some old ones have no duration, and some runs no epoch.
        if 0 < took < math.inf:
            for like in _likes(place):
                self.sources[name][like].append(took)

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
        self.sources[name] = defaultdict(list)
        for kind in stored.RECORDS:
            for path in folder.glob(f"{kind}/**/*.json"):
                self.add(path.relative_to(folder), folder, name)


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

    A run that was `begun` (times by the records' paths below results/) is `running`; the state of
    another is its record's status, `done` for ok; without a record it is `failed` if its log has
    an error, else `waiting`. `measured` is whether there is more than the machine's limits.
    """
    cells = {cell.record_path(Path("runs")): cell for cell in grid.of(config)}
    wanted = stored.records(config)
    others = [place for kind, places in wanted.items() if kind != "runs" for place in places]
    there = {place for place in [*cells, *others] if (RESULTS / place).exists()}
    begun = _elsewhere(cells, config["machine"]["time_limit_seconds"]) | dict(begun)
    states: dict[Path, str] = {}
    logs: dict[Path, str] = {}
    for place, cell in cells.items():
        record, log = RESULTS / place, cell.log_path(LOGS)
        if place in begun:
            states[place] = "running"
        elif place in there:
            states[place], logs[log] = _status(record, record.stat().st_mtime)
        else:
            states[place], logs[log] = _failed(log)
    if not there.issuperset(others):
        found = [log for log in sorted(LOGS.rglob("*.log")) if log.parts[1] not in NOT_OF_OTHERS]
        logs |= {log: _failed(log)[1] for log in found}
    _, *copying = grid.on_one_gpu(config)
    copied = {place for place, run in cells.items() if run.gpus == 1 and run.strategy in copying}
    due = [place for place in [*cells, *others] if place not in there | copied]
    now = time.time()
    left = known.total(due) - sum(now - since for since in {*begun.values()})
    counted = f": {_counted(pd.Series(states), 0)}" if cells else ""
    first = {*(cells or others)}
    head = f"{'running' if runs_now else 'not running'}, {len(there & first)} of {len(first)}"
    end = f"; until about {_clock(now + max(left, 0))}" if runs_now and due else ""
    rows = [
        vars(cell) | {"GPUs": cell.gpus, "state": states[place]} for place, cell in cells.items()
    ]
    runs = pd.DataFrame(rows, columns=["recipe", "strategy", "GPUs", "batch_size", "state"])
    table = runs.pivot_table(
        "state", ["recipe", "strategy", "GPUs"], "batch_size", _counted, sort=False
    )
    return {
        "head": head + counted + end,
        "grid": table.reset_index().rename_axis(columns=None),
        "lines": [
            *(
                f"running: {cells.get(place, place.with_suffix(''))}, since {_clock(since)}, until "
                f"about {_clock(since + known.total([place]))}"
                for place, since in begun.items()
            ),
            f"Other measurements: {len(there & {*others})} of {len(others)} done",
            *(f"{log}\n  {error}" for log, error in logs.items() if error),
        ],
        "measured": not there.issubset(wanted["limits"]),
    }


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
